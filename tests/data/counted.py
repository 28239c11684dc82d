"""What the server counted in the runs of made-up pages, as much and as long as it may be."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.analysis.snapshot_facts import (
    PlanByRound,
    PlanChange,
    PlanDifference,
    PlanEstimate,
    PlanRow,
    Plans,
    StatementUse,
    TableUse,
)

USED = StatementUse(1.27, 12_345.0, 5.1e-4, 1.0, 1_234.0, 2.3e5, 99.0, 2.3, 0.1, 7.0, 1e-4, 2e-4,
                    12.3, 0.45)  # fmt: skip
GROWN = TableUse(
    37e9, 612e6, 3_451.0, 0.74, 12_040.0, 1.0, 2.0, 123_456.0, 5.0, live_rows=123e6,
    moved_per_s=345.6, sequential_scans_per_s=0.12, index_scans_per_s=23_456.0, vacuum_s=12.3,
    analyze_s=1.23, since_vacuum_s=34.0, since_analyze_s=5_678.0, inserted_since_vacuum=123_456.0,
    modified_since_analyze=234_567.0,
)  # fmt: skip
EXPECTED = PlanEstimate(8.44, 1_234_567.8, 1.0, 12_345.0)


def plans(stages: Sequence[str], long: str) -> Plans:
    """Of all that can be said of plans something.

    Args:
        stages: Their names.
        long: A text without a place to break it.
    """
    return Plans(
        34, (PlanChange("no_stock", stages[0], 2, f"Seq Scan on {long}", "Index Scan"),),
        (PlanDifference("pay_name", tuple(f"Index Scan by {long}_{n}" for n in stages)),),
        (("no_items", f"relation {long} does not exist"),),
        (PlanByRound("no_stock", stages[0], ((f"Seq Scan on {long}", (1,)), (long, (2,)))),),
        tuple(
            PlanRow(f"no_stock_{n}", "new_order", f"Limit (Index Scan {long}_{n})",
                    (f"Index Scan: Index Cond (({long} = $1) AND (warehouse = $2)), Alias s",),
                    (EXPECTED,) * (len(stages) - 1) + (None,))
            for n in range(34)
        ),
    )  # fmt: skip
