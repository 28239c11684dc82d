"""What was changed on this machine, written down before it is changed: a kill leaves no riddle.

One file of JSON lines, synced line by line. A change begins with `intend`, its location's value
before and after; `done` follows with what the kernel made of it, and of the locations that it
moves; `moved` when those moved again while it was put back; `undone` when it was put back, or given
up. What has an `intend` and no `undone` may still stand.

The file lies in a folder of its own (`host.keep`), not in PGDYNO_HOME, which may be removed.
Earlier versions had it there: such a one is still read and restored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pgdyno.host.state_folder import open_file, open_folder, require_ours
from pgdyno.locks import try_lock
from pgdyno.model.errors import TargetError
from pgdyno.model.record_json import json_value
from pgdyno.model.system_errors import reason
from pgdyno.model.units import seconds_text

What: TypeAlias = Literal["intend", "done", "moved", "undone"]
Values: TypeAlias = tuple[tuple[str, str], ...]  # of locations, by their keys
NAME = "journal.jsonl"
EARLIER_NAME = "host-journal.jsonl"  # in PGDYNO_HOME, until 0.1
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PATIENCE_S = 60.0  # a pgdyno holds the journal while it writes values, not while it measures


class JournalError(TargetError):
    """The journal cannot be read or written."""


@dataclass(frozen=True, slots=True)
class Change:
    """One value that is to become another one."""

    key: str
    before: str
    after: str
    also: Values = ()  # locations that it moves, too, with their values before

    @property
    def keys(self) -> tuple[str, ...]:
        """Of all locations that it moves, its own first."""
        return (self.key, *(key for key, _ in self.also))

    @property
    def differs(self) -> bool:
        """Whether there is anything to be changed."""
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the journal."""

    what: What
    number: int  # of the change, from 1
    boot: str  # the kernel's name of the time since it was started
    change: Change
    became: str | None = None  # read back; None: not known, as of an `intend`
    also_became: Values = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """A change that was not undone, as far as the journal tells."""

    number: int
    change: Change
    boot: str
    became: str | None  # None: a kill came before it was read back
    also_became: Values


class Journal:
    """A journal of this machine; one process at a time writes it.

    Args:
        path: Of the file.
        boot: The kernel's name of the time since it was started; None: it is asked.
        earlier: As earlier versions had it, in a folder that others may own; only the file itself
            is ours.
        patience_s: How long another process that has it is waited for.
    """

    def __init__(
        self,
        path: Path,
        boot: str | None = None,
        *,
        earlier: bool = False,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.path = path
        self.boot = boot or BOOT_ID.read_text(encoding="utf-8").strip()
        self._earlier = earlier
        self._patience_s = patience_s
        self._handle: int | None = None

    @contextmanager
    def locked(self, *, make: bool = True) -> Iterator[bool]:
        """Keep other processes away; tells whether there is a journal (always, with `make`).

        Raises:
            TargetError: Another one is still at work after our patience, the journal cannot be
                opened, or is not ours.
        """
        try:
            self._handle = self._open(make)
        except OSError as error:
            raise JournalError(
                f"cannot write the journal {self.path}: {reason(error)}",
                "Nothing was changed: a change that is not written down cannot be undone.",
            ) from error
        if self._handle is None:
            yield False
            return
        try:
            self._lock(self._handle)
            self._mend()
            yield True
        finally:
            os.close(self._handle)
            self._handle = None

    def _open(self, make: bool) -> int | None:
        if self._earlier:
            try:
                handle = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                return None
            require_ours(handle, self.path)
            return handle
        folder = open_folder(self.path.parent, make=make)
        if folder is None:
            return None
        try:
            flags = os.O_RDWR | (os.O_CREAT if make else 0)
            handle_or_none = open_file(folder, self.path.name, self.path, flags)
            os.fsync(folder)
        finally:
            os.close(folder)
        return handle_or_none

    def _lock(self, handle: int) -> None:
        try:
            is_held = try_lock(handle, self._patience_s)
        except OSError as error:
            raise JournalError(f"cannot lock the journal {self.path}: {reason(error)}") from error
        if not is_held:
            raise TargetError(
                f"another pgdyno is changing this machine, and was waited for"
                f" {seconds_text(self._patience_s)} (journal {self.path})",
                "Wait for it.",
            )

    def write(self, entry: Entry) -> None:
        """Append a line and wait until it is on the disk; of a line that fails nothing stays.

        Raises:
            JournalError: It cannot be written.
        """
        assert self._handle is not None
        line = (json.dumps(asdict(entry)) + "\n").encode()
        end = os.lseek(self._handle, 0, os.SEEK_END)
        try:
            written = os.write(self._handle, line)
            if written < len(line):  # the disk is full, and says so with the next byte
                os.write(self._handle, line[written:])
            os.fsync(self._handle)
        except OSError as error:
            os.ftruncate(self._handle, end)
            raise JournalError(f"cannot write the journal {self.path}: {reason(error)}") from error

    def intend(self, change: Change) -> Standing:
        """Write down what is about to be done."""
        number = max((entry.number for entry in self.entries()), default=0) + 1
        self.write(Entry("intend", number, self.boot, change))
        return Standing(number, change, self.boot, None, ())

    def done(self, one: Standing) -> None:
        """Write down what the kernel made of it."""
        self.write(Entry("done", one.number, one.boot, one.change, one.became, one.also_became))

    def moved(self, one: Standing, also_became: Values) -> None:
        """Write down where the values beside went while it was put back."""
        self.write(Entry("moved", one.number, one.boot, one.change, one.became, also_became))

    def undone(self, one: Standing) -> None:
        """Write down that it does not stand any more."""
        self.write(Entry("undone", one.number, one.boot, one.change))

    def entries(self) -> list[Entry]:
        """All lines; one that a kill cut short at the end is left out. Call it while locked.

        Raises:
            JournalError: A line in between makes no sense.
        """
        *whole, _cut = self._bytes().split(b"\n")  # what follows the last newline is no line
        try:
            return [_entry(json_value(line)) for line in whole if line]
        except (ValueError, KeyError, TypeError) as error:
            raise JournalError(f"journal {self.path} is damaged: {error}") from error

    def standing(self) -> list[Standing]:
        """Changes that were not undone, the last one first. Call it while locked.

        Raises:
            JournalError: As `entries`.
        """
        found: dict[int, Standing] = {}
        for entry in self.entries():
            if entry.what == "undone":
                found.pop(entry.number, None)
            else:
                found[entry.number] = Standing(
                    entry.number, entry.change, entry.boot, entry.became, entry.also_became
                )
        return list(reversed(found.values()))

    def undone_of(self, some: Sequence[Standing]) -> tuple[Standing, ...]:
        """Those of some changes that were undone since, by whomever. Call it while locked.

        Raises:
            JournalError: As `entries`.
        """
        undone = {(one.number, one.change) for one in self.entries() if one.what == "undone"}
        return tuple(one for one in some if (one.number, one.change) in undone)

    def _bytes(self) -> bytes:
        assert self._handle is not None
        size = os.fstat(self._handle).st_size
        return os.pread(self._handle, size, 0)

    def _mend(self) -> None:
        """Cut off a last line that a kill left unfinished, so that the next one stands alone."""
        assert self._handle is not None
        found = self._bytes()
        whole = found[: found.rfind(b"\n") + 1]
        if whole != found:
            os.ftruncate(self._handle, len(whole))
            os.fsync(self._handle)


def standing_changes(journals: Iterable[Journal]) -> tuple[Change, ...]:
    """What stands changed by pgdyno, by all journals that there are.

    Raises:
        TargetError: Another one is at work, or a journal cannot be read.
    """
    found: list[Change] = []
    for journal in journals:
        with journal.locked(make=False) as there:
            found += [one.change for one in journal.standing()] if there else ()
    return tuple(found)


def _entry(raw: dict[str, Any]) -> Entry:
    change = raw["change"]
    became = raw.get("became")
    if became is None and raw["what"] == "done":  # until 0.1: written only if it was so
        became = change["after"]
    return Entry(
        raw["what"], raw["number"], raw["boot"],
        Change(change["key"], change["before"], change["after"], _values(change["also"])),
        became, _values(raw.get("also_became", ())),
    )  # fmt: skip


def _values(raw: Sequence[Sequence[str]]) -> Values:
    return tuple((key, value) for key, value in raw)
