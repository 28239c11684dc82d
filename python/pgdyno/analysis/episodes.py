"""Episodes of autovacuum in a trial, from the server's log."""

from __future__ import annotations

from pgdyno.model.run import TrialResult
from pgdyno.stats.vacuum import Episode

NS = 1e9
_KINDS = ("autovacuum", "autoanalyze")


def episodes(result: TrialResult) -> list[Episode]:
    """The episodes of a trial, in seconds since the epoch."""
    return [
        Episode(
            table=one.detail.table or "?",
            start_s=one.start_ns / NS,
            end_s=one.end_ns / NS,
            wal_bytes=one.detail.wal_bytes,
            cpu_s=one.detail.cpu_s,
        )
        for one in result.events
        if one.kind in _KINDS and one.end_ns is not None
    ]
