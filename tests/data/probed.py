"""Probed storage for tests: a disk and a memory file system, with the recorded outputs parsed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pgdyno.model.floor import (
    PATTERNS,
    Claims,
    Floor,
    GridPoint,
    Latency,
    Prepared,
    Probed,
    Share,
    Together,
    UnderCheckpoint,
    Wish,
)
from pgdyno.probe.clock import parse_clock
from pgdyno.probe.fio import commits_of, grid_point
from pgdyno.probe.sync import parse_sync

RECORDED = Path(__file__).parent / "probe"
DISK = Claims(
    "ext4", "/srv", "rw,relatime", "/dev/vda", "vda", rotational=False, write_cache="write back",
    fua=False, atomic_write_bytes=0, logical_block_bytes=512, physical_block_bytes=4096,
    scheduler="none",
)  # fmt: skip
MEMORY = Claims("tmpfs", "/dev/shm", "rw", "tmpfs")
FLAT = {1: 10_000.0, 4: 38_000.0, 16: 99_000.0, 64: 100_000.0}


def recorded(name: str) -> str:
    """A recorded output."""
    return (RECORDED / name).read_text()


def jobs(name: str) -> list[dict[str, Any]]:
    """The jobs of a recorded JSON of fio."""
    found: list[dict[str, Any]] = json.loads(recorded(name))["jobs"]
    return found


def grid(rates: dict[int, float], cpu_share: float = 0.2) -> tuple[GridPoint, ...]:
    """Points of all patterns with these rates at these depths, by Little's law."""
    return tuple(
        GridPoint(
            pattern, depth, 1, rate, rate * 8192,
            Latency(*[int(depth / rate * 1e9)] * 5, depth / rate * 1e9, 1000), cpu_share,
        )
        for pattern in PATTERNS
        for depth, rate in rates.items()
    )  # fmt: skip


def floor(path: str, claims: Claims = DISK, rates: dict[int, float] | None = None) -> Floor:
    """A path whose grid has these rates."""
    (alone,) = jobs("fio-commits.json")
    under, writes = jobs("fio-mixed.json")
    return Floor(
        path=path,
        device_number=len(path),
        claims=claims,
        prepared=Prepared(4 << 30, 16 << 30, direct=claims is DISK, bytes_per_s=5e8),
        syncs=parse_sync(recorded("fsync-18.txt")),
        grid=grid(rates or FLAT),
        mixed=UnderCheckpoint(
            commits_of(alone), commits_of(under), grid_point(writes, "random write", 16, 1)
        ),
    )


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
