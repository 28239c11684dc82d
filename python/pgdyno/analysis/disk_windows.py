"""What the windows of a stage saw of the disk below its data: each figure a value of its round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pgdyno.analysis.disk_facts import DiskInUse
from pgdyno.analysis.facts import StageFacts
from pgdyno.analysis.session_facts import RoundSessions
from pgdyno.model.floor_figures import Level, Span
from pgdyno.model.run import TrialRecord
from pgdyno.stats.repeated import level_span, share_level

_DISK = "disk."
LEAST_MS = 10
"""Time of all requests of a window, below which it does not tell what one took: the kernel adds up
milliseconds, and a tenth may be rounding."""

Figures = Mapping[str, float]
"""What is known of one window, by the fields of `DiskInUse`."""


@dataclass(frozen=True, slots=True)
class DiskWindows:
    """A stage with the rounds that its figures are of."""

    disk: DiskInUse
    rounds: Mapping[int, Figures]
    disks: Sequence[str]  # whole ones below its data; (): not known

    def values(self, name: str) -> list[float]:
        """A figure by rounds, of which it is known."""
        return [one[name] for one in self.rounds.values() if name in one]

    def waits(self, name: str) -> Level | None:
        """A share of sessions' time; None: it is not known."""
        found = self.values(name)
        return share_level(found) if found else None


def disk_windows(
    stage: StageFacts,
    trials: Sequence[TrialRecord],
    sessions: Callable[[TrialRecord], RoundSessions | None],
    disks: Sequence[str],
) -> DiskWindows:
    """The figures of a stage.

    Args:
        stage: It.
        trials: Of all stages, those whose numbers are used.
        sessions: What they did in the window of a trial.
        disks: Whole ones below its data; (): not known.
    """
    mine = [one for one in trials if one.stage == stage.name]
    rounds = {one.round: _figures(one, sessions(one)) for one in mine}
    return DiskWindows(_disk(stage, rounds), rounds, disks)


def _figures(trial: TrialRecord, met: RoundSessions | None) -> Figures:
    if (result := trial.result) is None:
        return {}
    seconds, grown = result.window_s, {
        name.removeprefix(_DISK): value
        for name, value in result.deltas.items() if name.startswith(_DISK)
    }  # fmt: skip
    reads, writes, flushes = map(grown.get, ("reads", "writes", "flushes"))
    found = {
        "reads_per_s": _over(reads, seconds),
        "read_s": _mean_s(grown.get("read_s"), reads),
        "reading": _over(grown.get("read_s"), seconds),
        "writes_per_s": _over(writes, seconds),
        "write_s": _mean_s(grown.get("write_s"), writes),
        "flushes_per_s": _over(flushes, seconds),
        "flush_s": _mean_s(grown.get("flush_s"), flushes),
    }
    if met is not None:
        read, write, flush = (met.classes.get(name, 0.0) for name in ("read", "write", "flush"))
        found |= {
            "wait_read": read,
            "wait_write": write,
            "wait_flush": flush,
            "waiting": read * met.active,
        }
    return {name: value for name, value in found.items() if value is not None}


def _mean_s(total_s: float | None, requests: float | None) -> float | None:
    """What one took; of so few that the kernel's milliseconds do not tell it, nothing."""
    return None if total_s is None or total_s < LEAST_MS / 1e3 else _over(total_s, requests)


def _over(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _disk(stage: StageFacts, rounds: Mapping[int, Figures]) -> DiskInUse:
    def of(name: str) -> Span | None:
        values = [one[name] for one in rounds.values() if name in one]
        return level_span(values) if values else None

    return DiskInUse(
        stage=stage.name,
        folder=stage.folder,
        first=stage.to_first.base if stage.to_first else stage.name,
        reads_per_s=of("reads_per_s"),
        read_s=of("read_s"),
        reading=of("reading"),
        writes_per_s=of("writes_per_s"),
        write_s=of("write_s"),
        flushes_per_s=of("flushes_per_s"),
        flush_s=of("flush_s"),
        wait_read=of("wait_read"),
        wait_write=of("wait_write"),
        wait_flush=of("wait_flush"),
        waiting=of("waiting"),
    )
