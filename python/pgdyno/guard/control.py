"""What pg_control says of a server that may not run, by PostgreSQL's own pg_controldata."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from pgdyno.guard.data_directory import DataDirectory
from pgdyno.model.errors import TargetError
from pgdyno.shell import run

_OPTIONS = "postmaster.opts"  # how the server was started last
_CLEAN = ("shut down", "shut down in recovery")
_LINES = ("Database system identifier", "Database cluster state")


@dataclass(frozen=True, slots=True)
class Control:
    """Of pg_control."""

    system_identifier: str
    state: str  # as pg_controldata words it, e.g. "in production"

    @property
    def is_clean(self) -> bool:
        """Whether the server was shut down: all was flushed, and nothing was written since."""
        return self.state in _CLEAN


def read_control(directory: DataDirectory, bindir: Path | None = None) -> Control:
    """Read it.

    Args:
        directory: The data directory.
        bindir: PostgreSQL's programs; None: those that the server was started with last.

    Raises:
        TargetError: The program is not found, or does not understand the file.
    """
    program = (bindir or _last_bindir(directory)) / "pg_controldata"
    if not program.is_file():
        raise TargetError(
            f"there is no program {program}", "Name the folder of PostgreSQL's programs: --bindir."
        )
    done = run([program, "-D", directory.path], user=directory.user, env={"LC_ALL": "C"})
    found = dict(line.split(":", 1) for line in done.stdout.splitlines() if ":" in line)
    missing = [name for name in _LINES if name not in found]
    if missing:
        raise TargetError(f"{program} did not say: {', '.join(missing)}", "Is it PostgreSQL's?")
    return Control(*(found[name].strip() for name in _LINES))


def _last_bindir(directory: DataDirectory) -> Path:
    with directory.opened() as data:
        if not data.has(_OPTIONS):
            raise TargetError(
                f"{directory.path / _OPTIONS} is missing: no server was started there",
                "Name the folder of PostgreSQL's programs: --bindir.",
            )
        words = shlex.split(data.read(_OPTIONS, directory.user.uid))
    return Path(words[0]).parent if words else Path("/nowhere")
