"""Charts of probed storage: rates and response times over the requests under way, and flushes."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

import plotly.graph_objects as go

from pgdyno.analysis.storage_facts import PathFacts, StorageFacts
from pgdyno.model.floor import PATTERNS, GridPoint, Pattern
from pgdyno.model.units import count_text, ns_text
from pgdyno.model.wording import plural
from pgdyno.report.charts import Key, Panel, look
from pgdyno.report.html import Drawing

_HEIGHT_PX = 300
_US_NS, _MS_NS = 1e3, 1e6
_IN_MS_FROM_NS = 10e6  # 40 ms, and not 40k µs


def drawings(facts: StorageFacts) -> dict[str, Drawing]:
    """All charts by the name that the document calls them by."""
    keys = tuple(Key(path.path, look.stage_colour(n), "line") for n, path in enumerate(facts.paths))
    return {
        "grid": Drawing(
            "Rate", "Requests a second over those under way in all jobs together; a ring marks the"
            " knee. Both axes are logarithmic.",
            _HEIGHT_PX, 2, keys, tuple(_panel(facts, pattern, "rate") for pattern in PATTERNS),
        ),
        "latency": Drawing(
            "Response time", "99th percentile, from submission to completion. Both axes are"
            " logarithmic.",
            _HEIGHT_PX, 2, keys, tuple(_panel(facts, pattern, "p99") for pattern in PATTERNS),
        ),
        "methods": Drawing(
            "Methods", "Time of one 8 KiB write brought to storage, by one run of pg_test_fsync.",
            _HEIGHT_PX, 1, keys, (_methods(facts),),
        ),
        "commits": Drawing(
            "Commits under a checkpoint", "Flushes of a process that writes WAL: p50 and p99, alone"
            " and while random writes go on as fast as they can; the median of the rounds.",
            _HEIGHT_PX, 1, keys, (_commits(facts),),
        ),
    }  # fmt: skip


def _panel(facts: StorageFacts, pattern: Pattern, what: str) -> Panel:
    traces: list[Any] = []
    shown: list[float] = []
    loads: list[float] = []
    for index, path in enumerate(facts.paths):
        points = path.of_pattern(pattern).fastest
        values = [_value(point, what) for point in points]
        loads += [point.outstanding for point in points]
        shown += values
        traces.append(_line(index, points, values))
        if what == "rate":
            traces.append(_ring(index, path.of_pattern(pattern).found.knee))
    unit = "requests/s" if what == "rate" else "p99, µs"
    alt = "; ".join(f"{path.path}: {_peak_and_knee(path, pattern)}" for path in facts.paths)
    figure = look.figure(
        traces, xaxis=look.log_axis("requests under way", loads), yaxis=look.log_axis(unit, shown)
    )
    return Panel(pattern, alt, figure)


def _value(point: GridPoint, what: str) -> float:
    return point.per_s if what == "rate" else point.latency.p99_ns / _US_NS


def _peak_and_knee(path: PathFacts, pattern: Pattern) -> str:
    found = path.of_pattern(pattern).found
    return (
        f"{count_text(found.peak.per_s)}/s at best, knee at {found.knee.outstanding} under way"
        f" with p99 {ns_text(found.knee.latency.p99_ns)}"
    )


def _line(index: int, points: Sequence[GridPoint], values: list[float]) -> go.Scatter:
    return go.Scatter(
        x=[point.outstanding for point in points],
        y=values,
        mode="lines+markers",
        line={"color": look.stage_colour(index), "dash": look.stage_dash(index), "width": 1.5},
        marker={"symbol": look.stage_symbol(index), "size": 7, "color": look.stage_colour(index)},
        text=[
            f"{count_text(point.per_s)}/s, p99 {ns_text(point.latency.p99_ns)},"
            f" depth {point.depth} × {plural(point.jobs, 'job')}"
            for point in points
        ],
        hovertemplate="%{text}<extra></extra>",
    )


def _ring(index: int, knee: GridPoint) -> go.Scatter:
    return go.Scatter(
        x=[knee.outstanding], y=[knee.per_s], mode="markers", hoverinfo="skip",
        marker={
            "symbol": "circle-open", "size": 16, "color": look.stage_colour(index),
            "line": {"width": 2},
        },
    )  # fmt: skip


def _methods(facts: StorageFacts) -> Panel:
    return _bars({path.path: _of_methods(path) for path in facts.paths})


def _of_methods(path: PathFacts) -> dict[str, float]:
    """Time of a write and its flush by method, in ns."""
    return {one.method: one.ns for one in path.syncs if one.test == "one-write" and one.ns}


def _commits(facts: StorageFacts) -> Panel:
    return _bars({path.path: _of_commits(path) for path in facts.paths})


def _of_commits(path: PathFacts) -> dict[str, float]:
    """Percentiles of flushes, alone and under a checkpoint, in ns."""
    sides = {
        "alone": [one.alone.flush for one in path.mixed],
        "checkpoint": [one.under.flush for one in path.mixed],
    }
    return {
        f"{name}, {share}": median(getattr(one, f"{share}_ns") for one in flushes)
        for name, flushes in sides.items()
        for share in ("p50", "p99")
    }


def _bars(times: dict[str, dict[str, float]]) -> Panel:
    """Times in ns, of each path by what took them, in the unit that keeps labels short."""
    most = max((ns for each in times.values() for ns in each.values()), default=0.0)
    unit, unit_ns = ("ms", _MS_NS) if most >= _IN_MS_FROM_NS else ("µs", _US_NS)
    bars, lines = [], []
    for index, (path, each) in enumerate(times.items()):
        bars.append(
            go.Bar(
                x=list(each), y=[ns / unit_ns for ns in each.values()],
                marker={"color": look.stage_colour(index)},
                hovertemplate=f"{look.plain(path)}, %{{x}}: %{{y:,.3r}} {unit}<extra></extra>",
            )
        )  # fmt: skip
        lines += [f"{path}, {name}: {ns_text(ns)}" for name, ns in each.items()]
    figure = look.figure(bars, xaxis=look.axis(), yaxis=look.axis(unit), barmode="group")
    return Panel("", "; ".join(lines), figure)
