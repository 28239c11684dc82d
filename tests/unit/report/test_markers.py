"""Markers are drawn whole, also at the end of an axis and on the narrowest page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import log10

import plotly.graph_objects as go
import pytest

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.storage import storage_facts
from pgdyno.analysis.timeline_facts import Mark
from pgdyno.report.charts import charts
from pgdyno.report.storage_charts import drawings
from tests.data.probed import floor, probed

PLOT_PX = 150  # what names and notes leave of a telephone
AROUND_PX = 60  # of a drawing's height: numbers and title of its lower axis
# How far symbols reach, in halves of their size, to the right and upwards.
REACH = {"star": (1.4, 1.4), "triangle-right": (1.2, 1.2), "triangle-down": (1.2, 1.2),
         "diamond": (1.3, 1.3), "diamond-open": (1.3, 1.3), "triangle-up": (1.2, 1.2),
         "line-ew": (1.4, 0.0), "line-ns": (0.0, 1.4)}  # fmt: skip


def place(axis: go.layout.XAxis | go.layout.YAxis, value: object) -> float | None:
    """Where a value lies on an axis, from 0 to 1; None: plotly makes room itself, or not drawn."""
    if axis.range is None or value is None:
        return None
    low, high = axis.range
    if axis.categoryarray is not None:
        at = float(list(axis.categoryarray).index(value))
    else:
        at = log10(value) if axis.type == "log" else float(value)  # type: ignore[arg-type]
    return (at - low) / (high - low)


def cut(figure: go.Figure, height_px: int) -> Iterator[str]:
    """Markers that reach beyond what is shown of them."""
    margin = figure.layout.margin
    sizes = (PLOT_PX, height_px - AROUND_PX)
    sides = ((margin.l, margin.r), (margin.b, margin.t))
    for trace in figure.data:
        if trace.type != "scatter" or "markers" not in trace.mode:
            continue
        symbol = trace.marker.symbol if isinstance(trace.marker.symbol, str) else "star"
        for point in zip(trace.x, trace.y, strict=True):
            for way, axis in enumerate((figure.layout.xaxis, figure.layout.yaxis)):
                if (at := place(axis, point[way])) is None or not 0 <= at <= 1:
                    continue
                reach = trace.marker.size / 2 * REACH.get(symbol, (1.0, 1.0))[way]
                reach += (trace.marker.line.width or 0) / 2
                free = sides[way] if trace.cliponaxis is False else (0, 0)
                room = min(at * sizes[way] + free[0], (1 - at) * sizes[way] + free[1])
                if room < reach:
                    yield f"{symbol} at {point}: {reach:.1f} px of {room:.1f}"


def test_a_marker_at_the_end_of_the_window_is_whole(facts: Facts) -> None:
    first = facts.trials[0]
    assert first.timeline is not None
    window_s = first.timeline.window_s
    kinds = ("recovery", "lock_wait", "error")
    marks = tuple(Mark(kind, window_s - 1, window_s, "until the end") for kind in kinds)
    marked = replace(first, timeline=replace(first.timeline, marks=marks))
    told = replace(facts, trials=(marked, *facts.trials[1:]))
    chart = charts()["timeline"]

    assert list(cut(chart.panels(told)[0].figure, chart.height_px)) == []


def test_the_arrow_of_an_interval_that_goes_on_is_whole(facts: Facts) -> None:
    first, tuned, *others = facts.stages
    assert tuned.to_first is not None
    wide = replace(tuned, to_first=replace(tuned.to_first, high=1e6))
    (panel,) = charts()["waterfall"].panels(replace(facts, stages=(first, wide, *others)))

    assert list(panel.figure.data[-1].x)
    assert list(cut(panel.figure, 300)) == []


@pytest.mark.parametrize("copies", [1, 2, 4, 7])
def test_dots_and_medians_of_many_stages_are_whole(facts: Facts, copies: int) -> None:
    stages = tuple(
        replace(stage, name=f"{stage.name}-{copy}")
        for copy in range(copies) for stage in facts.stages
    )  # fmt: skip
    trials = tuple(
        replace(trial, stage=f"{trial.stage}-{copy}")
        for copy in range(copies) for trial in facts.trials
    )  # fmt: skip
    chart = charts()["rounds"]
    (panel,) = chart.panels(replace(facts, stages=stages, trials=trials))

    assert list(cut(panel.figure, chart.height_px)) == []


def test_every_marker_of_a_run_is_whole(facts: Facts) -> None:
    found = [
        (chart.name, one)
        for chart in charts().values()
        for panel in chart.panels(facts)
        for one in cut(panel.figure, chart.height(facts))
    ]
    assert found == []


def test_the_ring_of_a_knee_at_the_end_of_the_axis_is_whole() -> None:
    facts = storage_facts(probed(floor("/a", rates={1: 1.0, 64: 2_000.0, 4096: 1_000_000.0})))
    found = [
        one
        for drawing in drawings(facts).values()
        for panel in drawing.panels
        for one in cut(panel.figure, drawing.height)
    ]
    assert found == []
