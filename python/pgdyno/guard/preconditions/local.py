"""Rights of the guard's role, its files on the primary's machine, and the power of both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pgdyno.guard.facts import Seen
from pgdyno.guard.interlock import repair_first
from pgdyno.model.file_system import IN_MEMORY
from pgdyno.model.guard import Finding

_MADE_BY_ROOT = "Call `pgdyno guard arm` as root, who makes it for its user. "


def _rights(seen: Seen) -> Iterator[Finding]:
    primary, standby = seen.pair.primary, seen.pair.standby
    if primary is not None:
        yield Finding(
            "rights-primary", primary.may_checkpoint,
            "it may make checkpoints" if primary.may_checkpoint else "it may make no checkpoints",
            "it may make checkpoints", "" if primary.may_checkpoint else
            "GRANT pg_checkpoint to the guard's role; before PostgreSQL 15, name a superuser.",
        )  # fmt: skip
    if standby is not None:
        missing = standby.missing_rights
        yield Finding(
            "rights-standby", not missing,
            f"it lacks {', '.join(missing)}" if missing else "all that a repair calls",
            "all that a repair calls",
            "GRANT them on the primary, as docs/concepts/guard.md in the sources of pgdyno says:"
            " the standby gets them."
            if missing else "",
        )  # fmt: skip


def _whole(seen: Seen) -> Iterator[Finding]:
    kind = seen.local.closed_by
    yield Finding(
        "data-whole", kind is None, f"a {kind} was broken off while it wrote" if kind else "open",
        "open: no repair and no rejoin is half written",
        f"Call it again, `pgdyno guard {kind}`, or `pgdyno guard undo`: before that no server"
        " starts." if kind else "",
    )  # fmt: skip


def _files(seen: Seen) -> Iterator[Finding]:
    local = seen.local
    if seen.pair.primary is not None:
        found = local.server_pid is not None
        yield Finding(
            "server-process", found, f"process {local.server_pid}" if found else "not seen from"
            " here", "the process of postmaster.pid, which is signalled to read its configuration",
            "" if found else "Run the guard where the server runs: in its container, or with its"
            " process namespace.",
        )  # fmt: skip
    yield Finding(
        "configuration-file", not local.config_wrong, local.config_wrong or local.config_file,
        "a file that the guard can change", "Let it be a regular file of the server's user; what"
        " writes it anew has to keep the guard's last line." if local.config_wrong else "",
    )  # fmt: skip
    stray = local.stray_config
    yield Finding(
        "one-configuration", not stray,
        f"{stray} does not include it" if stray else local.config_file,
        f"{Path(local.data, 'postgresql.conf')} is this file, includes it, or is not there",
        f"Remove {stray}, or let it be the line include '{local.config_file}': a server that is"
        " started on the data alone, as by `postgres --single -D`, reads it, and nothing there"
        " stops it." if stray else "",
    )  # fmt: skip
    if local.is_armed:
        yield _interlock(seen)
    in_memory = local.run_folder_kind in IN_MEMORY
    passed = in_memory and not local.run_folder_wrong
    yield Finding(
        "run-folder", passed,
        local.run_folder_wrong or f"{local.include} on {local.run_folder_kind or 'nothing known'}",
        f"a file system in memory that can be written ({', '.join(IN_MEMORY)})",
        "" if passed else f"{_MADE_BY_ROOT if in_memory else ''}Name another one (--run-folder):"
        " its files have to go with the kernel, so that a server whose machine lost power does not"
        " start.",
    )  # fmt: skip


def _interlock(seen: Seen) -> Finding:
    local = seen.local
    if local.is_shut:
        return Finding(
            "interlock", False, f"shut, {local.include} is gone: pages may be torn", "open",
            repair_first(local.data),
        )  # fmt: skip
    stands = local.line_include == local.include
    return Finding(
        "interlock", stands,
        f"{local.line_include or 'no line of the guard'}, in {local.config_file}", local.include,
        "" if stands else "`pgdyno guard arm` puts the line back; what took it out must leave it.",
    )  # fmt: skip


def _power(seen: Seen) -> Iterator[Finding]:
    standby = seen.pair.standby
    if standby is None:
        return
    same = standby.life.boot_id == seen.local.boot_id or standby.is_by_loopback
    known = bool(standby.life.boot_id)
    if same:
        found = "both run on this machine"
    elif known:
        found = "another machine, by its boot id"
    else:
        found = "another address; its boot id is not known, pg_read_server_files would tell"
    yield Finding(
        "separate-power", known and not same, found,
        "another machine, whose power does not fail with this one's",
        "" if known and not same else "Name a standby elsewhere; or accept it by its name, if you"
        " know that one power cut cannot hit both. If it does, both are torn, and nothing here"
        " helps.",
        may_be_accepted=True,
    )  # fmt: skip


def _standby_power(seen: Seen) -> Iterator[Finding]:
    """A standby that lost power is torn itself, and repairs nothing. It starts all the same."""
    standby, since = seen.pair.standby, seen.local.standby_life
    if standby is None:
        return
    life, change = standby.life, ""
    if since is None:
        passed = not seen.local.is_armed
        found = "not armed yet" if passed else "its boot id was not written down"
    elif passed := life.goes_on(since):
        found = "its kernel lived on"
    elif life.tells_machine(since):
        found = "its machine was restarted"
    else:
        found = "it was restarted; its boot id is not known, pg_read_server_files would tell"
    if not passed:
        change = (
            "If the standby lost power, its pages may be torn, and stay so unseen: `pgdyno guard"
            " rejoin` there. Once it is whole, or if its machine was shut down in good order, say"
            " so, by `pgdyno guard arm`."
        )
    yield Finding(
        "standby-power", passed, found, "the kernel under which its pages were whole, all the time",
        change, may_be_accepted=True,
    )  # fmt: skip


JUDGED = (_rights, _whole, _files, _power, _standby_power)
