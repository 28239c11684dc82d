"""Probed storage for tests: a disk and a memory file system, with the recorded outputs parsed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pgdyno.model.floor import (
    PATTERNS,
    PAUSES_US,
    Commits,
    DeviceClaims,
    Floor,
    GridPoint,
    Latency,
    PathRound,
    Prepared,
    Probed,
    ProbeRound,
    Share,
    Together,
    UnderCheckpoint,
    Wish,
)
from pgdyno.probe.clock import parse_clock
from pgdyno.probe.fio import commits_of, grid_point
from pgdyno.probe.sync import parse_sync

RECORDED = Path(__file__).parent / "probe"
DISK = DeviceClaims(
    "ext4", "/srv", "rw,relatime", "/dev/vda", "vda", rotational=False, write_cache="write back",
    fua=False, atomic_write_bytes=0, logical_block_bytes=512, physical_block_bytes=4096,
    scheduler="none",
)  # fmt: skip
MEMORY = DeviceClaims("tmpfs", "/dev/shm", "rw", "tmpfs")
FLAT = {1: 10_000.0, 4: 38_000.0, 16: 99_000.0, 64: 100_000.0}


def recorded(name: str) -> str:
    """A recorded output."""
    return (RECORDED / name).read_text()


def jobs(name: str) -> list[dict[str, Any]]:
    """The jobs of a recorded JSON of fio."""
    found: list[dict[str, Any]] = json.loads(recorded(name))["jobs"]
    return found


def every(ns: int) -> Latency:
    """All quantiles alike."""
    return Latency(ns, ns, ns, ns, ns, float(ns), 1000)


def grid(rates: dict[int, float], cpu_share: float = 0.2) -> tuple[GridPoint, ...]:
    """Points of all patterns with these rates at these depths, by Little's law."""
    return tuple(
        GridPoint(
            pattern, depth, 1, rate, rate * 8192,
            every(int(depth / rate * 1e9)), cpu_share,
        )
        for pattern in PATTERNS
        for depth, rate in rates.items()
    )  # fmt: skip


def floor(path: str, claims: DeviceClaims = DISK, rates: dict[int, float] | None = None) -> Floor:
    """A path whose grid has these rates."""
    (job,) = jobs("fio-commits.json")
    alone = commits_of(job)
    under, writes = jobs("fio-mixed.json")
    return Floor(
        path=path,
        device_number=len(path),
        claims=claims,
        prepared=Prepared(4 << 30, 16 << 30, direct=claims is DISK, bytes_per_s=5e8),
        syncs=parse_sync(recorded("fsync-18.txt")),
        grid=grid(rates or FLAT),
        mixed=UnderCheckpoint(alone, commits_of(under), grid_point(writes, "random write", 16, 1)),
        rested=tuple(
            after_rest(alone, pause_us, times)
            for pause_us, times in zip(PAUSES_US, (1.25, 2, 3), strict=True)
        ),
    )


def after_rest(alone: Commits, pause_us: int, times: float) -> Commits:
    """Flushes that take so many times as long, after such a pause."""
    mean_ns = times * alone.ns - alone.write_mean_ns
    flush = replace(alone.flush, mean_ns=mean_ns)
    return replace(alone, per_s=1e9 / (times * alone.ns + 1000 * pause_us), flush=flush)


def probed(*floors: Floor, together: tuple[float, ...] = ()) -> Probed:
    """These paths; `together`: their rates while all are read."""
    shares = tuple(
        Share(one.path, 100_000.0, rate) for one, rate in zip(floors, together, strict=False)
    )
    return Probed(
        ident="20261122-120000-storage",
        started_ns=1_795_348_800_000_000_000,
        pgdyno="0.1.0",
        programs={"PostgreSQL": "PostgreSQL 18.6", "fio": "fio-3.33"},
        cpus=2,
        wish=Wish(tuple(one.path for one in floors), 4 << 30, 5, tuple(FLAT), (1,)),
        clock=parse_clock(recorded("timing-18.txt")),
        floors=floors,
        together=Together(64, 1, shares) if shares else None,
    )


def measured_once(one: Floor) -> PathRound:
    """What version 0.1 kept of a path, as a round."""
    assert one.mixed is not None
    rate = one.sync("one-write", "fdatasync")
    assert rate is not None
    assert rate.per_s is not None
    return PathRound(one.path, rate.per_s, one.mixed, one.rested)


def at_rates(path: str, fsync_per_s: float, fio_per_s: float) -> PathRound:
    """A round in which the two programs reached these rates; all else follows fio's."""
    like = measured_once(floor(path))

    def scaled(commits: Commits, per_s: float) -> Commits:
        flush_ns = 1e9 / per_s - commits.write_mean_ns - commits.pause_ns
        return replace(commits, per_s=per_s, flush=replace(commits.flush, mean_ns=flush_ns))

    alone = replace(
        scaled(replace(like.mixed.alone, write_mean_ns=1000.0), fio_per_s),
        flush_quantiles=((0.0, 0.5), (1.0, 1.5)),
    )
    point = grid({64: 20 * fio_per_s})[0]
    return PathRound(
        path=path,
        fdatasync_per_s=fsync_per_s,
        mixed=UnderCheckpoint(alone, replace(alone, per_s=fio_per_s / 2), like.mixed.writes),
        rested=tuple(
            after_rest(alone, pause_us, times)
            for pause_us, times in zip(PAUSES_US, (1.25, 2, 3), strict=True)
        ),
        reads=point,
        writes=replace(point, pattern="random write"),
    )


def in_rounds(*rounds: tuple[PathRound, ...]) -> Probed:
    """Paths that were probed in these rounds, ten seconds apart."""
    floors = tuple(replace(floor(one.path), mixed=None, rested=()) for one in rounds[0])
    found = probed(*floors)
    return replace(
        found,
        wish=replace(found.wish, rounds=len(rounds)),
        rounds=tuple(
            ProbeRound(found.started_ns + number * 10_000_000_000, paths)
            for number, paths in enumerate(rounds)
        ),
    )
