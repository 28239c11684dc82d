"""What a table of results says of one kind of transaction."""

from __future__ import annotations

from dataclasses import asdict

from pgdyno.model.run import KindResult

KIND_COLUMNS = (
    "kind", "due", "succeeded", "rolled_back", "failed", "unfinished", "p50_ns", "p90_ns", "p95_ns",
    "p99_ns", "p999_ns", "max_ns", "mean_ns", "exact_below_ns",
)  # fmt: skip


def kind_row(result: KindResult) -> dict[str, object]:
    """Outcomes in the window, and response times; `KIND_COLUMNS` and what else is counted."""
    times = {f"{name}_ns": value for name, value in result.response_ns.items()}
    return {"kind": result.kind, **asdict(result.window), **times}
