"""What pg_control says of a server that may not run, by PostgreSQL's own pg_controldata."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from pgdyno.guard.data_directory import DataDirectory
from pgdyno.model.errors import TargetError
from pgdyno.model.wording import small
from pgdyno.shell import run

_OPTIONS = "postmaster.opts"  # how the server was started last
_CLEAN = "shut down"
_STOPPED = "shut down in recovery"
_FLUSH_S = 3600.0
_LINES = ("Database system identifier", "Database cluster state")


@dataclass(frozen=True, slots=True)
class Control:
    """Of pg_control."""

    system_identifier: str
    state: str  # as pg_controldata words it, e.g. "in production"

    @property
    def is_clean(self) -> bool:
        """Whether the server was shut down: all was flushed, and nothing was written since.

        A standby that is shut down flushes only if it replayed a checkpoint since its last
        restartpoint; otherwise it says that it was shut down all the same.
        """
        return self.state == _CLEAN

    @property
    def is_stopped_standby(self) -> bool:
        """Whether a standby was stopped in good order; what it wrote may be in memory alone."""
        return self.state == _STOPPED


def read_control(directory: DataDirectory, bindir: Path | None = None) -> Control:
    """Read it.

    Args:
        directory: The data directory.
        bindir: PostgreSQL's programs; None: those that the server was started with last.

    Raises:
        TargetError: The program is not found, or does not understand the file.
    """
    program = _program(directory, bindir, "pg_controldata")
    done = run([program, "-D", directory.path], user=directory.user, env={"LC_ALL": "C"})
    found = dict(line.split(":", 1) for line in done.stdout.splitlines() if ":" in line)
    missing = [name for name in _LINES if name not in found]
    if missing:
        raise TargetError(f"{program} did not say: {', '.join(missing)}", "Is it PostgreSQL's?")
    return Control(*(found[name].strip() for name in _LINES))


def flush(directory: DataDirectory, bindir: Path | None = None) -> None:
    """Wait until every file of a server that does not run is on the disk.

    Args:
        directory: The data directory.
        bindir: As `read_control`.

    Raises:
        TargetError: The program is not found, or a file cannot be synced.
    """
    program = _program(directory, bindir, "initdb")
    run([program, "--sync-only", "-D", directory.path], user=directory.user, timeout_s=_FLUSH_S)


def _program(directory: DataDirectory, bindir: Path | None, name: str) -> Path:
    program = (bindir or _last_bindir(directory)) / name
    if not program.is_file():
        raise TargetError(
            f"there is no program {program}", "Name the folder of PostgreSQL's programs: --bindir."
        )
    return program


def _last_bindir(directory: DataDirectory) -> Path:
    with directory.opened() as data:
        if not data.has(_OPTIONS):
            raise TargetError(
                f"{directory.path / _OPTIONS} is missing: no server was started there",
                "Name the folder of PostgreSQL's programs: --bindir.",
            )
        text = data.read(_OPTIONS, directory.user.uid)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise TargetError(
            f"{directory.path / _OPTIONS} is not understood: {small(str(error))}",
            "Name the folder of PostgreSQL's programs: --bindir.",
        ) from error
    return Path(words[0]).parent if words else Path("/nowhere")
