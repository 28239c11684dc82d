"""What follows from probes of storage for a server on it: settings to try, and what each rests on.

A probe measures devices, not PostgreSQL: each piece of advice is a thing to try, with the figures
that speak for it, and with a plan that measures it where there is one. What the figures do not
carry is not advised. Settings are those of PostgreSQL 18, with what earlier ones lack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from pgdyno.analysis.disk_facts import Advice
from pgdyno.analysis.storage_facts import PathFacts, StorageFacts
from pgdyno.model.floor import BLOCK_BYTES, GridPoint, Pattern
from pgdyno.model.floor_figures import PROGRAMS
from pgdyno.model.units import bytes_text, count_text, ns_text
from pgdyno.model.wording import plural

MANY_TIMES = 2.0
"""So many times as fast many requests at once must be, before it is worth asking for them."""
HINDERED = 0.7
"""Commits that keep a smaller share of their rate beside random writes are hindered by these."""
DELAY_US_MIN = 100
"""A shorter commit_delay drowns in the kernel's timer slack of 50 µs."""
APART = 1.25
"""Times by which the flushes of two disks must differ, before WAL is sent to the faster one."""
_IO_WORKERS_MAX = 32  # of io_workers
_CONCURRENCY_MAX = 1000  # of effective_io_concurrency
_FLUSH_AFTER_BYTES = 256 << 10  # checkpoint_flush_after, by default
_BGWRITER_FLUSH_AFTER_BYTES = 512 << 10  # bgwriter_flush_after, the same
_FLUSH_AFTER_MAX_BYTES = 2 << 20
READS_PLAN = "parallel-io"


def storage_advice(facts: StorageFacts) -> tuple[Advice, ...]:
    """All that follows, path by path, then what follows from several paths."""
    found = [one for path in facts.paths for one in _of_path(path, facts.cpus)]
    return (*found, *_of_several(facts.paths))


def _of_path(path: PathFacts, cpus: int) -> Iterator[Advice]:
    if path.claims.in_memory:  # no disk was measured
        return
    yield from _reads(path)
    yield from _scans(path, cpus)
    yield from _writes(path)
    yield from _commits(path)
    yield from _beside_commits(path)


def _at(path: PathFacts, pattern: Pattern, outstanding: int) -> GridPoint | None:
    """The fastest window with so many requests under way; None: there was none."""
    points = (one for one in path.of_pattern(pattern).fastest if one.outstanding == outstanding)
    return next(points, None)


def _many_times(path: PathFacts, pattern: Pattern) -> tuple[float, GridPoint, GridPoint] | None:
    """How many times as fast many requests are, one alone, and the least load near the peak."""
    one, knee = _at(path, pattern, 1), path.of_pattern(pattern).found.knee
    if one is None or not one.per_s:
        return None
    times = knee.per_s / one.per_s
    return (times, one, knee) if times >= MANY_TIMES else None


def _compared(what: str, one: GridPoint, knee: GridPoint, times: float) -> str:
    return (
        f"one {what} at a time reaches {count_text(one.per_s)}/s ({ns_text(1e9 / one.per_s)}"
        f" each, on average), {knee.outstanding} at once {count_text(knee.per_s)}/s,"
        f" {times:.1f} times as many"
    )


def _reads(path: PathFacts) -> Iterator[Advice]:
    if (found := _many_times(path, "random read")) is None:
        return
    times, one, knee = found
    depth = min(knee.outstanding, _CONCURRENCY_MAX)
    workers = min(knee.outstanding, _IO_WORKERS_MAX)
    yield Advice(
        path.path,
        "Ask for many pages at once",
        _compared("read", one, knee, times),
        {
            "effective_io_concurrency": str(depth),
            "maintenance_io_concurrency": str(depth),
            "io_workers": str(workers),
        },
        "io_workers is of 18, where each of them reads one page after another; io_method = io_uring"
        " needs none of them, in builds that have it. Before 18 only bitmap scans and vacuum read"
        " ahead. Index scans ask for one page at a time in every version: they gain from sessions.",
        READS_PLAN,
    )


def _scans(path: PathFacts, cpus: int) -> Iterator[Advice]:
    found = path.of_pattern("sequential read")
    alone = [one for one in path.grid if one.pattern == "sequential read" and one.jobs == 1]
    if cpus < 2 or not alone:
        return
    best_alone = max(alone, key=lambda one: one.per_s)
    knee = found.found.knee
    if knee.jobs == 1 or knee.per_s < MANY_TIMES * best_alone.per_s:
        return
    workers = min(knee.jobs, cpus)
    yield Advice(
        path.path,
        "Scan, vacuum and build indexes with several processes",
        f"one process reads {bytes_text(round(best_alone.bytes_per_s))}/s in sequence,"
        f" {knee.jobs} read {bytes_text(round(knee.bytes_per_s))}/s",
        {
            "max_parallel_workers_per_gather": str(workers),
            "max_parallel_maintenance_workers": str(workers),
        },
        f"Not more than the {cpus} CPUs. VACUUM (PARALLEL n) takes one process for each index.",
        None,
    )


def _writes(path: PathFacts) -> Iterator[Advice]:
    if (found := _many_times(path, "random write")) is None:
        return
    times, one, knee = found
    wanted = min(_FLUSH_AFTER_MAX_BYTES, knee.outstanding * BLOCK_BYTES)
    if wanted <= _FLUSH_AFTER_BYTES:  # as it is
        return
    settings = {"checkpoint_flush_after": f"{wanted >> 10}kB"}
    if wanted > _BGWRITER_FLUSH_AFTER_BYTES:
        settings["bgwriter_flush_after"] = f"{wanted >> 10}kB"
    yield Advice(
        path.path,
        "Let checkpoints hand over more at a time",
        _compared("write", one, knee, times),
        {**settings, "checkpoint_completion_target": "0.9"},
        "One process writes for a checkpoint, and one in the background between them. What each"
        " asks the kernel to write at a time is all that the device has under way of it; commits"
        " that wait meanwhile wait longer.",
        None,
    )


def _commits(path: PathFacts) -> Iterator[Advice]:
    if path.commit_delay_us < DELAY_US_MIN:
        return
    figure, flush = path.flush, path.flush.flush
    spread = f" ({ns_text(flush.low)} to {ns_text(flush.high)})" if flush.n > 1 else ""
    yield Advice(
        path.path,
        "Let commits share flushes",
        f"a flush takes {ns_text(figure.flush.mid)}{spread}, so one client commits at most"
        f" {count_text(figure.commits.mid)} times a second, while"
        f" {plural(16, 'client')} that share flushes may reach"
        f" {count_text(path.of_clients(16).at_most.mid)}",
        {"commit_delay": str(path.commit_delay_us), "commit_siblings": "5"},
        "With few sessions, or where flushes are shared anyway, a delay only delays.",
        "tpcc-six-stages",
    )


def _beside_commits(path: PathFacts) -> Iterator[Advice]:
    # Of one program, round by round: another one's rate, or another moment's, proves nothing.
    shares = [one.under.per_s / one.alone.per_s for one in path.mixed]
    if not shares or max(shares) >= 1 or median(shares) >= HINDERED:
        return
    alone = path.flush.programs[PROGRAMS.index("fio")].as_rates().mid
    yield Advice(
        path.path,
        "Keep WAL apart from what checkpoints write",
        f"commits fall from {count_text(alone)}/s to {count_text(path.under_checkpoint.mid)}/s"
        f" beside {count_text(path.beside_commits.mid)} random writes a second",
        {},
        "`initdb --waldir` puts WAL on a device of its own, which then does nothing else. Another"
        " folder of the same disk changes nothing.",
        None,
    )


def _of_several(paths: Sequence[PathFacts]) -> Iterator[Advice]:
    """What two disks can do that one cannot."""
    disks = [one for one in paths if not one.claims.in_memory]
    apart: list[PathFacts] = []
    for path in disks:
        if not any(_share(path, other) for other in apart):
            apart.append(path)
    if len(apart) < 2:
        return
    ordered = sorted(apart, key=lambda one: one.flush.flush.mid)
    for quick, slow in pairwise(ordered):
        if slow.flush.flush.mid >= APART * quick.flush.flush.mid:
            yield Advice(
                quick.path,
                f"Put WAL on {quick.path}",
                f"a flush takes {ns_text(quick.flush.flush.mid)} there and"
                f" {ns_text(slow.flush.flush.mid)} on {slow.path}",
                {},
                "`initdb --waldir`. The data may lie on the slower one: checkpoints wait for it,"
                " commits do not.",
                None,
            )
            break
    reads = [one.of_pattern("random read").found.peak.per_s for one in apart]
    names = " and ".join(one.path for one in apart)
    yield Advice(
        names,
        "Spread tables and indexes over these disks",
        f"together they may serve {count_text(sum(reads))} random reads a second, the fastest"
        f" alone {count_text(max(reads))}",
        {},
        "By tablespaces, or by partitions in several of them; `temp_tablespaces` for sorts. A"
        " backup and a standby then need all of them.",
        None,
    )


def _share(one: PathFacts, other: PathFacts) -> bool:
    """Whether two paths may lie on the same disk; where that is not known they may."""
    ours, theirs = set(one.claims.disks), set(other.claims.disks)
    return not ours or not theirs or bool(ours & theirs)
