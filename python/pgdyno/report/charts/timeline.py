"""Throughput over time, one panel for each trial, with its checkpoints."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from pgdyno.analysis.facts import Facts, Timeline, TrialFacts
from pgdyno.model.units import count_text
from pgdyno.model.wording import plural
from pgdyno.report.charts import look
from pgdyno.report.charts.chart import Chart, Key, Panel

ACROSS_MAX = 4


def _panels(facts: Facts) -> tuple[Panel, ...]:
    order = {stage.name: index for index, stage in enumerate(facts.stages)}
    drawn = [
        (trial, trial.timeline)
        for trial in sorted(facts.trials, key=lambda trial: (order[trial.stage], trial.round))
        if trial.timeline is not None and trial.timeline.tpm
    ]
    if not drawn:
        return ()
    highest = max(max(timeline.tpm) for _, timeline in drawn) * 1.06
    begin = min(timeline.second[0] - timeline.step_s / 2 for _, timeline in drawn)
    end = max(timeline.window_s for _, timeline in drawn)
    return tuple(
        _panel(trial, timeline, order[trial.stage], ([begin, end], highest))
        for trial, timeline in drawn
    )


def _panel(
    trial: TrialFacts, timeline: Timeline, index: int, frame: tuple[list[float], float]
) -> Panel:
    seconds, highest = frame
    line = go.Scatter(
        x=timeline.second,
        y=timeline.tpm,
        mode="lines",
        line={"color": look.stage_colour(index), "width": 1.5},
        hovertemplate="%{x:.0f} s<br>%{y:,.0f} tpmTotal<extra></extra>",
    )
    drawing = look.figure(
        [line],
        shapes=[*_warmup(seconds[0]), *_bands(timeline)],
        xaxis=look.axis("s in the window", range=seconds, nticks=6, showgrid=False),
        yaxis=look.axis("tpmTotal", range=[0, highest], nticks=6, tickformat="~s"),
    )
    title = f"{look.short(trial.stage)} · round {trial.round}"
    if trial.state != "finished":
        title += f" · {trial.state}"
    inside = [tpm for second, tpm in zip(timeline.second, timeline.tpm, strict=True) if second > 0]
    low, high = (min(inside), max(inside)) if inside else (0.0, 0.0)
    checkpoints = plural(len(timeline.checkpoints), "checkpoint")
    alt = (
        f"Line of throughput in trial {trial.number}, {title}: between {count_text(low)} and"
        f" {count_text(high)} tpmTotal in the window, with {checkpoints}{_lost(timeline)}."
    )
    return Panel(title, alt, drawing)


def _lost(timeline: Timeline) -> str:
    if not timeline.outages:
        return ""
    return f" and {plural(len(timeline.outages), 'time')} without connections"


def _warmup(begin: float) -> list[dict[str, Any]]:
    return [_band(begin, 0.0, look.WARMUP)] if begin < 0 else []


def _bands(timeline: Timeline) -> list[dict[str, Any]]:
    checkpoints = [_band(c.start_s, c.end_s, look.CHECKPOINT) for c in timeline.checkpoints]
    return checkpoints + [_band(*outage, look.OUTAGE) for outage in timeline.outages]


def _band(begin: float, end: float, colour: str) -> dict[str, Any]:
    return {
        "type": "rect",
        "xref": "x",
        "yref": "paper",
        "x0": begin,
        "x1": end,
        "y0": 0,
        "y1": 1,
        "fillcolor": colour,
        "line": {"width": 0},
        "layer": "below",
    }


def _keys(facts: Facts) -> tuple[Key, ...]:
    stages = tuple(
        Key(look.short(stage.name), look.stage_colour(index), "line")
        for index, stage in enumerate(facts.stages)
        if any(trial.stage == stage.name and trial.timeline for trial in facts.trials)
    )
    drawn = [trial.timeline for trial in facts.trials if trial.timeline]
    bands = []
    if any(timeline.checkpoints for timeline in drawn):
        bands.append(Key("checkpoint", look.CHECKPOINT, "band"))
    if any(timeline.outages for timeline in drawn):
        bands.append(Key("connections lost", look.OUTAGE, "band"))
    if any(timeline.second and timeline.second[0] < 0 for timeline in drawn):
        bands.append(Key("warm-up, not counted", look.WARMUP, "band"))
    return (*stages, *bands)


def _across(facts: Facts) -> int:
    rounds = len({trial.round for trial in facts.trials if trial.timeline})
    return max(1, min(rounds, ACROSS_MAX))


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
    across=_across,
)
