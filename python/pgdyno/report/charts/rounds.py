"""Every round of every stage, so that the noise can be seen beside the effect."""

from __future__ import annotations

import plotly.graph_objects as go

from pgdyno.analysis.facts import Facts
from pgdyno.model.units import count_text
from pgdyno.report.charts import look
from pgdyno.report.charts.chart import Chart, Key, Panel

_ROOM = 0.08  # beyond the lowest and the highest trial, of what is between them
_DASH_PX, _DASH_MIN_PX = 44, 12
_DASHES_PX = 120  # of all stages together: on a telephone they neither meet nor leave the picture


def _panels(facts: Facts) -> tuple[Panel, ...]:
    stages = [stage for stage in facts.stages if stage.throughput]
    if not stages:
        return ()
    traces = [*_lines(facts), _medians(facts), _dots(facts), _unused(facts)]
    drawing = look.figure(
        traces,
        xaxis=look.axis(
            showgrid=False,
            tickfont={"size": 13},
            categoryorder="array",
            categoryarray=[stage.name for stage in facts.stages],
            range=[-0.5, len(facts.stages) - 0.5],
            **look.name_ticks([stage.name for stage in facts.stages]),
        ),
        yaxis=look.axis(facts.headline, tickformat=",.0f", nticks=6, range=_span(facts)),
    )
    summary = "; ".join(
        f"{stage.name}: " + ", ".join(count_text(value) for value in stage.throughput.rounds)
        for stage in stages
        if stage.throughput
    )
    return (Panel("", f"Dot plot of {facts.headline} in each round. {summary}.", drawing),)


def _span(facts: Facts) -> list[float]:
    """Ends of the axis; plotly chooses by the size of the picture, and may begin below zero."""
    shown = [
        one.throughput
        for one in facts.trials
        if one.state in ("finished", "invalid") and one.throughput is not None
    ]
    low, high = min(shown), max(shown)
    room = _ROOM * (high - low) or _ROOM * high or 1.0
    return [max(low - room, low / 2) if low > 0 else -room, high + room]


def _lines(facts: Facts) -> list[go.Scatter]:
    """A thin line through the trials of each round."""
    lines = []
    for round_ in sorted({trial.round for trial in facts.trials}):
        of_round = {
            trial.stage: trial.throughput
            for trial in facts.trials
            if trial.round == round_ and trial.state == "finished"
        }
        lines.append(
            go.Scatter(
                x=[stage.name for stage in facts.stages],
                y=[of_round.get(stage.name) for stage in facts.stages],
                mode="lines",
                connectgaps=False,
                line={"color": look.MUTED, "width": 1},
                opacity=0.55,
                hoverinfo="skip",
            )
        )
    return lines


def _medians(facts: Facts) -> go.Scatter:
    stages = [stage for stage in facts.stages if stage.throughput]
    return go.Scatter(
        x=[stage.name for stage in stages],
        y=[stage.throughput.median for stage in stages if stage.throughput],
        mode="markers",
        marker={
            "symbol": "line-ew",
            "size": max(_DASH_MIN_PX, min(_DASH_PX, _DASHES_PX / len(facts.stages))),
            "line": {"width": 2.5, "color": [look.rung_colour(stage.rung) for stage in stages]},
        },
        hoverinfo="skip",
    )


def _dots(facts: Facts) -> go.Scatter:
    rung = {stage.name: stage.rung for stage in facts.stages}
    used = [t for t in facts.trials if t.state == "finished" and t.throughput is not None]
    return go.Scatter(
        x=[trial.stage for trial in used],
        y=[trial.throughput for trial in used],
        mode="markers",
        marker={
            "size": 9,
            "color": [look.rung_colour(rung[trial.stage]) for trial in used],
            "line": {"width": 1.5, "color": look.SURFACE},
        },
        text=[f"{look.plain(t.stage)}, round {t.round}, trial {t.number}" for t in used],
        hovertemplate=f"%{{text}}<br>%{{y:,.0f}} {facts.headline}<extra></extra>",
    )


def _unused(facts: Facts) -> go.Scatter:
    unused = [t for t in facts.trials if t.state == "invalid" and t.throughput is not None]
    return go.Scatter(
        x=[trial.stage for trial in unused],
        y=[trial.throughput for trial in unused],
        mode="markers",
        marker={"size": 9, "symbol": "x-thin", "line": {"width": 2, "color": look.MUTED}},
        text=[f"trial {t.number}, round {t.round}: invalid, not used" for t in unused],
        hovertemplate=f"%{{text}}<br>%{{y:,.0f}} {facts.headline}<extra></extra>",
    )


def _keys(facts: Facts) -> tuple[Key, ...]:
    keys = [
        Key("a trial", look.rung_colour(facts.first.rung), "dot"),
        Key("median of the stage", look.rung_colour(facts.first.rung), "dash"),
        Key("trials of one round", look.MUTED, "line"),
    ]
    if any(trial.state == "invalid" and trial.throughput is not None for trial in facts.trials):
        keys.append(Key("invalid trial, not used", look.MUTED, "cross"))
    return tuple(keys)


CHART = Chart(
    name="rounds",
    title="Throughput of every trial",
    caption=(
        "A line joins the trials of one round. That one lies above another is noise, which the"
        " pairing removes; lines that run in parallel agree about the stages. The axis begins a"
        " little below the lowest trial, not at zero."
    ),
    height_px=330,
    panels=_panels,
    keys=_keys,
)
