"""Of each thing that may be done about storage, what the windows of a load say of it.

A load shows a disk as it asks it: how many requests were under way, and how long each took. What
the disk would do with more of them at once is not in that, and not advised upon: probes tell it,
see `storage_advice`. As there, a window is one value of its round, and advice rests on what the
rounds tell together: where they do not tell on which side of a threshold a figure lies, that is
not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pgdyno.analysis.disk_facts import Advice, DiskInUse, NotForThisLoad, NotKnown
from pgdyno.analysis.disk_windows import DiskWindows
from pgdyno.analysis.storage_advice import APART, DELAY_US_MIN
from pgdyno.analysis.storage_steps import (
    BY_TABLESPACES,
    COMMITS,
    DATA_MAY_STAY,
    MAINTENANCE,
    READS,
    READS_LIMITS,
    SCANS,
    SPREAD,
    WAL_APART,
    WRITES,
    Step,
    interval_text,
    shared_flushes,
)
from pgdyno.model.floor_figures import Level, Span, Times
from pgdyno.model.shared_storage import may_share
from pgdyno.model.units import count_text, ns_text, share_text
from pgdyno.model.wording import CHOSEN, listed
from pgdyno.stats.group_commit import commit_delay_us
from pgdyno.stats.repeated import time_level, times

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
_NS = 1e9
_MORE = "More rounds tell."
_SAMPLED = 'Telemetry tells it (`telemetry = "default"`), with the right to see all sessions.'
_COUNTED = "Longer windows tell, or a disk whose requests the kernel counts."
_SECOND = "Name a folder on another disk by `--folder`."
_WAL_HERE = "Put WAL on the disk of this stage"

Told = Advice | NotKnown | NotForThisLoad
Judge = Callable[[DiskWindows, Sequence[DiskWindows]], Told]
"""Of a stage, and of those with the same load on other disks."""


@dataclass(frozen=True, slots=True)
class _Condition:
    """One thing that a piece of advice needs."""

    holds: bool | None  # None: it is not known
    fact: str  # the figures
    limit: str = ""  # up to, or from which chosen figure on, it would hold; empty: it needs none
    tells: str = _MORE  # what would make it known

    @property
    def against(self) -> str:
        """Why it does not hold, as a sentence."""
        return f"{self.fact}, and {self.limit}." if self.limit else f"{self.fact}."

    @property
    def doubt(self) -> str:
        """Why it is not known, as a sentence."""
        return f"{self.fact}, and {self.limit}, {CHOSEN}." if self.limit else f"{self.fact}."


_NO_SECOND = _Condition(None, "No second disk was measured with this load", tells=_SECOND)


def told_of(used: DiskWindows, all_used: Sequence[DiskWindows]) -> Iterator[tuple[Step, Told]]:
    """What the windows of a stage on a disk say, thing by thing.

    Args:
        used: The stage.
        all_used: All stages whose data lie on disks.
    """
    others = [
        one for one in all_used
        if one.disk.first == used.disk.first and not may_share(one.disks, used.disks)
    ]  # fmt: skip
    for step, judge in _JUDGES:
        yield step, judge(used, others)


def never_told(places: Sequence[str]) -> Iterator[tuple[Step, NotKnown]]:
    """What no load's windows tell of any disk, in folders that are called so."""
    for step in (MAINTENANCE, SCANS):
        yield step, NotKnown(
            listed(list(places)), step.what,
            "The windows do not tell what vacuum and index builds read apart from the load."
            f" {_probe_tells(step)}",
            step.plan,
        )  # fmt: skip


def _probe_tells(step: Step) -> str:
    return f"`pgdyno storage` tells, by {step.probed}."


def _told(
    where: str, step: Step, needed: Sequence[_Condition], advice: Callable[[str, str], Advice]
) -> Told:
    """Advice where all that it needs holds."""
    if all(one.holds for one in needed):
        return advice(where, step.what)
    return _not_advised(where, step, needed)


def _not_advised(where: str, step: Step, needed: Sequence[_Condition]) -> Told:
    """Why not, where something that it needs does not hold, or is not known."""
    if missing := [one for one in needed if one.holds is False]:
        return NotForThisLoad(where, step.what, missing[0].against)
    doubts = [one for one in needed if one.holds is None]
    tells = dict.fromkeys(one.tells for one in doubts)
    return NotKnown(where, step.what, " ".join([*(one.doubt for one in doubts), *tells]), step.plan)


def _at_least(
    found: Level, least: float, what: str, text: Callable[[float], str], of: str = ""
) -> _Condition:
    """Whether a figure reaches a threshold; measured once, it does not where it lies below."""
    holds, mid = found.reaches(least), found.rounds.mid
    if found.low is None and mid < least:
        holds = False
    fact = f"{what} {text(mid)}{of}{_interval(found, text)}"
    return _Condition(holds, fact, f"it would be advised from {text(least)} on")


def _interval(found: Level | Times, text: Callable[[float], str]) -> str:
    if found.low is None or found.high is None:
        return ", measured once"
    count = found.rounds.n if isinstance(found, Level) else found.one.n
    return f" ({interval_text(f'{text(found.low)} to {text(found.high)}', count)})"


def _ends(span: Span, text: Callable[[float], str]) -> str:
    """A median with the lowest and the highest round."""
    ends = f" ({text(span.low)} to {text(span.high)})" if span.n > 1 else ""
    return f"{text(span.mid)}{ends}"


def _waits(used: DiskWindows, name: str, what: str) -> _Condition:
    if (found := used.waits(name)) is None:
        sessions = f"What sessions of {used.disk.stage} waited for was not sampled"
        return _Condition(None, sessions, tells=_SAMPLED)
    return _at_least(found, WAITED, f"Sessions wait for {what}", share_text, " of their time")


def _counted(what: str, *figures: Span | None) -> _Condition:
    """Whether a disk has told what advice would name."""
    return _Condition(None if None in figures else True, what, tells=_COUNTED)


def _known(*figures: Span | None) -> Iterator[Span]:
    """What a piece of advice rests on: without it nothing would be advised."""
    for one in figures:
        assert one is not None, "advice rests on a figure that is not known"
        yield one


def _time(seconds: float) -> str:
    return ns_text(seconds * _NS)


def _reads(used: DiskWindows, _others: Sequence[DiskWindows]) -> Told:
    """Where sessions wait for one page after another."""
    disk = used.disk
    pairs = [
        (one["reading"], one["waiting"])
        for one in used.rounds.values() if one.get("reading") and one.get("waiting")
    ]  # fmt: skip
    known = None if not pairs else disk.read_s
    needed = [
        _waits(used, "wait_read", "reads"),
        _counted(f"How long a read takes in {disk.stage} is not known", disk.reads_per_s, known),
    ]
    if known is not None:
        needed.append(_one_each(times(*zip(*pairs, strict=True))))
    return _told(disk.stage, READS, needed, partial(_reads_at_once, disk))


def _one_each(each: Times) -> _Condition:
    several = each.reaches(ONE_EACH) if each.low is not None else each.ratio > ONE_EACH or None
    return _Condition(
        None if several is None else not several,
        f"For each session that waits {each.ratio:.2f} reads are under way"
        f"{_interval(each, '{:.2f}'.format)}",
        f"it would be advised up to {ONE_EACH:g}",
    )


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
        "effective_io_concurrency and, in 18, io_workers say how many; up to how many the disk"
        f" gives more for it is told by its probe. {READS_LIMITS}",
        READS.plan,
    )


def _spread(used: DiskWindows, others: Sequence[DiskWindows]) -> Told:
    """Where sessions wait for reads on either of two disks."""
    seen = [one for one in others if one.disk.reads_per_s is not None]
    if not seen or used.disk.reads_per_s is None:
        needed = [_waits(used, "wait_read", "reads"), _NO_SECOND]
        return _not_advised(used.disk.stage, SPREAD, needed)
    other = max(seen, key=lambda one: max(one.values("reads_per_s")))
    # In an order of their own, so that each of two stages tells the same.
    first, second = sorted((used, other), key=lambda one: one.disk.stage)
    needed = [_waits(one, "wait_read", f"reads in {one.disk.stage}") for one in (first, second)]
    return _told(used.disk.stage, SPREAD, needed, partial(_both, first.disk, second.disk))


def _both(one: DiskInUse, other: DiskInUse, _where: str, what: str) -> Advice:
    here, there = (
        f"{_ends(share, share_text)} of their time in {disk.stage}, with {_ends(reads, count_text)}"
        " reads a second"
        for disk in (one, other)
        for share, reads in [tuple(_known(disk.wait_read, disk.reads_per_s))]
    )
    return Advice(
        f"{one.stage} and {other.stage}",
        what,
        f"sessions wait for reads {here}, and {there}; what both disks serve together was not"
        " measured",
        {},
        BY_TABLESPACES,
        SPREAD.plan,
    )


def _writes(used: DiskWindows, _others: Sequence[DiskWindows]) -> Told:
    """Where sessions write pages themselves, or wait until the kernel takes them."""
    disk = used.disk
    writes = _waits(used, "wait_write", "writes of pages")
    commits = _waits(used, "wait_flush", "flushes of WAL")
    if writes.holds is False and commits.holds is not False:
        beside = (
            f"{commits.fact}; the windows do not tell whether what checkpoints write beside them"
            " is the cause"
        )
        untold = _Condition(None, beside, tells=_probe_tells(WRITES))
        return _not_advised(disk.stage, WRITES, [untold])
    what = f"How long a write takes in {disk.stage} is not known"
    needed = [writes, _counted(what, disk.writes_per_s, disk.write_s)]
    return _told(disk.stage, WRITES, needed, partial(_handed_over, disk))


def _handed_over(disk: DiskInUse, where: str, what: str) -> Advice:
    share, per_s, each_s = _known(disk.wait_write, disk.writes_per_s, disk.write_s)
    return Advice(
        where,
        what,
        f"sessions wait for writes of pages {_ends(share, share_text)} of their time; of"
        f" {count_text(per_s.mid)} writes a second each takes the disk {_ends(each_s, _time)}",
        {},
        "checkpoint_flush_after and bgwriter_flush_after say after how many bytes each asks the"
        " kernel to write; up to how many at once the disk gives more for it is told by its probe."
        " With bgwriter_lru_maxpages and bgwriter_delay the background writer writes more of what"
        " sessions write themselves.",
        WRITES.plan,
    )


def _commits(used: DiskWindows, _others: Sequence[DiskWindows]) -> Told:
    """Where sessions wait for flushes that take long enough to be shared on purpose."""
    disk, flushes = used.disk, used.values("flush_s")
    needed = [_waits(used, "wait_flush", "flushes of WAL")]
    if flushes:
        half = time_level([one / 2 for one in flushes])
        needed.append(_at_least(half, DELAY_US_MIN / 1e6, "Half a flush takes", _time))
    else:
        needed.append(_counted(f"How long a flush takes in {disk.stage} is not known", None))
    return _told(disk.stage, COMMITS, needed, partial(_share, disk))


def _share(disk: DiskInUse, where: str, _what: str) -> Advice:
    share, per_s, each_s = _known(disk.wait_flush, disk.flushes_per_s, disk.flush_s)
    return shared_flushes(
        where,
        f"sessions wait for flushes of WAL {_ends(share, share_text)} of their time; of"
        f" {count_text(per_s.mid)} flushes a second each takes the device {_ends(each_s, _time)}",
        commit_delay_us(each_s.mid * _NS),
    )


def _wal_apart(slow: DiskWindows, others: Sequence[DiskWindows]) -> Told:
    """Where another disk ends flushes that much quicker under one load that WAL belongs there."""
    waits = _waits(slow, "wait_flush", f"flushes of WAL in {slow.disk.stage}")
    if waits.holds is False or not others:
        needed = [waits] if others else [waits, _NO_SECOND]
        return _not_advised(slow.disk.stage, WAL_APART, needed)
    told = [found for quick in others if (found := _quicker(quick, slow, waits))]
    if not told:
        unknown = _counted("How long flushes take on both disks is not known", None)
        return _not_advised(slow.disk.stage, WAL_APART, [waits, unknown])
    order = (Advice, NotKnown, NotForThisLoad)
    return min(told, key=lambda each: (order.index(type(each[1])), -each[0]))[1]


def _quicker(quick: DiskWindows, slow: DiskWindows, waits: _Condition) -> tuple[float, Told] | None:
    """How many times as fast one disk flushes as another, and what follows; None: not known."""
    one, other = quick.disk, slow.disk
    both = [
        (quick.rounds[number]["flush_s"], slow.rounds[number]["flush_s"])
        for number in sorted(quick.rounds.keys() & slow.rounds.keys())
        if "flush_s" in quick.rounds[number] and "flush_s" in slow.rounds[number]
    ]
    if not both:
        return None
    found = times([1 / fast for fast, _ in both], [1 / late for _, late in both])
    fact = (
        f"The disk of {one.stage} ends flushes ×{found.ratio:.2f} as fast as that of {other.stage}"
        f"{_interval(found, '×{:.2f}'.format)}"
    )
    if found.ratio < APART:
        slower = _Condition(False, fact, f"it would be advised from ×{APART:g} on")
        return found.ratio, _not_advised(other.stage, WAL_APART, [slower])
    told = f"{fact}, and its rounds do not tell that it is faster"
    faster = _Condition(found.faster, told)
    step = Step(_WAL_HERE, WAL_APART.by, WAL_APART.probed, WAL_APART.plan)
    return found.ratio, _told(one.stage, step, [waits, faster], partial(_wal_there, one, other))


def _wal_there(quick: DiskInUse, slow: DiskInUse, where: str, what: str) -> Advice:
    here, there, share = _known(quick.flush_s, slow.flush_s, slow.wait_flush)
    return Advice(
        where,
        what,
        f"a flush takes {_ends(here, _time)} there and {_ends(there, _time)} in {slow.stage}, where"
        f" sessions wait for flushes {_ends(share, share_text)} of their time",
        {},
        DATA_MAY_STAY,
        WAL_APART.plan,
    )


_JUDGES: tuple[tuple[Step, Judge], ...] = (
    (READS, _reads),
    (SPREAD, _spread),
    (WRITES, _writes),
    (WAL_APART, _wal_apart),
    (COMMITS, _commits),
)
