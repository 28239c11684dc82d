"""What follows from probes of storage for a server on it: settings to try, and what each rests on.

A probe measures devices, not PostgreSQL: each piece of advice is a thing to try, with the figures
that speak for it, and with a plan that measures it where there is one. What the figures do not
carry is not advised. Settings are those of PostgreSQL 18, with what earlier ones lack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from pgdyno.analysis.disk_facts import Advice, NotKnown
from pgdyno.analysis.storage_facts import PathFacts, StorageFacts
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
    interval_text,
    shared_flushes,
)
from pgdyno.model.floor import BLOCK_BYTES, IN_SEQUENCE, Pattern
from pgdyno.model.floor_figures import PROGRAMS, Span, Times
from pgdyno.model.shared_storage import may_share
from pgdyno.model.units import bytes_text, count_text, ends_text, ns_text
from pgdyno.model.wording import CHOSEN, plural
from pgdyno.stats.group_commit import commit_delay_us
from pgdyno.stats.repeated import times

MANY_TIMES = 2.0
"""So many times as fast many requests at once must be, before it is worth asking for them. Chosen:
what a server gains is less, and settings that bring little are not worth their risk."""
HINDERED = 0.7
"""Commits that keep a smaller share of their rate beside random writes are hindered by these.
Chosen: what a checkpoint of a server writes is less than all that a disk takes."""
DELAY_US_MIN = 100
"""A shorter commit_delay drowns in the kernel's timer slack of 50 µs."""
APART = 1.25
"""Times by which the flushes of two disks must differ, before WAL is sent to the faster one.
Chosen: to move WAL takes a stop of the server, for a gain of which commits see a part."""
THRESHOLDS = (
    f"Many requests at once are advised where they are ×{MANY_TIMES:g} as fast as one at a time;"
    f" WAL on another disk, where commits keep less than {HINDERED:.0%} of their rate beside"
    f" writes, or where that disk flushes ×{APART:g} as fast; commit_delay, where half the time of"
    f" one flush is {DELAY_US_MIN} µs or more. Each is {CHOSEN}."
)
"""From which figures on something is advised."""
_FIO = PROGRAMS.index("fio")
_IO_WORKERS_MAX = 32  # of io_workers
_CONCURRENCY_MAX = 1000  # of effective_io_concurrency
_FLUSH_AFTER_BYTES = 256 << 10  # checkpoint_flush_after, by default
_BGWRITER_FLUSH_AFTER_BYTES = 512 << 10  # bgwriter_flush_after, the same
_FLUSH_AFTER_MAX_BYTES = 2 << 20
_KNEE = (
    "How many is where the grid stopped rising, or its largest load, where it did not: more may be"
    " better then. Of the grid each load was measured once."
)


def storage_advice(facts: StorageFacts) -> tuple[Advice, ...]:
    """All that follows, path by path, then what follows from several paths."""
    return tuple(one for one in _all(facts) if isinstance(one, Advice))


def not_known(facts: StorageFacts) -> tuple[NotKnown, ...]:
    """What might follow, were it known: figures whose spread is wider than what they differ by."""
    return tuple(one for one in _all(facts) if isinstance(one, NotKnown))


def _all(facts: StorageFacts) -> Iterator[Advice | NotKnown]:
    for path in facts.paths:
        if not path.claims.in_memory:  # else no disk was measured
            yield from _reads(path)
            yield from _scans(path, facts.cpus)
            yield from _writes(path)
            yield from _commits(path)
            yield from _beside_commits(path)
    yield from _of_several(facts.paths)


def _rates(rates: Span, text: Callable[[float], str] = count_text) -> str:
    spread = f" ({text(rates.low)} to {text(rates.high)})" if rates.n > 1 else ""
    return f"{text(rates.mid)}/s{spread}"


def _interval(found: Times) -> str:
    if found.low is None or found.high is None:
        return f"×{found.ratio:.2f}, each measured once"
    ends = ends_text(found.low, found.high, 2)
    return f"×{found.ratio:.2f} ({interval_text(ends, found.one.n)})"


def _doubtful(
    where: str, what: str, of: str, found: Times, least: float, plan: str | None = None
) -> NotKnown:
    return NotKnown(
        where,
        what,
        f"{of} {_interval(found)}, and it would be advised from ×{least:g} on, {CHOSEN}. More"
        " `--rounds` and longer `--seconds` tell.",
        plan,
    )


def _many_times(path: PathFacts, pattern: Pattern) -> Times | None:
    """Many requests against one at a time, by rounds; else by single windows. None: neither."""
    if (found := path.many_times.get(pattern)) is not None:
        return found
    knee = path.of_pattern(pattern).found.knee
    alone = [one for one in path.grid if one.pattern == pattern and one.jobs == 1]
    if pattern not in IN_SEQUENCE:
        alone = [one for one in alone if one.depth == 1]
    one = max(alone, key=lambda one: one.per_s, default=None)
    if one is None or not one.per_s or knee.per_s < MANY_TIMES * one.per_s:
        return None
    return times([knee.per_s], [one.per_s])


def _at_once(path: PathFacts, pattern: Pattern) -> int:
    """How many requests are worth having under way: the knee, or where there is none, all."""
    found = path.of_pattern(pattern).found
    return found.knee.outstanding if found.knee.outstanding > 1 else found.peak.outstanding


def _most(path: PathFacts, pattern: Pattern) -> int:
    """Requests under way that one at a time is compared with: in rounds the heaviest load."""
    found = path.of_pattern(pattern)
    last = found.fastest[-1] if pattern in path.many_times else found.found.knee
    return last.outstanding


def _against(path: PathFacts, pattern: Pattern) -> str:
    return f"{_most(path, pattern)} {pattern}s at once against one at a time:"


def _reads(path: PathFacts) -> Iterator[Advice | NotKnown]:
    if (found := _many_times(path, "random read")) is None:
        return
    if (reached := found.reaches(MANY_TIMES)) is None:
        of = _against(path, "random read")
        for step in (READS, MAINTENANCE):
            yield _doubtful(path.path, step.what, of, found, MANY_TIMES, step.plan)
    if not reached:
        return
    many = _at_once(path, "random read")
    depth, workers = str(min(many, _CONCURRENCY_MAX)), str(min(many, _IO_WORKERS_MAX))
    figures = (
        f"one read at a time reaches {_rates(found.one)}, {_most(path, 'random read')} at once"
        f" {_rates(found.many)}, {_interval(found)}"
    )
    asked = {"effective_io_concurrency": depth, "io_workers": workers}
    yield Advice(path.path, READS.what, figures, asked, f"{_KNEE} {READS_LIMITS}", READS.plan)
    maintained = {"maintenance_io_concurrency": depth}
    yield Advice(path.path, MAINTENANCE.what, figures, maintained, _KNEE, MAINTENANCE.plan)


def _scans(path: PathFacts, cpus: int) -> Iterator[Advice | NotKnown]:
    jobs = max((one.jobs for one in path.grid if one.pattern == "sequential read"), default=1)
    found = _many_times(path, "sequential read")
    if cpus < 2 or jobs < 2 or found is None:
        return
    if (reached := found.reaches(MANY_TIMES)) is None:
        of = f"{plural(jobs, 'process', 'processes')} against one, in sequence,"
        yield _doubtful(path.path, SCANS.what, of, found, MANY_TIMES, SCANS.plan)
    if not reached:
        return
    knee = path.of_pattern("sequential read").found.knee.jobs
    workers = min(knee if knee > 1 else jobs, cpus)
    one, many = (_rates(rates, _bytes_text) for rates in (found.one, found.many))
    yield Advice(
        path.path,
        SCANS.what,
        f"one process reads {one} in sequence, {jobs} read {many}, {_interval(found)}",
        {
            "max_parallel_workers_per_gather": str(workers),
            "max_parallel_maintenance_workers": str(workers),
        },
        f"Not more than the {cpus} CPUs. VACUUM (PARALLEL n) takes one process for each index.",
        SCANS.plan,
    )


def _bytes_text(pages: float) -> str:
    return bytes_text(round(pages * BLOCK_BYTES))


def _writes(path: PathFacts) -> Iterator[Advice | NotKnown]:
    what = "Let checkpoints hand over more at a time"
    wanted = min(_FLUSH_AFTER_MAX_BYTES, _at_once(path, "random write") * BLOCK_BYTES)
    found = _many_times(path, "random write")
    if found is None or wanted <= _FLUSH_AFTER_BYTES:  # as it is
        return
    if (reached := found.reaches(MANY_TIMES)) is None:
        of = _against(path, "random write")
        yield _doubtful(path.path, what, of, found, MANY_TIMES, WRITES.plan)
    if not reached:
        return
    settings = {"checkpoint_flush_after": f"{wanted >> 10}kB"}
    if wanted > _BGWRITER_FLUSH_AFTER_BYTES:
        settings["bgwriter_flush_after"] = f"{wanted >> 10}kB"
    yield Advice(
        path.path,
        what,
        f"one write at a time reaches {_rates(found.one)}, {_most(path, 'random write')} at once"
        f" {_rates(found.many)}, {_interval(found)}",
        {**settings, "checkpoint_completion_target": "0.9"},
        f"{_KNEE} One process writes for a checkpoint, and one in the background between them. What"
        " each asks the kernel to write at a time is all that the device has under way of it;"
        " commits that wait meanwhile wait longer.",
        WRITES.plan,
    )


def delay_to_try_us(path: PathFacts) -> int | None:
    """`commit_delay`; 0: flushes are too short for one; None: not known.

    Where flushes are faster otherwise than back to back, a server may meet either, and half
    of one is not known, unless half of the longer one is too short as well.
    """
    if path.flush.faster_otherwise:
        return None if commit_delay_us(path.flush.in_a_row.mid) >= DELAY_US_MIN else 0
    return path.commit_delay_us if path.commit_delay_us >= DELAY_US_MIN else 0


def _commits(path: PathFacts) -> Iterator[Advice | NotKnown]:
    figure, flush = path.flush, path.flush.flush
    if (delay_us := delay_to_try_us(path)) == 0:
        return
    if delay_us is None:
        yield NotKnown(
            path.path, COMMITS.what,
            f"a flush takes {ns_text(flush.mid)} {figure.otherwise}, and"
            f" {ns_text(figure.in_a_row.mid)} back to back, so that half of one is not"
            " known. More `--rounds` and longer `--seconds` tell.",
            COMMITS.plan,
        )  # fmt: skip
        return
    spread = f" ({ns_text(flush.low)} to {ns_text(flush.high)})" if flush.n > 1 else ""
    yield shared_flushes(
        path.path,
        f"a flush takes {ns_text(figure.flush.mid)}{spread}, so one client commits at most"
        f" {count_text(figure.commits.mid)} times a second, while"
        f" {plural(16, 'client')} that share flushes may reach"
        f" {count_text(path.of_clients(16).at_most.mid)}",
        delay_us,
    )


def _beside_commits(path: PathFacts) -> Iterator[Advice | NotKnown]:
    what = "Keep WAL apart from what checkpoints write"
    if not path.mixed:
        return
    # Of one program, round by round: another one's rate, or another moment's, proves nothing.
    found = times([one.alone.per_s for one in path.mixed], [one.under.per_s for one in path.mixed])
    if (reached := found.reaches(1 / HINDERED)) is None:
        of = "commits alone against those beside random writes:"
        yield _doubtful(path.path, what, of, found, round(1 / HINDERED, 2))
    if not reached:
        return
    alone = path.flush.programs[_FIO].as_rates().mid
    yield Advice(
        path.path,
        what,
        f"commits fall from {count_text(alone)}/s to {count_text(path.under_checkpoint.mid)}/s"
        f" beside {count_text(path.beside_commits.mid)} random writes a second: alone"
        f" {_interval(found)}",
        {},
        "`initdb --waldir` puts WAL on a device of its own, which then does nothing else. Another"
        " folder of the same disk changes nothing.",
        WAL_APART.plan,
    )


def _of_several(paths: Sequence[PathFacts]) -> Iterator[Advice | NotKnown]:
    """What two disks can do that one cannot."""
    disks = [one for one in paths if not one.claims.in_memory]
    apart: list[PathFacts] = []
    for path in disks:
        if not any(may_share(path.claims.disks, other.claims.disks) for other in apart):
            apart.append(path)
    if len(apart) < 2:
        return
    ordered = sorted(apart, key=lambda one: one.flush.programs[_FIO].mid)
    yield from _wal_apart(ordered)
    each = [_random_reads(one) for one in apart]
    names = " and ".join(one.path for one in apart)
    yield Advice(
        names,
        SPREAD.what,
        f"together they may serve {count_text(sum(one.mid for one in each))} random reads a second,"
        f" the fastest alone {_rates(max(each, key=lambda one: one.mid))}",
        {},
        BY_TABLESPACES,
        SPREAD.plan,
    )


def _wal_apart(ordered: Sequence[PathFacts]) -> Iterator[Advice | NotKnown]:
    """The disk whose flushes are quicker than those of the next one; of pairs the first.

    By one kind of probe on both, that which writes as WAL is written: the figures of two paths may
    be of two kinds, and their ratio then tells of kinds, not of disks.
    """
    for quick, slow in pairwise(ordered):
        quick_ns, slow_ns = (one.flush.programs[_FIO].mid for one in (quick, slow))
        if slow_ns < APART * quick_ns:
            continue
        what = f"Put WAL on {quick.path}"
        many, one = ([each.alone.per_s for each in path.mixed] for path in (quick, slow))
        found = times(many, one)
        if found.faster is None:
            yield NotKnown(
                quick.path, what,
                f"commits by fio against those on {slow.path}: {_interval(found)}. The two"
                " cannot be told apart. More `--rounds` and longer `--seconds` tell.",
            )  # fmt: skip
        if not found.faster:
            continue
        yield Advice(
            quick.path,
            what,
            f"by fio a flush takes {ns_text(quick_ns)} there and {ns_text(slow_ns)} on"
            f" {slow.path}, {_interval(found)}",
            {},
            DATA_MAY_STAY,
            WAL_APART.plan,
        )
        return


def _random_reads(path: PathFacts) -> Span:
    """What the heaviest load reached, by rounds; else the most that one window did."""
    if (found := path.many_times.get("random read")) is not None:
        return found.many
    peak = path.of_pattern("random read").found.peak.per_s
    return Span(peak, peak, peak, 1)
