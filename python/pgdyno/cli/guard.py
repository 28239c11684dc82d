"""`pgdyno guard`: full pages off while a standby qualifies, and an interlock for power cuts."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group as Printed
from rich.table import Table
from rich.text import Text

from pgdyno import api
from pgdyno.cli.api_defaults import defaults
from pgdyno.cli.console import stderr, stdout
from pgdyno.cli.help import STYLE, Command, Group
from pgdyno.model.guard import (
    ACCEPTABLE,
    Checked,
    GuardLimits,
    Heartbeat,
    LimitsAsked,
    Lock,
    Status,
)
from pgdyno.model.repair import RejoinReport, RepairReport
from pgdyno.model.units import bytes_text, seconds_text
from pgdyno.model.wording import plural

REFUSED = 1  # exit code: a condition does not hold
_LIMITS = GuardLimits()
_REPAIR, _REJOIN = defaults(api.Guard.repair), defaults(api.Guard.rejoin)
_UNIT = defaults(api.Guard.unit)
_LOCKS = {
    Lock.open: "open",
    Lock.same_boot: "shut, though nothing can be torn: the kernel did not stop",
    Lock.clean: "shut, though nothing can be torn: the server was shut down before",
    Lock.repair: "shut: pages may be torn",
    Lock.none: "none: its line is gone",
}

app = typer.Typer(
    help="Turn full_page_writes off safely: a standby repairs what a power cut tears.",
    cls=Group,
    no_args_is_help=True,
    **STYLE,
)
DATA = Annotated[Path, typer.Argument(metavar="DATA", help="The primary's data directory.")]
CRASHED = Annotated[
    Path, typer.Argument(metavar="DATA", help="The crashed server's data directory.")
]
STANDBY = Annotated[
    str,
    typer.Option(
        metavar="CONNINFO",
        help="The standby, as libpq reads it; without it, as it was armed. Passwords come from"
        " ~/.pgpass.",
    ),
]
PRIMARY = Annotated[
    str,
    typer.Option(
        metavar="CONNINFO",
        help="The primary; without it, by postmaster.pid, as the role of the server's user.",
    ),
]
ACCEPT = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help=f"Accept this condition as it is; may be repeated: {', '.join(ACCEPTABLE)}.",
    ),
]
REPAIR_ACCEPT = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="What you know, and nobody else can: standby-power, the standby did not lose power"
        " (it was restarted in good order); same-boot, the storage lost writes while the kernel"
        " lived on.",
    ),
]
RUN_FOLDER = Annotated[
    Path | None,
    typer.Option(help="A folder in memory, which a power cut empties: /run/pgdyno-guard."),
]
BINDIR = Annotated[
    Path | None,
    typer.Option(help="PostgreSQL's programs; without it, those that the server ran with."),
]
LAG_BYTES = Annotated[
    int | None,
    typer.Option(
        metavar="BYTES",
        help=f"WAL that the standby may be behind; as armed, or {_LIMITS.lag_bytes} bytes.",
    ),
]
LAG_SECONDS = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help=f"How old the oldest of that WAL may be; as armed, or {_LIMITS.lag_s:.0f} s.",
    ),
]
SILENCE = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="How long a server, or the daemon, may be silent; as armed, or"
        f" {_LIMITS.silence_s:.0f} s.",
    ),
]
HOLD = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="How long conditions must hold before full pages go off; as armed, or"
        f" {_LIMITS.hold_s:.0f} s.",
    ),
]
TIMEOUT = Annotated[
    int | None,
    typer.Option(
        metavar="SECONDS",
        help="What checkpoint_timeout may be on the primary; as armed, or"
        f" {_LIMITS.checkpoint_timeout_s} s.",
    ),
]
JOURNALS = Annotated[
    Path | None,
    typer.Option(help="A folder for old and new bytes; without it one in /var/lib/pgdyno-guard."),
]
SESSIONS = Annotated[int, typer.Option(help="Sessions that fetch side by side.")]
DRY_RUN = Annotated[bool, typer.Option("--dry-run", help="Find out all, and write nothing.")]
JSON = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]


@app.command(cls=Command)
def check(
    data: DATA,
    standby: STANDBY = "",
    primary: PRIMARY = "",
    accept: ACCEPT = None,
    run_folder: RUN_FOLDER = None,
    lag_bytes: LAG_BYTES = None,
    lag_seconds: LAG_SECONDS = None,
    silence: SILENCE = None,
    hold: HOLD = None,
    checkpoint_timeout: TIMEOUT = None,
    as_json: JSON = False,
) -> None:
    """Tell whether full pages may be off: every condition, what was found, what would change it.

    Nothing is changed. The exit code is 0 if all conditions hold or are accepted, else 1.

    Example: pgdyno guard check /srv/pg --standby 'host=b user=pgdyno_guard'
    """
    limits = LimitsAsked(lag_bytes, lag_seconds, silence, hold, checkpoint_timeout)
    found = api.Guard(data, standby, primary=primary, run_folder=run_folder, limits=limits).check(
        accept or ()
    )
    _tell(found, as_json)


@app.command(cls=Command)
def arm(
    data: DATA,
    standby: STANDBY = "",
    primary: PRIMARY = "",
    accept: ACCEPT = None,
    run_folder: RUN_FOLDER = None,
    lag_bytes: LAG_BYTES = None,
    lag_seconds: LAG_SECONDS = None,
    silence: SILENCE = None,
    hold: HOLD = None,
    checkpoint_timeout: TIMEOUT = None,
    as_json: JSON = False,
) -> None:
    """Put the interlock in place: after a power cut the server does not start before a repair.

    It is done only if `check` allows it. Full pages stay on until `pgdyno guard watch` turns them
    off.

    Example: pgdyno guard arm /srv/pg --standby 'host=b user=pgdyno_guard'
    """
    limits = LimitsAsked(lag_bytes, lag_seconds, silence, hold, checkpoint_timeout)
    found = api.Guard(data, standby, primary=primary, run_folder=run_folder, limits=limits).arm(
        accept or ()
    )
    _tell(found, as_json)
    if not as_json:
        stdout.print("\nArmed. `pgdyno guard watch` turns full pages off while this stays so.")


@app.command(cls=Command)
def disarm(data: DATA, primary: PRIMARY = "", bindir: BINDIR = None) -> None:
    """Turn full pages on, wait until they protect every page, and take the interlock out.

    Example: pgdyno guard disarm /var/lib/postgresql/18/main
    """
    with stderr.status("full pages on") as shown:
        api.Guard(data, primary=primary, bindir=bindir).disarm(on_event=shown.update)
    stdout.print("Disarmed: full pages are on, and protect every page.")


@app.command(cls=Command)
def status(data: DATA, bindir: BINDIR = None, as_json: JSON = False) -> None:
    """Tell how it stands, from files alone: no server is asked.

    The exit code is 0 if all is well, 8 if full pages are on for a reason, and 1 if somebody has
    to act.

    Example: pgdyno guard status /var/lib/postgresql/18/main
    """
    found = api.Guard(data, bindir=bindir).status()
    if as_json:
        stdout.print_json(json.dumps({**asdict(found), "code": found.code}))
    else:
        stdout.print(_shown(found))
    if found.code:
        raise typer.Exit(found.code)


@app.command(cls=Command)
def watch(data: DATA, standby: STANDBY = "", primary: PRIMARY = "", bindir: BINDIR = None) -> None:
    """Keep full pages off while every condition holds, and on otherwise, until Ctrl-C.

    Each turn is printed, with its reasons. Full pages are on before it ends.

    Example: pgdyno guard watch /var/lib/postgresql/18/main
    """
    api.Guard(data, standby, primary=primary, bindir=bindir).watch(
        on_event=lambda text: stdout.print(text, soft_wrap=True)
    )


@app.command(cls=Command)
def unit(
    data: DATA,
    server: Annotated[str, typer.Option(metavar="UNIT", help="The server's own unit.")] = _UNIT[
        "server"
    ],
) -> None:
    """Print a systemd unit that runs `watch`, and turns full pages on after any end of it.

    Example: pgdyno guard unit /srv/pg/18 --server postgresql-18.service
    """
    stdout.print(api.Guard(data).unit(server), soft_wrap=True, markup=False, end="")


@app.command(cls=Command)
def repair(
    data: CRASHED,
    standby: STANDBY = "",
    standby_data: Annotated[
        Path | None,
        typer.Option(help="The standby's data directory, if on this host: it is fed WAL."),
    ] = None,
    journals: JOURNALS = None,
    sessions: SESSIONS = _REPAIR["sessions"],
    patience: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="How long a standby without progress is waited for."),
    ] = _REPAIR["patience_s"],
    accept: REPAIR_ACCEPT = None,
    dry_run: DRY_RUN = False,
    as_json: JSON = False,
) -> None:
    """Put whole pages of the standby in place of those that a power cut may have torn.

    The server does not run; afterwards it may be started. Old bytes are kept for `undo`.

    Example: pgdyno guard repair /srv/pg --standby 'host=b user=pgdyno_guard'
    """
    with stderr.status("repair") as shown:
        found = api.Guard(data, standby).repair(
            standby_data=standby_data, journals=journals, sessions=sessions, patience_s=patience,
            accept=accept or (), dry_run=dry_run, on_event=shown.update,
        )  # fmt: skip
    if as_json:
        stdout.print_json(json.dumps({**asdict(found), "took_s": found.took_s}))
    else:
        stdout.print(_mended(found))
        if not dry_run:
            stdout.print("\nThe server may be started. Full pages are on until `watch` runs again.")


@app.command(cls=Command)
def rejoin(
    data: CRASHED,
    primary: Annotated[
        str,
        typer.Option(
            metavar="CONNINFO",
            help="The primary that it will follow; without it, the standby that it was armed with.",
        ),
    ] = "",
    follow: Annotated[
        str,
        typer.Option(
            metavar="CONNINFO",
            help="Its primary_conninfo, as a role with REPLICATION; without it, as configured.",
        ),
    ] = "",
    slot: Annotated[
        str,
        typer.Option(metavar="NAME", help="A physical slot of the primary that keeps WAL for it."),
    ] = "",
    journals: JOURNALS = None,
    sessions: SESSIONS = _REJOIN["sessions"],
    whole: Annotated[
        bool, typer.Option("--whole", help="Copy every file, where WAL does not say enough.")
    ] = False,
    dry_run: DRY_RUN = False,
    as_json: JSON = False,
) -> None:
    """Make a crashed server a standby of a running primary, by what differs from it.

    For a primary whose standby was promoted when it lost power, where pg_rewind refuses or would
    trust torn pages; and for a standby that lost power. The server does not run; afterwards it may
    be started. Old bytes are kept for `undo`.

    Example: pgdyno guard rejoin /srv/pg --primary 'host=b user=pgdyno_guard'
    """
    with stderr.status("rejoin") as shown:
        found = api.Guard(data, primary=primary).rejoin(
            follow=follow, slot=slot, journals=journals, sessions=sessions, whole=whole,
            dry_run=dry_run, on_event=shown.update,
        )  # fmt: skip
    if as_json:
        stdout.print_json(json.dumps(asdict(found)))
    else:
        stdout.print(_rejoined(found))
        if not dry_run:
            stdout.print("\nThe server may be started: it is a standby now.")


@app.command(cls=Command)
def undo(data: CRASHED, journals: JOURNALS = None) -> None:
    """Put back what the latest repair or rejoin overwrote, if the server was not started since.

    Example: pgdyno guard undo /var/lib/postgresql/18/main
    """
    folder = api.Guard(data).undo(journals=journals)
    stdout.print(f"The old bytes of {folder} are back: repair it before you start the server.")


def _mended(found: RepairReport) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("outcome", Text(found.outcome, "green"))
    table.add_row("redo", f"{found.begin.redo_lsn} to {found.end_lsn or 'nothing'}")
    written = "would write" if found.outcome.startswith("would") else "written"
    counts = {
        "needed": (found.blocks_needed, "that redo reads"),
        "absent": (found.blocks_absent, "that the disk does not have, and redo makes"),
        "alike": (found.blocks_alike, "that were as the standby has them"),
        "zeroed": (found.blocks_zeroed, "that the standby has no more"),
        written: (found.blocks_written, "whole pages of the standby, zeroed ones included"),
    }
    for name, (count, what) in counts.items():
        table.add_row(name, f"{plural(count, 'block', thousands=True)} {what}")
    table.add_row("fetched", bytes_text(found.fetched_bytes))
    table.add_row("took", seconds_text(found.took_s))
    if found.journal is not None:
        table.add_row("journal", Text(found.journal))
    return table


def _rejoined(found: RejoinReport) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("outcome", Text(found.outcome, "green"))
    if found.outcome not in ("finished", "would finish"):
        forked = f", left at {found.fork_lsn}" if found.fork_lsn else ""
        table.add_row("timeline", f"{found.timeline}, of {found.begin.timeline} before{forked}")
        table.add_row("redo", f"from {found.backup_lsn}, in the primary's WAL")
        named = f"{plural(found.blocks_named, 'block', thousands=True)}, by the WAL of either"
        table.add_row("named", "every file was copied" if found.whole else named)
        table.add_row("files", f"{found.files_copied} copied, {found.files_removed} removed")
        table.add_row("fetched", bytes_text(found.fetched_bytes))
    table.add_row("written", plural(found.blocks_written, "block", thousands=True))
    for slot in found.slots:
        table.add_row("slot gone", Text(slot))
    table.add_row("took", seconds_text(found.took_s))
    if found.journal is not None:
        table.add_row("journal", Text(found.journal))
    return table


def _tell(found: Checked, as_json: bool) -> None:
    """Print what was found; leave with a code where it refuses."""
    if as_json:
        stdout.print_json(json.dumps({**asdict(found), "allowed": found.allowed}))
    else:
        stdout.print(_table(found))
        for one in found.refused:
            accepted = f" (--accept {one.name})" if one.may_be_accepted else ""
            stdout.print(Text(f"{one.name}: {one.change}{accepted}", "yellow"), soft_wrap=True)
        for sentence in found.advice:
            stdout.print(Text(sentence), soft_wrap=True)
    if not found.allowed:
        raise typer.Exit(REFUSED)


def _table(found: Checked) -> Printed:
    table = Table("condition", "", "found", "wanted", box=None, pad_edge=False)
    for one in found.findings:
        word = "holds" if one.passed else "accepted" if one.accepted else "refused"
        style = {"holds": "green", "accepted": "yellow", "refused": "bold red"}[word]
        table.add_row(one.name, Text(word, style), Text(one.found), Text(one.wanted))
    head = Text(f"{found.data}, primary {found.primary}, standby {found.standby}\n")
    return Printed(head, table)


def _shown(found: Status) -> Printed:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("data", Text(found.data))
    table.add_row("server", "runs" if found.server_runs else "does not run")
    table.add_row("armed", found.armed.step.value if found.armed else "no")
    if found.armed is not None:
        table.add_row("standby", Text(found.armed.standby))
        table.add_row("interlock", _LOCKS[found.lock])
        table.add_row("full pages", found.pages or "decided by no file: it is gone")
    if found.heartbeat is not None:
        _add_heartbeat(table, found, found.heartbeat)
    for sentence in found.wrong:
        table.add_row(Text("wrong", "bold red"), Text(sentence))
    return Printed(table)


def _add_heartbeat(table: Table, found: Status, beat: Heartbeat) -> None:
    state = "runs" if found.daemon_runs else "does not run"
    life = f"its last sign of life {found.heartbeat_age_s or 0:.1f} s ago"
    table.add_row("daemon", f"process {beat.pid} {state}, {life}")
    table.add_row("turned", f"{seconds_text(beat.stands_s)} before that")
    images = "protect every page" if beat.complete else "do not protect every page"
    table.add_row("images", f"{images}, full pages are {beat.server_pages or 'not known'}")
    for reason in beat.reasons:
        table.add_row("reason", Text(reason))
    if beat.lag_bytes is not None and beat.lag_s is not None:
        table.add_row("lag", f"{bytes_text(beat.lag_bytes)}, {beat.lag_s:.0f} s")
