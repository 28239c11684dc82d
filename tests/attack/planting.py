"""A server's user who puts links to a witness in the way of root, at a step that the caller names.

Root's steps are Python's audit events: every open, mkdir, chmod, chown, rename and start of a
program. At the one that was named, everything that the user may replace becomes a link. What the
user does is done with that user's rights, so nothing is planted that could not be in earnest.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pgdyno.shell import OsUser

EVENTS = {
    "open", "os.mkdir", "os.chmod", "os.chown", "os.rename", "os.remove", "os.rmdir", "os.link",
    "os.symlink", "os.listdir", "os.scandir", "os.truncate", "subprocess.Popen",
}  # fmt: skip
NAMES = (
    "pgdyno.conf", "postgresql.conf", "pg_hba.conf", "postmaster.pid", "PG_VERSION", "data",
    "data.sockets", "data.log", "pgdyno-work", ".pgdyno", "lock", "fixture.json",
)  # fmt: skip


class Planter:
    """The user, and where there is something to be had."""

    def __init__(self, user: OsUser, below: tuple[Path, ...], witness: Path) -> None:
        self.user = user
        self.planted = 0
        self.below = below
        self._witness = witness
        self._step = self._at = -1
        sys.addaudithook(self._hear)

    @contextmanager
    def at(self, step: int) -> Iterator[None]:
        """Plant at a step of what is done in the `with`, from 0."""
        self._step, self._at = 0, step
        try:
            yield
        finally:
            self._at = -1

    @property
    def steps(self) -> int:
        """How many there were since `at`."""
        return self._step

    def _hear(self, event: str, _arguments: tuple[Any, ...]) -> None:
        if self._at < 0 or event not in EVENTS:
            return
        self._step += 1
        if self._step - 1 == self._at:
            self._at = -1  # before anything of our own is heard
            self._plant()
            self._at = 1 << 30

    def _plant(self) -> None:
        os.setegid(self.user.gid)
        os.seteuid(self.user.uid)
        try:
            for top in self.below:
                for place, folders, files in os.walk(top):
                    if os.access(place, os.W_OK, effective_ids=True):
                        self._replace(Path(place), {*folders, *files})
                        folders[:] = [one for one in folders if one in NAMES]
        finally:
            os.seteuid(0)
            os.setegid(0)

    def _replace(self, place: Path, there: set[str]) -> None:
        for name in {*NAMES, *(one for one in there if one.endswith(".new"))}:
            path = place / name
            with suppress(OSError):
                if path.is_dir() and not path.is_symlink():
                    path.rename(place / f"{name}.moved")
                    path.symlink_to(self._witness.parent)
                elif name in there or name.endswith(".conf"):
                    path.unlink(missing_ok=True)
                    path.symlink_to(self._witness)
                self.planted += path.is_symlink()
