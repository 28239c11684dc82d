"""Throughput over time, one panel for each trial, with its checkpoints."""

from __future__ import annotations

from collections import Counter

import plotly.graph_objects as go

from pgdyno.analysis.facts import Facts, TrialFacts
from pgdyno.analysis.timeline_facts import Timeline
from pgdyno.model.units import count_text
from pgdyno.model.wording import listed, often, plural
from pgdyno.report.charts import look, time_axis
from pgdyno.report.charts.chart import Chart, Key, Panel

_PALE = 0.35  # of an envelope, behind the line


def _panels(facts: Facts) -> tuple[Panel, ...]:
    drawn = time_axis.over_time(facts)
    if not drawn:
        return ()
    order = {stage.name: index for index, stage in enumerate(facts.stages)}
    highest = max(max(timeline.greatest or timeline.tpm) for _, timeline in drawn) * 1.12
    return tuple(
        _panel(facts, trial, timeline, order[trial.stage], highest) for trial, timeline in drawn
    )


def _panel(
    facts: Facts, trial: TrialFacts, timeline: Timeline, index: int, highest: float
) -> Panel:
    line = go.Scatter(
        x=timeline.second,
        y=timeline.tpm,
        mode="lines",
        line={"color": look.stage_colour(index), "width": 1.5},
        hovertemplate="%{x:.0f} s<br>%{y:,.0f} tpmTotal<extra></extra>",
    )
    yaxis = look.axis("tpmTotal", range=[0, highest], nticks=6, tickformat="~s")
    drawing = time_axis.figure(facts, timeline, [*_envelope(timeline, index), line], yaxis)
    title = time_axis.title(trial)
    low = min(_inside(timeline, timeline.least or timeline.tpm), default=0.0)
    high = max(_inside(timeline, timeline.greatest or timeline.tpm), default=0.0)
    checkpoints = plural(len(timeline.checkpoints), "checkpoint")
    alt = (
        f"Line of throughput in trial {trial.number}, {title}: between {count_text(low)} and"
        f" {count_text(high)} tpmTotal in the window, with {checkpoints}{_lost(timeline)}"
        f"{_marked(timeline)}."
    )
    return Panel(title, alt, drawing)


def _inside(timeline: Timeline, tpm: tuple[float, ...]) -> list[float]:
    """What of a line lies in the window."""
    return [value for second, value in zip(timeline.second, tpm, strict=True) if second > 0]


def _envelope(timeline: Timeline, index: int) -> list[go.Scatter]:
    """From the least second of each point to its greatest: a stall of one is seen in an hour."""
    if not timeline.least:
        return []
    return [
        go.Scatter(
            x=timeline.second + timeline.second[::-1],
            y=timeline.greatest + timeline.least[::-1],
            mode="lines",
            line={"color": look.stage_colour(index), "width": 0.5},
            fill="toself",
            fillcolor=look.stage_colour(index),
            opacity=_PALE,
            hoverinfo="skip",
        )
    ]


def _lost(timeline: Timeline) -> str:
    if not timeline.outages:
        return ""
    return f" and {often(len(timeline.outages))} without connections"


def _marked(timeline: Timeline) -> str:
    counts = Counter(mark.kind.replace("_", " ") for mark in timeline.marks)
    said = [plural(count, kind) for kind, count in counts.items()]
    if timeline.marks_left_out:
        said.append(plural(timeline.marks_left_out, "shorter event"))
    return f"; in the log, {listed(said)}" if said else ""


def _keys(facts: Facts) -> tuple[Key, ...]:
    stages = tuple(
        Key(look.short(stage.name), look.stage_colour(index), "line")
        for index, stage in enumerate(facts.stages)
        if any(trial.stage == stage.name and trial.timeline for trial in facts.trials)
    )
    return (*stages, *_envelope_keys(facts), *time_axis.keys(facts))


def _envelope_keys(facts: Facts) -> tuple[Key, ...]:
    joined = any(timeline.least for _, timeline in time_axis.over_time(facts))
    return (Key("paler: from the slowest second to the fastest", look.CARRIED, "bar"),) * joined


CHART = Chart(
    name="timeline",
    title="Throughput over time",
    caption=(
        "One panel for each trial, all on the same axes, which begin at zero. All kinds of"
        " transactions count."
    ),
    height_px=180,
    panels=_panels,
    keys=_keys,
    across=time_axis.across,
)
