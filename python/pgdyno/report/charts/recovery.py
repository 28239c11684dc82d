"""Throughput against the seconds that a crash costs: a stage is a point, the best ones a line."""

from __future__ import annotations

import plotly.graph_objects as go

from pgdyno.analysis.facts import Facts, RecoveryFacts, Spread, StageFacts
from pgdyno.model.units import count_text, digits_text
from pgdyno.model.wording import listed
from pgdyno.report.charts import look
from pgdyno.report.charts.chart import Chart, Key, Panel

_ROOM = 1.12  # beyond the largest
_LEFT_FROM = 0.55  # of the axis: names of points beyond it stand on their left
_Point = tuple[RecoveryFacts, StageFacts, Spread]


def _panels(facts: Facts) -> tuple[Panel, ...]:
    points = _points(facts)
    if len(points) < 2:
        return ()
    front = _front(points)
    latest_s = _ROOM * max(max(one.ready_s.rounds) for one, _, _ in points)
    drawing = look.figure(
        [_line(front), *(_dot(point, facts, latest_s) for point in points)],
        xaxis=look.axis(
            "seconds until it answers after a crash",
            range=[0, latest_s],
            nticks=6,
        ),
        yaxis=look.axis(
            facts.headline,
            range=[0, _ROOM * max(max(speed.rounds) for _, _, speed in points)],
            tickformat=",.0f",
            nticks=6,
        ),
    )
    spoken = "; ".join(
        f"{one.stage}: {count_text(speed.median)} {facts.headline},"
        f" back after {digits_text(one.ready_s.median)} s"
        for one, _, speed in points
    )
    best = listed([one.stage for one, _, _ in front])
    alt = f"Dot plot of {facts.headline} by seconds until it answers. {spoken}. The line: {best}."
    return (Panel("", alt, drawing),)


def _points(facts: Facts) -> list[_Point]:
    """The stages of which both are known."""
    stages = {stage.name: stage for stage in facts.stages}
    return [
        (one, stages[one.stage], speed)
        for one in facts.recovery
        if (speed := stages[one.stage].throughput) is not None
    ]


def _front(points: list[_Point]) -> list[_Point]:
    """Those that no other is better than in both, the soonest first."""
    return sorted(
        (point for point in points if point[0].on_front), key=lambda point: point[0].ready_s.median
    )


def _line(front: list[_Point]) -> go.Scatter:
    return go.Scatter(
        x=[one.ready_s.median for one, _, _ in front],
        y=[speed.median for _, _, speed in front],
        mode="lines",
        line={"color": look.MUTED, "width": 1.5, "shape": "hv", "dash": "dot"},
        hoverinfo="skip",
    )


def _dot(point: _Point, facts: Facts, latest_s: float) -> go.Scatter:
    """A stage; those on the line have their names, as there is no room for all."""
    one, stage, speed = point
    side = "left" if one.ready_s.median > _LEFT_FROM * latest_s else "right"
    place = [found.name for found in facts.stages].index(stage.name)
    return go.Scatter(
        x=[one.ready_s.median],
        y=[speed.median],
        mode="markers+text" if one.on_front else "markers",  # an empty template shows the text
        texttemplate=look.label(stage.name),
        textposition=f"bottom {side}",
        textfont={"size": look.SMALL_PX, "color": look.INK},
        marker={
            "size": 11,
            "symbol": look.stage_symbol(place),
            "color": look.rung_colour(stage.rung),
            "line": {"width": 1.5, "color": look.SURFACE},
        },
        error_x=_whisker(one.ready_s),
        error_y=_whisker(speed),
        text=[look.plain(stage.name)],
        hovertemplate=f"%{{text}}<br>%{{y:,.0f}} {facts.headline}<br>%{{x:.1f}} s<extra></extra>",
    )


def _whisker(spread: Spread) -> dict[str, object]:
    """From the lowest round to the highest."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(spread.rounds) - spread.median],
        "arrayminus": [spread.median - min(spread.rounds)],
        "color": look.MUTED,
        "thickness": 1,
        "width": 3,
    }


def _keys(facts: Facts) -> tuple[Key, ...]:
    rungs = sorted({stage.rung for _, stage, _ in _points(facts)})
    return (
        *(Key(f"a stage on {rung}", look.rung_colour(rung), "dot") for rung in rungs),
        Key("no other is faster and sooner back", look.MUTED, "line"),
    )


CHART = Chart(
    name="recovery",
    title="Throughput, and what a crash costs",
    caption=(
        "A point is a stage: medians, from the lowest round to the highest. Up and to the left is"
        " better; no stage lies above and left of the dotted line, whose stages are named."
    ),
    height_px=330,
    panels=_panels,
    keys=_keys,
)
