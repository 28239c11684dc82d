"""What a probe of storage takes of time and disk, before it starts; nothing is touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pgdyno.model.floor import PATTERNS, PAUSES_US, QUICK_ROUNDS, ROUNDS, Wish
from pgdyno.model.units import bytes_text, seconds_text
from pgdyno.probe import fio
from pgdyno.probe.sync import FILE_BYTES, TESTS

_STARTS_S = 0.4  # fio, each time
_WRITTEN_BYTES_PER_S = 300e6  # assumed before anything is measured
_OVERHEAD_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Cost:
    """What a probe takes, before it starts."""

    paths: int
    seconds: float  # of it, the writing of the files at an assumed rate
    writing_s: float
    size_bytes: int  # of the file that is read and written, on each path
    each_bytes: int  # on each path, at once: that file, and those for flushes and commits
    loaded_s: float  # of writing as fast as the storage can, on each path
    free_bytes: Mapping[str, int] = field(default_factory=dict)  # by path
    places: Mapping[str, str] = field(default_factory=dict)  # by path, e.g. "on ext4, vda"
    shared: tuple[str, ...] = ()  # a sentence for each file system or disk of several paths

    @property
    def sentence(self) -> str:
        """What it takes of disk and time, and how long it disturbs others."""
        writing = seconds_text(self.writing_s) if self.writing_s >= 1 else "less than 1 s"
        each = " on each path" if self.paths > 1 else ""
        return (
            f"{self.paths} × {bytes_text(self.each_bytes)} on disk, the file of"
            f" {bytes_text(self.size_bytes)} and smaller ones for flushes, removed at the end. It"
            f" takes about {seconds_text(self.seconds)}, {writing} of it to write the files at an"
            f" assumed {_WRITTEN_BYTES_PER_S / 1e6:.0f} MB/s, and"
            f" {seconds_text(self.loaded_s)}{each} of writing as fast as the storage can."
        )


def rounds_of(wish: Wish) -> int:
    """How many rounds of probes are taken."""
    return wish.rounds or (QUICK_ROUNDS if wish.quick else ROUNDS)


def cost(wish: Wish) -> Cost:
    """Estimate a probe."""
    points = len(wish.depths) * len(wish.jobs)
    again = wish.repeated
    grid = len(PATTERNS) * points
    each_bytes = wish.size_bytes + fio.WAL_BYTES + FILE_BYTES + _OVERHEAD_BYTES
    writing_s = (wish.size_bytes + fio.WAL_BYTES) / _WRITTEN_BYTES_PER_S
    window_s = wish.seconds + _STARTS_S
    round_s = (2 + len(PAUSES_US) + len(again)) * window_s + 2 * wish.seconds
    measuring_s = grid * window_s + TESTS * wish.seconds + rounds_of(wish) * round_s
    writes = sum(one.pattern.endswith("write") for one in again)
    loading = points * 2 + rounds_of(wish) * (1 + writes)
    return Cost(
        paths=len(wish.paths),
        seconds=len(wish.paths) * (writing_s + measuring_s) + wish.seconds,
        writing_s=len(wish.paths) * writing_s,
        size_bytes=wish.size_bytes,
        each_bytes=each_bytes,
        loaded_s=loading * wish.seconds,
    )
