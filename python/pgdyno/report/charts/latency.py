"""Latency percentiles of each kind of transaction, stages side by side."""

from __future__ import annotations

import plotly.graph_objects as go

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts, Percentiles
from pgdyno.model.units import at_least_text
from pgdyno.report.charts import look
from pgdyno.report.charts.chart import Chart, Key, Panel

HEADS = ("p50", "p90", "p95", "p99", "p99.9", "max")
MS_NS = 1e6


def _values(line: Percentiles) -> tuple[int, ...]:
    return (line.p50_ns, line.p90_ns, line.p95_ns, line.p99_ns, line.p999_ns, line.max_ns)


def _symbols(line: Percentiles, symbol: str) -> str | list[str]:
    """Of each point; one name for all where all are exact."""
    below = line.exact_below_ns
    if below is None:
        return symbol
    return [f"{symbol}-open" if value >= below else symbol for value in _values(line)]


def _panels(facts: Facts) -> tuple[Panel, ...]:
    kinds = list(dict.fromkeys(line.kind for stage in facts.stages for line in stage.latency))
    seen = [
        value
        for stage in facts.stages
        for line in stage.latency
        for value in _values(line)
        if value > 0
    ]
    if not seen:
        return ()
    low, high = min(seen) / MS_NS, max(seen) / MS_NS
    return tuple(_panel(facts, kind, low, high) for kind in kinds)


def _panel(facts: Facts, kind: str, low_ms: float, high_ms: float) -> Panel:
    traces, lines = [], []
    for index, stage in enumerate(facts.stages):
        line = stage.percentiles(kind)
        if line is None:
            continue
        traces.append(
            go.Scatter(
                x=HEADS,
                y=[value / MS_NS for value in _values(line)],
                mode="lines+markers",
                line={
                    "color": look.stage_colour(index),
                    "width": 1.5,
                    "dash": look.stage_dash(index),
                },
                marker={"symbol": _symbols(line, look.stage_symbol(index)), "size": 7},
                text=[at_least_text(value, line.exact_below_ns) for value in _values(line)],
                hovertemplate=f"{look.plain(stage.name)}, %{{x}}: %{{text}}<extra></extra>",
            )
        )
        p50, p99 = (at_least_text(ns, line.exact_below_ns) for ns in (line.p50_ns, line.p99_ns))
        lines.append(f"{stage.name} p50 {p50}, p99 {p99}")
    name = words.kind(kind)
    drawing = look.figure(
        traces,
        xaxis=look.axis(showgrid=False),
        yaxis=look.log_axis("ms", [low_ms, high_ms]),
    )
    alt = f"Latency percentiles of {name} on a logarithmic axis. {'; '.join(lines)}."
    return Panel(name, alt, drawing)


def _keys(facts: Facts) -> tuple[Key, ...]:
    return tuple(
        Key(look.short(stage.name), look.stage_colour(index), "line")
        for index, stage in enumerate(facts.stages)
        if stage.latency
    )


CHART = Chart(
    name="latency",
    title="Latency percentiles",
    caption=(
        "From the due time of a transaction to its answer, rounds of a stage merged. Logarithmic"
        " axis, the same in every panel; the maximum is a single transaction. Hollow points are"
        " lower bounds: of requests that had no answer."
    ),
    height_px=250,
    panels=_panels,
    keys=_keys,
    across=lambda _: 3,
)
