"""What stages on several storages saw of their disks, and what follows for a server.

A load shows a disk as it asks it: how many requests were under way, and how long each took. What
the disk would do with more of them at once is not in that, and not advised upon: probes tell it,
see `storage_advice`. As there, a window is one value of its round, and advice rests on what the
rounds tell together: where they do not tell on which side of a threshold a figure lies, that is
not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations

from pgdyno.analysis.disk_facts import Advice, DiskInUse, NotKnown, StorageInUse
from pgdyno.analysis.facts import StageFacts
from pgdyno.analysis.session_facts import RoundSessions
from pgdyno.analysis.storage_advice import (
    APART,
    DELAY_US_MIN,
    INDEX_SCANS,
    READS_PLAN,
    SHARE_FLUSHES,
    shared_flushes,
)
from pgdyno.model.floor_figures import Level, Span, Times
from pgdyno.model.run import TrialRecord
from pgdyno.model.shared_storage import may_share
from pgdyno.model.units import count_text, ns_text, share_text
from pgdyno.model.wording import CHOSEN, plural
from pgdyno.stats.group_commit import commit_delay_us
from pgdyno.stats.repeated import level_span, share_level, time_level, times

WAITED = 0.2
"""Share of sessions' active time that waits for a disk, from which on something is advised."""
ONE_EACH = 1.5
"""Reads under way by session that waits for one, up to which each asks for one at a time."""
THRESHOLDS = (
    f"Something is advised only where sessions wait for the disk {WAITED:.0%} of their time or"
    f" more: for reads, where up to {ONE_EACH:g} are under way for each session that waits; for"
    f" flushes, where half the time of one is {DELAY_US_MIN} µs or more, or where another disk ends"
    f" them ×{APART:g} as fast. Each is {CHOSEN}."
)
"""From which figures on something is advised."""
_DISK = "disk."
LEAST_MS = 10
"""Time of all requests of a window, below which it does not tell what one took: the kernel adds up
milliseconds, and a tenth may be rounding."""
_NS = 1e9
_MORE = "More rounds tell."

Figures = Mapping[str, float]
"""What is known of one window, by the fields of `DiskInUse`."""


@dataclass(frozen=True, slots=True)
class _Used:
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


@dataclass(frozen=True, slots=True)
class _Condition:
    """One thing that a piece of advice needs."""

    holds: bool | None  # None: the rounds do not tell
    doubt: str  # the sentence for it then


def storage_in_use(
    stages: Sequence[StageFacts],
    trials: Sequence[TrialRecord],
    sessions: Callable[[TrialRecord], RoundSessions | None],
    disks_of: Callable[[str | None], Sequence[str]],
    in_memory: Callable[[str | None], bool],
) -> StorageInUse | None:
    """What was seen, and what follows; None: all stages have one storage.

    Args:
        stages: In the order of the plan.
        trials: Those whose numbers are used.
        sessions: What they did in the window of a trial.
        disks_of: Whole disks below a folder of stages, None is pgdyno's own; (): not known.
        in_memory: Whether such a folder is kept in memory, which is no disk.
    """
    if len({one.folder for one in stages}) < 2:
        return None
    used = []
    for stage in stages:
        mine = [one for one in trials if one.stage == stage.name]
        rounds = {one.round: _figures(one, sessions(one)) for one in mine}
        used.append(_Used(_disk(stage, rounds), rounds, disks_of(stage.folder)))
    told, named = list(_advice(used)), [one.folder for one in stages]
    return StorageInUse(
        tuple(one.disk for one in used),
        tuple(one for one in dict.fromkeys(named) if one is not None and not in_memory(one)),
        None in named and not in_memory(None),
        tuple(one for one in told if isinstance(one, Advice)),
        tuple(one for one in told if isinstance(one, NotKnown)),
    )


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
        read, flush = (met.classes.get(name, 0.0) for name in ("read", "flush"))
        found |= {"wait_read": read, "wait_flush": flush, "waiting": read * met.active}
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
        wait_flush=of("wait_flush"),
        waiting=of("waiting"),
    )


def _advice(used: Sequence[_Used]) -> Iterator[Advice | NotKnown]:
    for one in used:
        yield from filter(None, (_reads(one), _commits(one)))
    yield from _apart(used)


def _told(
    where: str, what: str, needed: Sequence[_Condition], advice: Callable[[str, str], Advice]
) -> Advice | NotKnown | None:
    """What follows where all that it needs holds; None: something does not."""
    if any(one.holds is False for one in needed):
        return None
    doubts = [one.doubt for one in needed if one.holds is None]
    return NotKnown(where, what, " ".join([*doubts, _MORE])) if doubts else advice(where, what)


def _at_least(
    found: Level, least: float, what: str, text: Callable[[float], str], of: str = ""
) -> _Condition:
    """Whether a figure reaches a threshold; measured once, it does not where it lies below."""
    holds, mid = found.reaches(least), found.rounds.mid
    if found.low is None and mid < least:
        holds = False
    doubt = f"{what} {text(mid)}{of}{_interval(found, text)}, and it would be advised from"
    return _Condition(holds, f"{doubt} {text(least)} on, {CHOSEN}.")


def _interval(found: Level | Times, text: Callable[[float], str]) -> str:
    if found.low is None or found.high is None:
        return ", measured once"
    count = found.rounds.n if isinstance(found, Level) else found.one.n
    return f" ({text(found.low)} to {text(found.high)} in {plural(count, 'round')})"


def _ends(span: Span, text: Callable[[float], str]) -> str:
    """A median with the lowest and the highest round."""
    ends = f" ({text(span.low)} to {text(span.high)})" if span.n > 1 else ""
    return f"{text(span.mid)}{ends}"


def _waits(found: Level, what: str) -> _Condition:
    return _at_least(found, WAITED, f"Sessions wait for {what}", share_text, " of their time")


def _reads(used: _Used) -> Advice | NotKnown | None:
    """Where sessions wait for one page after another."""
    disk, waits = used.disk, used.waits("wait_read")
    pairs = [
        (one["reading"], one["waiting"])
        for one in used.rounds.values() if one.get("reading") and one.get("waiting")
    ]  # fmt: skip
    if waits is None or not pairs or None in (disk.reads_per_s, disk.read_s):
        return None
    each = times([reading for reading, _ in pairs], [waiting for _, waiting in pairs])
    several = each.reaches(ONE_EACH) if each.low is not None else each.ratio > ONE_EACH or None
    asks = _Condition(
        None if several is None else not several,
        f"For each session that waits {each.ratio:.2f} reads are under way"
        f"{_interval(each, '{:.2f}'.format)}, and it would be advised up to {ONE_EACH:g},"
        f" {CHOSEN}.",
    )
    needed = [_waits(waits, "reads"), asks]
    return _told(disk.stage, "Ask for many pages at once", needed, partial(_reads_at_once, disk))


def _reads_at_once(disk: DiskInUse, where: str, what: str) -> Advice:
    share, waiting, reading, per_s, each_s = _known(
        disk.wait_read, disk.waiting, disk.reading, disk.reads_per_s, disk.read_s
    )
    return Advice(
        where,
        what,
        f"sessions wait for reads {_ends(share, share_text)} of their time, {waiting.mid:.1f} of"
        f" them on average, with {reading.mid:.1f} reads under way; of {count_text(per_s.mid)}"
        f" reads a second each takes {_ends(each_s, _time)}",
        {},
        "effective_io_concurrency, maintenance_io_concurrency and, in 18, io_workers say how many;"
        f" up to how many the disk gives more for it is told by its probe. {INDEX_SCANS}",
        READS_PLAN,
    )


def _known(*figures: Span | None) -> Iterator[Span]:
    """What a piece of advice rests on: without it nothing would be advised."""
    for one in figures:
        assert one is not None, "advice rests on a figure that is not known"
        yield one


def _time(seconds: float) -> str:
    return ns_text(seconds * _NS)


def _commits(used: _Used) -> Advice | NotKnown | None:
    """Where sessions wait for flushes that take long enough to be shared on purpose."""
    disk, waits, flushes = used.disk, used.waits("wait_flush"), used.values("flush_s")
    if waits is None or not flushes:
        return None
    half = time_level([one / 2 for one in flushes])
    long = _at_least(half, DELAY_US_MIN / 1e6, "Half a flush takes", _time)
    needed = [_waits(waits, "flushes of WAL"), long]
    return _told(disk.stage, SHARE_FLUSHES, needed, partial(_share, disk))


def _share(disk: DiskInUse, where: str, _what: str) -> Advice:
    share, per_s, each_s = _known(disk.wait_flush, disk.flushes_per_s, disk.flush_s)
    return shared_flushes(
        where,
        f"sessions wait for flushes of WAL {_ends(share, share_text)} of their time; of"
        f" {count_text(per_s.mid)} flushes a second each takes the device {_ends(each_s, _time)}",
        commit_delay_us(each_s.mid * _NS),
    )


def _apart(used: Sequence[_Used]) -> Iterator[Advice | NotKnown]:
    """The disk whose flushes are that much quicker under one load that WAL belongs there."""
    told = [found for quick, slow in permutations(used, 2) if (found := _quicker(quick, slow))]
    told.sort(key=lambda each: each[0], reverse=True)
    by_ratio = [one for _, one in told]
    yield from sorted(by_ratio, key=lambda one: not isinstance(one, Advice))[:1]


def _quicker(quick: _Used, slow: _Used) -> tuple[float, Advice | NotKnown] | None:
    """How many times as fast one disk flushes as another, and what follows; None: nothing does."""
    one, other, waits = quick.disk, slow.disk, slow.waits("wait_flush")
    both = [
        (quick.rounds[number]["flush_s"], slow.rounds[number]["flush_s"])
        for number in sorted(quick.rounds.keys() & slow.rounds.keys())
        if "flush_s" in quick.rounds[number] and "flush_s" in slow.rounds[number]
    ]
    if one.first != other.first or may_share(quick.disks, slow.disks) or not both or waits is None:
        return None
    found = times([1 / fast for fast, _ in both], [1 / late for _, late in both])
    if found.ratio < APART:
        return None
    faster = _Condition(
        found.faster,
        f"The disk of {one.stage} ends flushes ×{found.ratio:.2f} as fast as that of {other.stage}"
        f"{_interval(found, '×{:.2f}'.format)}, and its rounds do not tell that it is faster.",
    )
    told = _told(
        one.stage, "Put WAL on the disk of this stage",
        [_waits(waits, f"flushes of WAL in {other.stage}"), faster],
        partial(_wal_apart, one, other),
    )  # fmt: skip
    return (found.ratio, told) if told else None


def _wal_apart(quick: DiskInUse, slow: DiskInUse, where: str, what: str) -> Advice:
    here, there, share = _known(quick.flush_s, slow.flush_s, slow.wait_flush)
    return Advice(
        where,
        what,
        f"a flush takes {_ends(here, _time)} there and {_ends(there, _time)} in {slow.stage}, where"
        f" sessions wait for flushes {_ends(share, share_text)} of their time",
        {},
        "`initdb --waldir`. The data may lie on the slower one, if both are disks of their own:"
        " checkpoints wait for it, commits do not.",
        None,
    )
