"""A workload over two servers, made up: the second is slower, and set otherwise."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.model.run import KindResult, PartResult, TrialResult
from pgdyno.model.server_result import ServerResult
from tests.data.miniature import a_result

NAMES = ("shard-1.example.org:5432", "/run/postgresql:5433")


def _share(kind: KindResult, of: int) -> KindResult:
    """A part of a kind's counts."""
    window = kind.window
    counts = {name: getattr(window, name) // of
              for name in ("due", "succeeded", "rolled_back", "failed", "unfinished")}  # fmt: skip
    return replace(kind, window=replace(window, **counts))


def over_two() -> TrialResult:
    """A trial: the first server did two thirds, the second one third."""
    result = a_result()
    parts = tuple(
        PartResult(name, tuple(_share(kind, of) for kind in result.kinds))
        for name, of in zip(NAMES, (2, 4), strict=True)
    )
    servers = tuple(
        ServerResult(
            name, "PostgreSQL 18.6 on x86_64-pc-linux-gnu", held, deltas,
            {"shared_buffers": buffers}, violations,
        )
        for name, held, deltas, buffers, violations in (
            (NAMES[0], "warehouses 1 to 5", {"wal.bytes": 3e8, "database.commits": 6e4,
                                             "checkpoints.timed": 1.0,
                                             "checkpoints.requested": 0.0}, "6GB", 0),
            (NAMES[1], "warehouses 6 to 10", {"wal.bytes": 2e8}, "128MB", 3),
        )
    )  # fmt: skip
    return replace(result, parts=parts, servers=servers)
