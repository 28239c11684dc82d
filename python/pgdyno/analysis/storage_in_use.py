"""What stages on several storages saw of their disks, and what follows for a server.

A load shows a disk as it asks it: how many requests were under way, and how long each took. What
the disk would do with more of them at once is not in that, and not advised upon: probes tell it,
see `storage_advice`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

from pgdyno.analysis.disk_facts import Advice, DiskInUse, StorageInUse
from pgdyno.analysis.facts import StageFacts
from pgdyno.analysis.session_facts import SessionShare, StageSessions
from pgdyno.analysis.storage_advice import APART, DELAY_US_MIN, READS_PLAN
from pgdyno.model.run import TrialRecord
from pgdyno.model.units import count_text, ns_text, share_text
from pgdyno.stats.group_commit import commit_delay_us

WAITED = 0.2
"""Share of sessions' active time that waits for a disk, from which on something is advised."""
ONE_EACH = 1.5
"""Reads under way by session that waits for one, up to which each asks for one at a time."""
_DISK = "disk."
_NS = 1e9


def storage_in_use(
    stages: Sequence[StageFacts],
    trials: Sequence[TrialRecord],
    sessions: Sequence[StageSessions],
) -> StorageInUse | None:
    """What was seen, and what follows; None: all stages have one storage.

    Args:
        stages: In the order of the plan.
        trials: Those whose numbers are used.
        sessions: What they did in the windows.
    """
    if len({one.folder for one in stages}) < 2:
        return None
    of = {one.stage: one for one in sessions}
    disks = tuple(
        _disk(stage, [one for one in trials if one.stage == stage.name], of.get(stage.name))
        for stage in stages
    )
    return StorageInUse(
        disks,
        tuple(dict.fromkeys(one.folder for one in stages if one.folder is not None)),
        any(one.folder is None for one in stages),
        tuple(_advice(disks)),
    )


def _disk(
    stage: StageFacts, trials: Sequence[TrialRecord], sessions: StageSessions | None
) -> DiskInUse:
    results = [one.result for one in trials if one.result is not None]
    seconds = sum(one.window_s for one in results)

    def grown(name: str) -> float | None:
        """In all windows together; None: of one it is not known."""
        values = [one.deltas.get(f"{_DISK}{name}") for one in results]
        return None if not values or None in values else sum(one or 0.0 for one in values)

    def share(name: str) -> float | None:
        return None if sessions is None else _share(sessions, name)

    reads, writes, flushes = (grown(name) for name in ("reads", "writes", "flushes"))
    return DiskInUse(
        stage=stage.name,
        folder=stage.folder,
        first=stage.to_first.base if stage.to_first else stage.name,
        reads_per_s=_over(reads, seconds),
        read_s=_over(grown("read_s"), reads),
        reading=_over(grown("read_s"), seconds),
        writes_per_s=_over(writes, seconds),
        write_s=_over(grown("write_s"), writes),
        flushes_per_s=_over(flushes, seconds),
        flush_s=_over(grown("flush_s"), flushes),
        wait_read=share("read"),
        wait_flush=share("flush"),
        active=sessions.active.average if sessions else None,
    )


def _over(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _share(sessions: StageSessions, name: str) -> float:
    classes: Mapping[str, SessionShare] = {one.name: one for one in sessions.by["class"]}
    return classes[name].share if name in classes else 0.0


def _advice(disks: Sequence[DiskInUse]) -> Iterator[Advice]:
    for disk in disks:
        yield from _reads(disk)
        yield from _commits(disk)
    yield from _apart(disks)


def _reads(disk: DiskInUse) -> Iterator[Advice]:
    """Where sessions wait for one page after another."""
    told = (disk.wait_read, disk.active, disk.reads_per_s, disk.read_s, disk.reading)
    if None in told:
        return
    share, active, per_s, each_s, reading = (one or 0.0 for one in told)
    waiting = share * active
    if share < WAITED or reading > ONE_EACH * waiting:
        return
    yield Advice(
        disk.stage,
        "Ask for many pages at once",
        f"sessions wait for reads {share_text(share)} of their time, {waiting:.1f} of them on"
        f" average, with {reading:.1f} reads under way; of {count_text(per_s)} reads a second each"
        f" takes {ns_text(each_s * _NS)}",
        {},
        "effective_io_concurrency, maintenance_io_concurrency and, in 18, io_workers say how many;"
        " up to how many the disk gives more for it is told by its probe. Index scans ask for one"
        " page at a time in every version: they gain from sessions.",
        READS_PLAN,
    )


def _commits(disk: DiskInUse) -> Iterator[Advice]:
    """Where sessions wait for flushes that take long enough to be shared on purpose."""
    told = (disk.wait_flush, disk.flushes_per_s, disk.flush_s)
    if None in told:
        return
    share, per_s, each_s = (one or 0.0 for one in told)
    delay_us = commit_delay_us(each_s * _NS)
    if share < WAITED or delay_us < DELAY_US_MIN:
        return
    yield Advice(
        disk.stage,
        "Let commits share flushes",
        f"sessions wait for flushes of WAL {share_text(share)} of their time; of"
        f" {count_text(per_s)} flushes a second each takes the device {ns_text(each_s * _NS)}",
        {"commit_delay": str(delay_us), "commit_siblings": "5"},
        "With few sessions, or where flushes are shared anyway, a delay only delays.",
        "tpcc-six-stages",
    )


def _apart(disks: Sequence[DiskInUse]) -> Iterator[Advice]:
    """The disk whose flushes are that much quicker under one load that WAL belongs there."""
    pairs = [
        (slow.flush_s / quick.flush_s, quick, slow)
        for quick, slow in permutations(disks, 2)
        if quick.first == slow.first
        and quick.folder != slow.folder
        and quick.flush_s
        and slow.flush_s
        and (slow.wait_flush or 0.0) >= WAITED
    ]
    times, quick, slow = max(pairs, key=lambda each: each[0], default=(0.0, None, None))
    if quick is None or slow is None or times < APART:
        return
    yield Advice(
        quick.stage,
        "Put WAL on the disk of this stage",
        f"a flush takes {ns_text((quick.flush_s or 0.0) * _NS)} there and"
        f" {ns_text((slow.flush_s or 0.0) * _NS)} in {slow.stage}, where sessions wait for flushes"
        f" {share_text(slow.wait_flush or 0.0)} of their time",
        {},
        "`initdb --waldir`. The data may lie on the slower one, if both are disks of their own:"
        " checkpoints wait for it, commits do not.",
        None,
    )
