"""`pgdyno host`: the machine under the database: look, plan, change, undo."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group as Printed
from rich.table import Table
from rich.text import Text

from pgdyno.api import machine
from pgdyno.cli.api_defaults import defaults
from pgdyno.cli.console import stderr, stdout
from pgdyno.cli.help import STYLE, Command, Group
from pgdyno.model.errors import TargetError
from pgdyno.model.wording import plural

app = typer.Typer(
    name="host",
    help="The machine under the database: show it, change it, put it back.",
    cls=Group,
    no_args_is_help=True,
    **STYLE,
)
WISHES = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME=VALUE...", help="Changes, e.g. vm.swappiness=1 queue/scheduler@sda=none."
    ),
]
ADVISED = Annotated[
    bool,
    typer.Option("--advised", help="Take all that the catalogue advises and that carries no risk."),
]
HUGE = Annotated[
    list[str] | None,
    typer.Option(
        "--huge-pages-for", metavar="DATADIR|CONNINFO",
        help="A server that vm.nr_hugepages is to suffice for, as it counts; may be repeated.",
    ),
]  # fmt: skip
BINDIR = Annotated[
    Path | None, typer.Option(help="Folder of PostgreSQL's programs, for --huge-pages-for.")
]
_LAYOUT = defaults(machine.layout)
NOT_DONE = 1  # exit code: something is not as it was asked for


@app.command(cls=Command)
def show(
    huge_pages_for: HUGE = None,
    bindir: BINDIR = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Show the machine, each value beside what the catalogue advises, with the reason.

    What a look at the clock costs is measured, which takes a second.

    Example: pgdyno host show --huge-pages-for /etc/postgresql/15/main
    """
    parts = machine.show(huge_pages_for or (), bindir=bindir)
    if as_json:
        stdout.print_json(json.dumps([asdict(part) for part in parts]))
        return
    stdout.print(Printed(*(_shown(machine.folded(part)) for part in parts)))
    other = len(machine.not_as_advised(parts))
    stdout.print(
        f"\n{plural(other, 'value is', 'values are')} not as advised."
        " `pgdyno host plan --advised` shows what it would change without any risk;"
        " `pgdyno knobs NAME` says all that is known of a setting."
    )


def _shown(part: machine.Part) -> Printed:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for line in part.lines:
        table.add_row(line.what, _value(line))
    return Printed(Text(f"\n{part.title}", "bold"), table)


def _value(line: machine.Line) -> Text:
    text = Text(line.value)
    if line.note:
        text.append(f"  ({line.note})", "dim")
    if line.advised and line.as_advised:
        text.append("  as advised", "green")
    elif line.advised:
        text.append(f"\nadvised: {line.advised}", "yellow")
    elif line.search:
        text.append(f"\nworth trying: {line.search}", "dim")
    if line.why and not line.as_advised and (line.advised or line.search):
        text.append(f"\n{line.why}", "dim")
    return text


@app.command(cls=Command)
def plan(
    wishes: WISHES = None,
    advised: ADVISED = False,
    huge_pages_for: HUGE = None,
    bindir: BINDIR = None,
) -> None:
    """Tell what would be changed, and what is so already. Nothing is touched.

    Example: pgdyno host plan vm.swappiness=1 vm.dirty_background_bytes=67108864
    """
    planned = machine.plan(
        wishes or (), advised=advised, huge_pages_for=huge_pages_for or (), bindir=bindir
    )
    _say_counted(planned)
    _tell(planned)
    stdout.print("\nNothing was touched.")


@app.command(cls=Command, name="apply")
def apply_command(
    wishes: WISHES = None,
    advised: ADVISED = False,
    huge_pages_for: HUGE = None,
    bindir: BINDIR = None,
) -> None:
    """Change the running machine. `pgdyno host restore` puts everything back.

    Each change is written to a journal before it is made, and read back after. If one fails, all
    are put back. Without the right to change something, nothing is changed, and the commands are
    printed.

    Example: pgdyno host apply vm.swappiness=1
    """
    planned = machine.plan(
        wishes or (), advised=advised, huge_pages_for=huge_pages_for or (), bindir=bindir
    )
    if not planned.is_permitted:
        stdout.print("# You may not change these; somebody who may types:")
        _print_commands(planned.commands)
        stdout.print("# and, to put them back as they are now:")
        _print_commands(planned.commands_back)
        raise typer.Exit(NOT_DONE)
    _say_counted(planned)
    _tell(planned)
    machine.apply(planned)
    if planned.changes:
        stdout.print("\nDone and read back. `pgdyno host restore` puts everything back.")


@app.command(cls=Command)
def restore(
    overwrite: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Put this one back though somebody else changed it."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Leave this one as it is, and forget that we changed it."
        ),
    ] = None,
) -> None:
    """Put back everything that `host apply` changed and that still stands, also after a crash.

    A value that somebody else has changed since is left as it is, and named.

    Example: pgdyno host restore --keep vm.swappiness
    """
    undone = machine.restore(overwrite=overwrite or (), keep=keep or ())
    for one in undone:
        style = "" if one.ok else "bold red"
        stdout.print(Text(one.line, style))
    if not undone:
        stdout.print("Nothing that pgdyno changed is in force any more.")
    left = [one for one in undone if not one.ok]
    if left:
        raise TargetError(
            f"{plural(len(left), 'value')} of {len(undone)} not put back",
            "`--overwrite NAME` puts one back all the same, `--keep NAME` leaves it as it is.",
        )


@app.command(cls=Command, name="layout")
def layout_command(
    devices: Annotated[list[str], typer.Argument(metavar="DEVICE...", help="Block devices.")],
    file_system: Annotated[
        str, typer.Option("--fs", help="The file system: xfs or ext4.")
    ] = _LAYOUT["file_system"],
    block: Annotated[int, typer.Option(help="Size of the file system's blocks, bytes.")] = _LAYOUT[
        "block_bytes"
    ],
    stripe: Annotated[
        int, typer.Option(help="Kilobytes that go to one device before the next.")
    ] = machine.STRIPE_KB,
    partition: Annotated[
        bool, typer.Option("--partition", help="Make an aligned partition on each device.")
    ] = False,
    log_device: Annotated[
        str | None, typer.Option(help="A device for the journal of the file system.")
    ] = None,
    mount: Annotated[str | None, typer.Option(help="The folder where it is mounted.")] = None,
    erase: Annotated[
        list[str] | None, typer.Option(help="A device that may lose what it holds.")
    ] = None,
    apply_it: Annotated[bool, typer.Option("--apply", help="Make what is planned.")] = False,
) -> None:
    """Plan a file system on one device or a stripe of several; make it with --apply.

    A device that is in use is not touched; one that holds anything only if it is named a second
    time, with --erase.

    Example: pgdyno host layout /dev/nvme1n1 --fs xfs --block 8192 --mount /data
    """
    found = machine.layout(
        devices, file_system=file_system, block_bytes=block, stripe_bytes=stripe * 1024,
        partition=partition, log_device=log_device, mount=mount, erase=erase or (),
    )  # fmt: skip
    planned = found.layout
    if found.left:
        stderr.print(f"note: an earlier layout was killed: {found.left}", soft_wrap=True)
    for step in planned.steps:
        stdout.print(f"# {step.why}", style="dim")
        stdout.print(step.shown, soft_wrap=True)
    for note in planned.notes:
        stdout.print(f"note: {note}")
    if planned.fstab:
        stdout.print(f"\n/etc/fstab: {planned.fstab}", soft_wrap=True)
    if not apply_it:
        stdout.print("\nNothing was touched. --apply makes it.")
        return
    found.make()
    stdout.print("\nDone.")


def _say_counted(planned: machine.Planned) -> None:
    for one in planned.counted:
        pages = plural(one.pages, "huge page")
        stdout.print(f"{pages} for {one.server}, {one.how}", soft_wrap=True)


def _print_commands(lines: Sequence[str]) -> None:
    for line in lines:
        stdout.print(line, soft_wrap=True)


def _tell(planned: machine.Planned) -> None:
    table = Table("knob", "is", "will be", "risk", box=None, pad_edge=False)
    for row in planned.rows:
        will_be = Text("is so already", "dim") if row.then is None else row.then
        table.add_row(row.key, row.now, will_be, row.risk)
    stdout.print(table)
