"""A load-latency curve, made up: two windows that keep the limit, and two that break it."""

from __future__ import annotations

from pgdyno.model.knee import Curve, Knee, Point

KEPT = Point(400, 401.0, 400.0, 1_000_000, 9_000_000, 4_000)
BROKEN = Point(420, 419.0, 300.0, 30_000_000, 90_000_000, 3_000)
CURVE = Curve(
    ident="20261122-020000-knee-tpcc", by="rate", workload="tpcc", face="pipeline", connections=8,
    spacing="poisson", kinds=("new_order", "payment"), limit_p99_ns=50_000_000, window_s=10.0,
    warmup_s=2.0, points=(KEPT, BROKEN, KEPT, BROKEN), knee=Knee("found", 400, 420, 0),
    server="host=db port=5432", pgdyno="0.1.0",
)  # fmt: skip
