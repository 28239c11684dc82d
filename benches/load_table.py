"""Record and Markdown table of `load.py`: one load, medians, ratios to plain COPY."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from measure import Spread, confidence, table

PLAIN = "plain COPY"


@dataclass(frozen=True, slots=True)
class Load:
    """One loader, or plain COPY, in one round."""

    loader: str
    round: int
    position: int
    wall_s: float
    rows: int
    database_bytes: int
    client_cpu_s: float
    server_cpu_s: float
    wal_bytes: int
    phases_s: dict[str, float] = field(default_factory=dict)  # of plain COPY


def markdown(loads: Sequence[Load], names: Sequence[str]) -> str:
    """The table and what to know of it."""
    by = {(load.loader, load.round): load for load in loads}
    rounds = sorted({load.round for load in loads if (names[-1], load.round) in by})
    rows = []
    for name in names:
        own = [load for load in loads if load.loader == name]
        ratio = [
            load.wall_s / by[PLAIN, load.round].wall_s for load in own if (PLAIN, load.round) in by
        ]
        rows.append(
            [
                name,
                Spread.of([load.wall_s for load in own]).text(2),
                Spread.of(ratio).text(2),
                f"{own[-1].rows:,}",
                Spread.of([load.client_cpu_s for load in own]).text(2),
                Spread.of([load.server_cpu_s for load in own]).text(2),
                Spread.of([load.wal_bytes / 1e6 for load in own]).text(0),
                f"{own[-1].database_bytes / 1e6:,.0f}",
            ]
        )
    head = [
        "loader",
        "seconds",
        f"ratio to {PLAIN}",
        "rows",
        "client CPU s",
        "server CPU s",
        "WAL MB",
        "size MB",
    ]
    steps = [load.phases_s for load in loads if load.loader == PLAIN]
    phases = ", ".join(
        f"{step} {Spread.of([found[step] for found in steps]).text(2)} s" for step in steps[0]
    )
    return (
        f"{table(head, rows)}\n\nMedian (lowest-highest) of {len(rounds)} rounds; the extremes"
        f" enclose the median with {confidence(len(rounds)):.0%} confidence. {PLAIN}: {phases}."
    )
