"""The library that is preloaded into a server (`shim.c`), told what to do by its words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files

from pgdyno.model.proof import DEARER, Dose
from pgdyno.preload import Preloaded, preloaded
from pgdyno.shell import OsUser

WAL, DATA, READ = range(3)
_KINDS = 3
_DELAY, _SKIP, _UNITS, _SPENT, _ADDED = range(5)  # arrays of one word a kind, as in shim.c
_LOADED, _LIES, _WORDS = _KINDS * 5, _KINDS * 5 + 1, _KINDS * 5 + 2
_UNITS_MIN = 20  # fewer do not tell what one takes


@dataclass(frozen=True, slots=True)
class Shim:
    """The library, and its words by kind of call."""

    preloaded: Preloaded

    @property
    def environment(self) -> Mapping[str, str]:
        """What a server is started with so that it has the library."""
        return {
            "LD_PRELOAD": str(self.preloaded.library), "PGDYNO_SHIM": str(self.preloaded.words)
        }  # fmt: skip

    def put(self, array: int, kind: int, value: int) -> None:
        """Set a word.

        Raises:
            TargetError: The file cannot be written.
        """
        self.preloaded.put(_KINDS * array + kind, value)

    def require_loaded(self) -> None:
        """A server was started with the environment: refuse it if it has not the library.

        Raises:
            TargetError: It has not.
        """
        self.preloaded.require_loaded(_LOADED, "changes its calls")

    def lie(self) -> None:
        """From now on the disk acknowledges flushes of what lies in its volatile cache.

        All is written to the disk and has arrived there, and nothing has asked it to keep that.

        Raises:
            TargetError: The file cannot be written.
        """
        self.preloaded.put(_LIES, 1)

    def dose(self, kind: int) -> Dose:
        """What calls of a kind took until now, and what was added to them.

        Raises:
            TargetError: The file was cut short, or cannot be read.
        """
        words = (self.preloaded.get(_KINDS * array + kind) for array in (_UNITS, _SPENT, _ADDED))
        return Dose(*map(float, words))


@contextmanager
def preloadable(user: OsUser) -> Iterator[Shim]:
    """The library, compiled for this machine, while servers run that have it.

    Args:
        user: Who runs them.

    Raises:
        TargetError: There is no C compiler, or it failed.
    """
    with preloaded([files(__package__).joinpath("shim.c")], _WORDS, user) as library:
        yield Shim(library)


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
