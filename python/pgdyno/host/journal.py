"""What was changed on this machine, written down before it is changed: a kill leaves no riddle.

One file of JSON lines, synced line by line. A change begins with `intend`, its spot's value before
and after; `done` follows when it was read back; `undone` when it was put back. What has an `intend`
and no `undone` may still stand.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pgdyno.model.errors import TargetError

What: TypeAlias = Literal["intend", "done", "undone"]
NAME = "host-journal.jsonl"  # in pgdyno's home
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Change:
    """One value that is to become another one."""

    key: str
    before: str
    after: str
    also: tuple[tuple[str, str], ...] = ()  # spots that it moves, too, with their values before


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the journal."""

    what: What
    number: int  # of the change, from 1
    boot: str  # the kernel's name of the time since it was started
    change: Change


class Journal:
    """The journal of this machine; one process at a time writes it."""

    def __init__(self, path: Path, boot: str | None = None) -> None:
        self.path = path
        self.boot = boot or BOOT_ID.read_text(encoding="utf-8").strip()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes away.

        Raises:
            TargetError: Another one is at work, or the journal cannot be written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = self.path.open("a", encoding="utf-8")
        except OSError as error:
            raise TargetError(
                f"write the journal {self.path}: {error.strerror}",
                "Nothing was changed: a change that is not written down cannot be undone.",
            ) from error
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise TargetError(
                    f"another pgdyno is changing this machine (journal {self.path})",
                    "Wait for it.",
                ) from error
            yield

    def write(self, what: What, number: int, change: Change) -> None:
        """Append a line and wait until it is on the disk.

        Raises:
            TargetError: It cannot be written.
        """
        line = json.dumps(asdict(Entry(what, number, self.boot, change))) + "\n"
        try:
            with self.path.open("a", encoding="utf-8") as handle:
                handle.write(line)
                handle.flush()
                os.fsync(handle.fileno())
        except OSError as error:
            raise TargetError(f"write the journal {self.path}: {error.strerror}") from error

    def entries(self) -> list[Entry]:
        """All lines; one that a kill cut short at the end is left out.

        Raises:
            TargetError: A line in between makes no sense.
        """
        if not self.path.exists():
            return []
        lines = self.path.read_text(encoding="utf-8").split("\n")
        *whole, cut = lines  # what follows the last newline was not written to its end
        del cut
        try:
            return [_entry(json.loads(line)) for line in whole if line]
        except (ValueError, KeyError, TypeError) as error:
            raise TargetError(f"journal {self.path} is damaged: {error}") from error

    def standing(self) -> list[tuple[int, Change, str]]:
        """Changes that were not undone, the last one first: number, change, boot."""
        found: dict[int, tuple[Change, str]] = {}
        for entry in self.entries():
            if entry.what == "intend":
                found[entry.number] = (entry.change, entry.boot)
            elif entry.what == "undone":
                found.pop(entry.number, None)
        return [(number, change, boot) for number, (change, boot) in reversed(found.items())]

    def next_number(self) -> int:
        """Of the next change."""
        return max((entry.number for entry in self.entries()), default=0) + 1

    def mend(self) -> None:
        """Cut off a last line that a kill left unfinished, so that the next one stands alone."""
        if not self.path.exists():
            return
        text = self.path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            with self.path.open("r+", encoding="utf-8") as handle:
                handle.truncate(len(whole.encode()))
                os.fsync(handle.fileno())


def _entry(raw: dict[str, Any]) -> Entry:
    change = raw["change"]
    also: Sequence[Sequence[str]] = change["also"]
    return Entry(
        raw["what"], raw["number"], raw["boot"],
        Change(
            change["key"], change["before"], change["after"],
            tuple((key, value) for key, value in also),
        ),
    )  # fmt: skip
