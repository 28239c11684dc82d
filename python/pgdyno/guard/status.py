"""How a guarded server stands, from files alone: it is told also where no server answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pgdyno.guard.boot import since_boot_s
from pgdyno.guard.closing import VERSION_FILE, closed_by
from pgdyno.guard.data_directory import DataDirectory
from pgdyno.guard.heartbeat import daemon_runs, last_beat
from pgdyno.guard.include_file import read_pages, run_folder_of
from pgdyno.guard.interlock import (
    STATE,
    configuration_in,
    included,
    is_copy,
    judge,
    original_of,
    read_armed,
    repair_first,
)
from pgdyno.model.errors import TargetError
from pgdyno.model.guard import Armed, Lock, Status, Step

_OLD_FACTOR = 3  # of the silence that is allowed


def status_of(directory: DataDirectory, bindir: Path | None = None) -> Status:
    """How it stands.

    Raises:
        TargetError: A file is a link, somebody else's, or not understood.
    """
    armed = read_armed(directory)
    with directory.server() as found:
        runs = found is not None
    if armed is None:
        return _unarmed(directory, runs)
    include = Path(armed.include)
    heartbeat, daemon = None, False
    with run_folder_of(include, directory.user) as folder:
        if folder is not None:
            heartbeat, daemon = last_beat(folder, directory), daemon_runs(folder, directory)
    age_s = None if heartbeat is None else max(since_boot_s() - heartbeat.at_s, 0.0)
    pages = read_pages(directory, include)
    lock = judge(directory, armed, bindir)
    old = age_s is None or age_s > _OLD_FACTOR * armed.limits.silence_s
    unlike = heartbeat.unlike if heartbeat is not None else ""
    daemon_seen = _Daemon(daemon, old, unlike)
    wrong = (*_closed(directory), *_wrong(directory, armed, lock, pages, daemon_seen))
    return Status(str(directory.path), armed, lock, runs, pages, heartbeat, age_s, daemon, wrong)


@dataclass(frozen=True, slots=True)
class _Daemon:
    """What is seen of the daemon."""

    runs: bool
    old: bool  # its last sign of life
    unlike: str  # see `Heartbeat`


def _unarmed(directory: DataDirectory, runs: bool) -> Status:
    """Not armed; a line without a state is what neither arming nor disarming leaves."""
    wrong = tuple(_closed(directory))
    configuration = configuration_in(directory)
    if configuration.is_file() and (found := included(configuration)) is not None:
        wrong += (
            f"In {configuration} stands the line of {found}, but {STATE} is gone: arm it again, or"
            " take the line out once full pages are on and a checkpoint was made.",
        )
    return Status(str(directory.path), None, Lock.none, runs, None, None, None, False, wrong)


def _closed(directory: DataDirectory) -> Iterator[str]:
    with directory.opened() as data:
        kind = closed_by(data)
    if kind is not None:
        yield (
            f"A {kind} is at work, or was broken off while it wrote: {VERSION_FILE} says 0, so that"
            f" no server starts. If none runs, `pgdyno guard {kind}` again, or `pgdyno guard undo`."
        )


def _wrong(
    directory: DataDirectory, armed: Armed, lock: Lock, pages: str | None, daemon: _Daemon
) -> Iterator[str]:
    if is_copy(directory, armed):
        yield (
            f"It is a copy of {original_of(directory, armed)}, which is the one that is armed:"
            " `pgdyno guard disarm` takes the interlock out of a copy."
        )
        return
    if armed.step is Step.arming:
        yield "Arming was cut short: `pgdyno guard arm` ends it, `pgdyno guard disarm` undoes it."
    if armed.step is Step.disarming:
        yield "Disarming was cut short: `pgdyno guard disarm` ends it."
    match lock:
        case Lock.repair:
            # A boot id that is none was put there by whoever shut the interlock (`shut`).
            why = "The machine lost power, and pages" if armed.boot_id else "Pages"
            yield f"{why} may be torn. {repair_first(directory.path)}"
        case Lock.same_boot | Lock.clean if armed.step is not Step.disarming:
            yield (
                f"{armed.include} is gone, though nothing can be torn ({lock.value}):"
                " `pgdyno guard watch` puts it back."
            )
        case Lock.none:
            yield (
                f"The line of the interlock is gone from {armed.config_file}: `pgdyno guard arm`"
                " puts it back."
            )
        case _:
            pass
    yield from _of_daemon(armed, pages, daemon)


def _of_daemon(armed: Armed, pages: str | None, daemon: _Daemon) -> Iterator[str]:
    if armed.step is not Step.armed:
        return
    if not daemon.runs:
        state = "off, and nobody watches" if pages == "off" else "on until it runs"
        yield f"The daemon does not run: full pages are {state}. Start `pgdyno guard watch`."
    elif daemon.old:
        yield "The daemon holds its lock, but gives no sign of life: stop it, and start it again."
    elif daemon.unlike:
        yield f"{daemon.unlike}."


def require_armed(directory: DataDirectory) -> Armed:
    """What is kept of a server that is armed.

    Raises:
        TargetError: It is not.
    """
    armed = read_armed(directory)
    if armed is None:
        raise TargetError(
            f"{directory.path} is not armed", "`pgdyno guard arm` does it, once `check` allows it."
        )
    return armed
