"""A load-latency curve with its knee: as a page, as Markdown, as JSON."""

from __future__ import annotations

from dataclasses import asdict
from statistics import median
from typing import Any

import plotly.graph_objects as go
from rich.console import Group, RenderableType
from rich.table import Table as Printed
from rich.text import Text

from pgdyno.analysis import words
from pgdyno.analysis.curve_facts import CurveFacts
from pgdyno.model.knee import Curve, Point
from pgdyno.model.text import json_document
from pgdyno.model.units import at_least_text, count_text, ns_text
from pgdyno.model.wording import plural
from pgdyno.report.charts import Key, Panel, look
from pgdyno.report.document import Cell, Document, Figure, Section, Table, columns
from pgdyno.report.html import Drawing
from pgdyno.report.html import render_document as render_page
from pgdyno.report.markdown import render_document as render_markdown

_MS_NS = 1e6
_HEIGHT_PX = 420


def unit(curve: Curve) -> str:
    """What a load is counted in."""
    return "requests/s" if curve.by == "rate" else "terminals"


def verdict(curve: Curve) -> str:
    """The knee in a sentence, with its bracket."""
    found, limit = curve.knee, ns_text(curve.limit_p99_ns)
    low = "" if found.low is None else count_text(found.low)
    high = "" if found.high is None else count_text(found.high)
    noise = (
        f"; {found.contradictions} of {plural(len(curve.points), 'window')} contradict it"
        if found.contradictions
        else ""
    )
    if found.state == "found":
        text = f"p99 keeps to {limit} up to a load between {low} and {high} {unit(curve)}"
    elif found.state == "above":
        text = f"p99 keeps to {limit} up to {low} {unit(curve)}, the highest load tried"
    elif found.state == "below":
        text = f"p99 breaks {limit} already at {high} {unit(curve)}, the lowest load tried"
    else:
        ends = " and ".join(
            part
            for part in (low and f"keeps at {low}", high and f"breaks at {high} {unit(curve)}")
            if part
        )
        text = f"not settled within {plural(len(curve.points), 'window')}: p99 {ends} ({limit})"
    return text + noise


def render_html(facts: CurveFacts) -> str:
    """The page."""
    curve = facts.curve
    return render_page(document(facts), {"curve": _drawing(curve)}, curve.pgdyno, curve.ident)


def render_md(facts: CurveFacts) -> str:
    """The same as Markdown, without its chart."""
    return render_markdown(document(facts), facts.curve.pgdyno, facts.curve.ident)


def render_json(facts: CurveFacts) -> str:
    """Windows and knee in base units."""
    document = {"schema": "pgdyno.experiment.knee/1", **asdict(facts.curve)}
    return json_document(document)


def summary(facts: CurveFacts) -> RenderableType:
    """Its windows and the knee, for a terminal."""
    curve = facts.curve
    table = Printed(
        unit(curve), "due/s", "achieved/s", "p50", "p99", "n", "limit", box=None, pad_edge=False
    )
    for point, kept in sorted(facts.windows, key=lambda window: window[0].level):
        table.add_row(
            *map(count_text, (point.level, point.offered_per_s, point.achieved_per_s)),
            at_least_text(point.p50_ns, point.exact_below_ns),
            at_least_text(point.p99_ns, point.exact_below_ns),
            count_text(point.n),
            "kept" if kept else "broken",
        )
    return Group(table, Text(verdict(curve)))


def document(facts: CurveFacts) -> Document:
    """Arrange it for reading."""
    curve = facts.curve
    return Document(
        title=f"How much {curve.workload} until p99 breaks {ns_text(curve.limit_p99_ns)}?",
        kicker=f"Load and latency, face {curve.face}",
        label="TPC-C-like, not a TPC result" if curve.workload == "tpcc" else "Own measurement",
        about=_about(curve),
        answer=(verdict(curve) + ".",),
        cards=(),
        sections=(
            Section("curve", "Curve", (Figure("curve"),)),
            Section("windows", "Windows", (_table(facts),)),
        ),
    )


def _drawing(curve: Curve) -> Drawing:
    kinds = ", ".join(words.kind(kind) for kind in curve.kinds)
    return Drawing(
        "Response time over load",
        f"From the due time to the answer, {kinds} together. Each mark is one window; the dashed"
        " line is the limit of p99, the band the bracket of the knee. Both axes are logarithmic.",
        _HEIGHT_PX,
        1,
        tuple(Key(name, look.stage_colour(n), "line") for n, name in enumerate(("p50", "p99"))),
        (Panel("", verdict(curve), figure(curve)),),
    )


def _about(curve: Curve) -> tuple[str, ...]:
    arrivals = f"open loop, {curve.spacing} spacing" if curve.by == "rate" else "closed loop"
    return (
        plural(curve.connections, "connection"),
        arrivals,
        f"windows of {curve.window_s:g} s after {curve.warmup_s:g} s of warm-up",
        curve.server,
    )


def _table(facts: CurveFacts) -> Table:
    rows = tuple(
        (
            Cell(count_text(point.level)),
            Cell(count_text(point.offered_per_s)),
            Cell(count_text(point.achieved_per_s)),
            Cell(at_least_text(point.p50_ns, point.exact_below_ns)),
            Cell(at_least_text(point.p99_ns, point.exact_below_ns)),
            Cell(count_text(point.n)),
            Cell(count_text(point.unanswered)),
            Cell(count_text(point.failed)),
            Cell("kept") if kept else Cell("broken", tone="bad"),
        )
        for point, kept in facts.windows
    )
    heads = columns("load", ("due", "1/s"), ("achieved", "1/s"), "p50", "p99", "n",
                    "no answer", "failed", "limit")  # fmt: skip
    return Table(
        f"All windows in the order of measurement; load in {unit(facts.curve)}", heads, rows
    )


def figure(curve: Curve) -> go.Figure:
    """Percentiles over the load, both logarithmic: a mark for each window, a line of medians."""
    points = sorted((p for p in curve.points if p.n > 0), key=lambda point: point.level)
    shapes: list[dict[str, Any]] = [
        {
            "type": "line", "xref": "paper", "x0": 0, "x1": 1,
            "y0": curve.limit_p99_ns / _MS_NS, "y1": curve.limit_p99_ns / _MS_NS,
            "line": {"color": look.MUTED, "dash": "dash", "width": 1},
        }
    ]  # fmt: skip
    low, high = curve.knee.low, curve.knee.high
    if low is not None and high is not None:
        shapes.append(
            {
                "type": "rect", "yref": "paper", "x0": low, "x1": high, "y0": 0, "y1": 1,
                "fillcolor": look.CHECKPOINT, "opacity": 0.25, "line": {"width": 0},
            }
        )  # fmt: skip
    shown = [ns for p in points for ns in (p.p50_ns, p.p99_ns)] + [curve.limit_p99_ns]
    levels = [point.level for point in points]
    return look.figure(
        [trace for which in ("p50", "p99") for trace in _traces(points, curve, which)],
        xaxis=look.log_axis(unit(curve), levels),
        yaxis=look.log_axis("ms", [ns / _MS_NS for ns in shown]),
        shapes=shapes,
    )


def _traces(points: list[Point], curve: Curve, which: str) -> list[go.Scatter]:
    index = ("p50", "p99").index(which)
    value = {p: (p.p99_ns if which == "p99" else p.p50_ns) for p in points}
    levels = sorted({point.level for point in points})
    medians = [median(value[p] / _MS_NS for p in points if p.level == level) for level in levels]
    colour = look.stage_colour(index)
    return [
        go.Scatter(
            x=levels, y=medians, mode="lines", hoverinfo="skip",
            line={"color": colour, "width": 1.5, "dash": look.stage_dash(index)},
        ),
        go.Scatter(
            x=[point.level for point in points],
            y=[value[point] / _MS_NS for point in points],
            mode="markers",
            marker={"symbol": look.stage_symbol(index), "size": 7, "color": colour},
            text=[
                f"{at_least_text(value[point], point.exact_below_ns)}"
                f" at {count_text(point.achieved_per_s)} achieved/s"
                for point in points
            ],
            hovertemplate=f"%{{x:,.0f}} {unit(curve)}, {which}: %{{text}}<extra></extra>",
        ),
    ]  # fmt: skip
