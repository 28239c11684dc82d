"""Writes docs/reference/metrics.md: every metric that `--metrics` serves."""

from __future__ import annotations

from pgdyno.live.buckets import BOUNDS_NS
from pgdyno.live.metrics import FAMILIES
from pgdyno.model.openmetrics import Family, sample_name

_HEAD = """\
# Metrics of `--metrics`

Written by `make reference` from `live/metrics.py`. The guide: [live](../guides/live.md).

The text is OpenMetrics 1.0. Names end with their unit, counters with `_total`; times are seconds.
A metric has no sample where nothing was measured.

| name | kind | labels | what it is |
|---|---|---|---|
"""


def page() -> str:
    """The page."""
    rows = "\n".join(_row(one) for one in FAMILIES)
    bounds = ", ".join(f"{ns / 1e9:g}" for ns in BOUNDS_NS)
    return f"{_HEAD}{rows}\n\nBuckets of histograms end at {bounds} s, and at infinity.\n"


def _row(family: Family) -> str:
    names = [sample_name(family)]
    if family.kind == "histogram":
        names = [sample_name(family, suffix) for suffix in ("bucket", "count", "sum")]
    labels = ", ".join(f"`{one}`" for one in family.labels) or "–"
    shown = ", ".join(f"`{one}`" for one in names)
    return f"| {shown} | {family.kind} | {labels} | {family.help} |"


if __name__ == "__main__":
    print(page(), end="")
