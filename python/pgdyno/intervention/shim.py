"""The library that is preloaded into a server (`shim.c`): compiled here, told what to do by words.

The words lie in a file that the server's user can write, since the server counts there; so it is
read and written by position, and never mapped: whoever cuts it short makes a read fail, no signal.
"""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from pgdyno.folders import failing, owner_of, scratch
from pgdyno.model.errors import TargetError
from pgdyno.model.proof import DEARER, Dose
from pgdyno.shell import OsUser, run

WAL, DATA, READ = range(3)
_KINDS = 3
_DELAY, _SKIP, _UNITS, _SPENT, _ADDED = range(5)  # arrays of one word a kind, as in shim.c
_WORD = struct.Struct("=Q")
_BYTES = _WORD.size * _KINDS * 5
_COMPILE_S = 60.0
_UNITS_MIN = 20  # fewer do not tell what one takes


@dataclass(frozen=True, slots=True)
class Shim:
    """The library, and its words while they are held open."""

    library: Path
    words: Path
    _handle: int

    @property
    def environment(self) -> Mapping[str, str]:
        """What a server is started with so that it has the library."""
        return {"LD_PRELOAD": str(self.library), "PGDYNO_SHIM": str(self.words)}

    def put(self, array: int, kind: int, value: int) -> None:
        """Set a word.

        Raises:
            TargetError: The file cannot be written.
        """
        with failing(f"write {self.words}"):
            os.pwrite(self._handle, _WORD.pack(value), self._at(array, kind))

    def get(self, array: int, kind: int) -> int:
        """Read a word.

        Raises:
            TargetError: The file was cut short, or cannot be read.
        """
        with failing(f"read {self.words}"):
            found = os.pread(self._handle, _WORD.size, self._at(array, kind))
        if len(found) != _WORD.size:
            raise TargetError(f"{self.words} was cut short by somebody else while it was in use")
        return int(_WORD.unpack(found)[0])

    def dose(self, kind: int) -> Dose:
        """What calls of a kind took until now, and what was added to them."""
        return Dose(*(float(self.get(array, kind)) for array in (_UNITS, _SPENT, _ADDED)))

    @staticmethod
    def _at(array: int, kind: int) -> int:
        return _WORD.size * (_KINDS * array + kind)


@contextmanager
def preloadable(user: OsUser) -> Iterator[Shim]:
    """The library, compiled for this machine, while servers run that have it.

    Args:
        user: Who runs them.

    Raises:
        TargetError: There is no C compiler, or it failed.
    """
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), "")
    if not compiler:
        raise TargetError("there is no C compiler", "Install one, e.g. the package gcc.")
    with scratch(Path("/tmp"), "pgdyno-shim-") as folder:  # noqa: S108  a folder of ours in it
        folder.write("shim.c", files(__package__).joinpath("shim.c").read_text())
        run(
            [compiler, "-O2", "-fPIC", "-shared", "-o", "shim.so", "shim.c", "-ldl"],
            folder=folder.handle, timeout_s=_COMPILE_S,
        )  # fmt: skip
        folder.write("words", "\0" * _BYTES, 0o600, owner_of(user))
        with failing(f"open {folder.path / 'words'}"):
            how = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open("words", how, dir_fd=folder.handle)
        try:
            yield Shim(folder.path / "shim.so", folder.path / "words", handle)
        finally:
            os.close(handle)


@dataclass(slots=True)
class Slower:
    """Calls of a kind take longer, by a share of what they have taken until now."""

    shim: Shim
    kind: int
    share: float = DEARER

    def turn(self, on: bool) -> None:
        """See `Intervention`."""
        self.shim.put(_DELAY, self.kind, self._delay_ns() if on else 0)

    def dose(self) -> Dose | None:
        """See `Intervention`."""
        return self.shim.dose(self.kind)

    def _delay_ns(self) -> int:
        known = self.shim.dose(self.kind)
        return round(known.spent_ns / known.units * self.share) if known.units > _UNITS_MIN else 0


@dataclass(frozen=True, slots=True)
class Skipped:
    """Flushes of a kind return at once and do nothing."""

    shim: Shim
    kind: int

    def turn(self, on: bool) -> None:
        """See `Intervention`."""
        self.shim.put(_SKIP, self.kind, int(on))

    def dose(self) -> Dose | None:
        """See `Intervention`."""
        return self.shim.dose(self.kind)
