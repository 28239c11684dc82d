"""The driver's ledger: what it asked for, what was acknowledged, and what is owed at an instant."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from pgdyno.folders import Folder
from pgdyno.model.errors import DriveError

_LINE = np.dtype(
    [("taken_ns", "<u8"), ("ended_ns", "<u8"), ("key", "<i8", (4,)), ("kind", "<u2"),
     ("part", "<u2"), ("state", "u1"), ("rows", "u1"), ("nothing", "V2")]
)  # fmt: skip
"""As `measure/ledger.rs` of the core writes it."""
_BEGUN, _COMMITTED, _UNKNOWN = 0, 1, 3
_NS = 1_000_000_000

Key: TypeAlias = tuple[int, ...]
"""Part, kind, and the four numbers that the rows of a request are found by."""


class Request(NamedTuple):
    """What was asked of the server once."""

    taken_ns: int
    ended_ns: int | None  # None: it had no answer
    committed: bool | None  # None: nobody knows
    rows: int  # that it left; where that is not known: at most
    key: Key


@dataclass(frozen=True, slots=True)
class Owed:
    """What a database owes at an instant: rows of each key, at least and at most."""

    instant_ns: int
    acknowledged: Mapping[Key, list[tuple[int, int]]]  # (acknowledged at, rows) of each
    uncertain: Mapping[Key, int]  # rows that may be there as well

    @property
    def commits(self) -> int:
        """That were acknowledged."""
        return sum(map(len, self.acknowledged.values()))


@dataclass(slots=True)
class Found:
    """What a database has, held against what it owes."""

    lost: int = 0  # acknowledged commits without a row
    lost_s: float = 0.0  # since the first of them was acknowledged
    torn: int = 0  # acknowledged commits of which some rows are there
    unasked: int = 0  # rows that nobody asked for, or that are there twice


class Ledger:
    """All requests of a load. Times are in ns of `time.monotonic_ns`."""

    def __init__(self, requests: list[Request]) -> None:
        self.requests = requests

    @classmethod
    def read(cls, folder: Folder, name: str) -> Ledger:
        """The file that a driver has written.

        Raises:
            DriveError: It ends in the middle of a line, or holds none.
        """
        with os.fdopen(folder.open(name), "rb") as file:
            content = file.read()
        if not content or len(content) % _LINE.itemsize:
            raise DriveError(
                f"the driver's ledger has {len(content)} bytes, its lines have {_LINE.itemsize}"
            )
        ended: list[Request] = []
        begun: list[tuple[int, Key, int]] = []
        lines = np.frombuffer(content, _LINE).tolist()
        for taken_ns, ended_ns, numbers, kind, part, state, rows, _ in lines:
            key = (part, kind, *numbers)
            if state == _BEGUN:
                begun.append((taken_ns, key, rows))
            else:
                committed = None if state == _UNKNOWN else state == _COMMITTED
                ended.append(Request(taken_ns, ended_ns, committed, rows, key))
        over = Counter((one.taken_ns, one.key) for one in ended)
        for taken_ns, key, rows in begun:
            if over[taken_ns, key]:
                over[taken_ns, key] -= 1
            else:
                ended.append(Request(taken_ns, None, None, rows, key))
        return cls(ended)

    @cached_property
    def span_ns(self) -> tuple[int, int]:
        """When the first request was taken up, and when the last one was answered."""
        answered = [one.ended_ns for one in self.requests if one.ended_ns is not None]
        return min(one.taken_ns for one in self.requests), max(answered, default=0)

    @property
    def commits(self) -> int:
        """That were acknowledged."""
        return sum(one.committed is True for one in self.requests)

    def longest_gap_s(self, from_ns: int, until_ns: int) -> float:
        """The longest time without an acknowledged commit that ends after an instant.

        Args:
            from_ns: The instant; the commit before it begins the first of them.
            until_ns: Ends the last.
        """
        times = sorted(one.ended_ns for one in self.requests if one.committed and one.ended_ns)
        first = bisect_right(times, from_ns)
        begun_ns = times[first - 1] if first else from_ns
        after = [one for one in times[first:] if one < until_ns]
        marks = [begun_ns, *after, max(until_ns, begun_ns)]
        return max(later - one for one, later in pairwise(marks)) / _NS

    def at(self, instant_ns: int) -> Owed:
        """What is owed at an instant: what had been acknowledged, and perhaps what was under way.

        What was answered later was under way then; what was taken up later is not there.
        """
        acknowledged: dict[Key, list[tuple[int, int]]] = defaultdict(list)
        uncertain: Counter[Key] = Counter()
        for one in self.requests:
            if one.taken_ns > instant_ns:
                continue
            if one.ended_ns is None or one.ended_ns > instant_ns or one.committed is None:
                uncertain[one.key] += one.rows
            elif one.committed:
                acknowledged[one.key].append((one.ended_ns, one.rows))
        return Owed(instant_ns, acknowledged, uncertain)


def compared(owed: Owed, rows: Mapping[Key, int]) -> Found:
    """Hold the rows of a database against what it owes.

    Args:
        owed: At the instant of the disaster.
        rows: How many there are of each key.
    """
    found, first_ns = Found(), owed.instant_ns
    for key, commits in owed.acknowledged.items():
        missing = sum(of_one for _, of_one in commits) - rows.get(key, 0)
        if missing <= 0:
            continue
        # Of several with one key the latest are taken to be gone.
        for at_ns, of_one in sorted(commits, reverse=True):
            if missing >= of_one > 0:
                found.lost += 1
                first_ns = min(first_ns, at_ns)
            elif missing > 0:
                found.torn += 1
            missing -= of_one
    for key, there in rows.items():
        most = sum(of_one for _, of_one in owed.acknowledged.get(key, ()))
        found.unasked += max(there - most - owed.uncertain.get(key, 0), 0)
    found.lost_s = (owed.instant_ns - first_ns) / _NS if found.lost else 0.0
    return found
