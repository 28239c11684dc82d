"""The axis of all charts of a trial over time: seconds of the window, and what happened in them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from textwrap import wrap
from typing import Any

import plotly.graph_objects as go

from pgdyno.analysis.facts import Facts, TrialFacts
from pgdyno.analysis.timeline_facts import Mark, Timeline
from pgdyno.model.sampler_gaps import APART_S
from pgdyno.report.charts import look
from pgdyno.report.charts.chart import Key

ACROSS_MAX = 4
_BELOW_PX = 40  # of a drawing: numbers and title of the axis


def over_time(facts: Facts) -> list[tuple[TrialFacts, Timeline]]:
    """Trials that have a line over time, stage by stage."""
    order = {stage.name: index for index, stage in enumerate(facts.stages)}
    return [
        (trial, trial.timeline)
        for trial in sorted(facts.trials, key=lambda trial: (order[trial.stage], trial.round))
        if trial.timeline is not None and trial.timeline.tpm
    ]


def ends(facts: Facts) -> list[float]:
    """Begin and end of the axis, the same for all panels: warm-up is negative."""
    lines = [timeline for _, timeline in over_time(facts)]
    begin = min(timeline.second[0] - timeline.step_s / 2 for timeline in lines)
    return [begin, max(timeline.window_s for timeline in lines)]


BELOW = "y3"
"""The axis of a second drawing below the first, on the same axis of time."""
_ABOVE_PARTS, _BELOW_PARTS = [0.42, 1.0], [0.0, 0.34]  # of the height


def figure(
    facts: Facts,
    timeline: Timeline,
    traces: list[go.Scatter],
    yaxis: dict[str, Any],
    below: dict[str, Any] | None = None,
) -> go.Figure:
    """A drawing of a trial on the common axis, with what happened behind and above it.

    Args:
        facts: Whose trials have one axis.
        timeline: Of the trial.
        traces: What is drawn, on the axes `y` and `BELOW`.
        yaxis: Of what is drawn.
        below: Of what is drawn below it; None: nothing is.
    """
    begin, end = ends(facts)
    marks = _marks(timeline)
    layout: dict[str, Any] = {"yaxis": yaxis}
    if below:
        layout = {"yaxis": {**yaxis, "domain": _ABOVE_PARTS},
                  "yaxis3": {**below, "domain": _BELOW_PARTS}}  # fmt: skip
    above = {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}
    return look.figure(
        [*traces, *marks],
        meta={"axis": "time"},  # the page draws one cursor through all of them
        # On paper plotly makes no room of its own for the title below the numbers.
        margin={"l": look.MARGIN_PX, "r": look.MARGIN_PX, "t": look.MARGIN_PX, "b": _BELOW_PX},
        shapes=[*_bands(begin, timeline), *_window_end(end, timeline)],
        xaxis=look.axis(
            "s in the window",
            range=[begin, end],
            nticks=6,
            showgrid=False,
            anchor=BELOW if below else "y",
        ),
        **layout,
        **({"yaxis2": above} if marks else {}),
    )


def unbroken(second: Sequence[float], ordinary_s: float) -> list[slice]:
    """Parts of a line within which nobody looked away: between them nothing is drawn.

    Args:
        second: Of its points.
        ordinary_s: How far apart these are where all was seen.
    """
    cuts = [at for at, (one, after) in enumerate(pairwise(second), start=1)
            if after - one > ordinary_s + APART_S]  # fmt: skip
    return [slice(*ends) for ends in pairwise((0, *cuts, len(second)))]


def title(trial: TrialFacts) -> str:
    """Of a panel."""
    named = f"{look.short(trial.stage)} · round {trial.round}"
    return named if trial.state == "finished" else f"{named} · {trial.state}"


def _bands(begin: float, timeline: Timeline) -> list[dict[str, Any]]:
    """Warm-up, checkpoints and times without connections, behind the data."""
    warmup = [_band(begin, 0.0, look.WARMUP)] if begin < 0 else []
    checkpoints = [_band(c.start_s, c.end_s, look.CHECKPOINT) for c in timeline.checkpoints]
    flushes = [_band(*span, look.CHECKPOINT) for span in _flushes(timeline)]  # twice as dark
    outages = [_band(*outage, look.OUTAGE) for outage in timeline.outages]
    return [*warmup, *checkpoints, *flushes, *outages]


def _window_end(end: float, timeline: Timeline) -> list[dict[str, Any]]:
    """Where the window ends, if the axis goes on for longer ones."""
    if not _ends_early(end, timeline):
        return []
    line = {"color": look.MUTED, "width": 1, "dash": "dash"}
    at = timeline.window_s
    return [{"type": "line", "yref": "paper", "x0": at, "x1": at, "y0": 0, "y1": 1, "line": line}]


def _ends_early(end: float, timeline: Timeline) -> bool:
    return end - timeline.window_s > _SEEN_SHARE * end


def _flushes(timeline: Timeline) -> list[tuple[float, float]]:
    """Of checkpoints: when they flushed files, where that took long enough to be seen."""
    spans = [
        (one.written_s, one.flushed_s)
        for one in timeline.checkpoints
        if one.written_s is not None and one.flushed_s is not None
    ]
    return [one for one in spans if one[1] - one[0] >= _SEEN_SHARE * timeline.window_s]


_SEEN_SHARE = 0.002  # of the axis: about a pixel of a panel
_MARKS = {
    "autovacuum": ("autovacuum", "square", look.stage_colour(1)),
    "autoanalyze": ("autoanalyze", "diamond", look.stage_colour(4)),
    "analyze": ("ANALYZE", "diamond-open", look.stage_colour(4)),
    "vacuum": ("VACUUM", "square-open", look.stage_colour(1)),
    "restartpoint": ("restartpoint", "hexagon", look.stage_colour(2)),
    "recovery": ("recovery", "star", "var(--bad)"),
    "lock_wait": ("wait for a lock", "triangle-down", "var(--wait-lock)"),
    "temporary_file": ("temporary file", "circle", "var(--wait-io)"),
    "error": ("error", "x", "var(--bad)"),
}
"""How each kind of event is called and drawn."""
_SHOWN_OF_TEXT, _LINE_LETTERS = 150, 50


ABOVE = "y2"
"""The axis of what happened: the same for all drawings of a trial, whatever these show."""


def _marks(timeline: Timeline) -> list[go.Scatter]:
    """Events of the log along the upper edge: a line for how long, a symbol where it ended."""
    return [
        trace
        for kind, (label, symbol, colour) in _MARKS.items()
        if (found := [one for one in timeline.marks if one.kind == kind])
        for trace in (_lasted(colour, found), _ended(label, symbol, colour, found))
    ]


def _lasted(colour: str, found: list[Mark]) -> go.Scatter:
    return go.Scatter(
        x=[value for one in found for value in (one.start_s, one.end_s, None)],
        y=[value for _ in found for value in (1, 1, None)],
        yaxis=ABOVE,
        mode="lines",
        line={"color": colour, "width": 3},
        hoverinfo="skip",
        connectgaps=False,
    )


def _ended(label: str, symbol: str, colour: str, found: list[Mark]) -> go.Scatter:
    """A symbol takes a chart as long as a hundred points of a line: one for each, no more."""
    told = (wrap(f"{label} {one.text[:_SHOWN_OF_TEXT]}", _LINE_LETTERS) for one in found)
    return go.Scatter(
        x=[one.end_s for one in found],
        y=[1] * len(found),
        yaxis=ABOVE,
        mode="markers",
        marker={"symbol": symbol, "size": 6, "color": colour},
        text=["<br>".join(map(look.plain, lines)) for lines in told],
        hovertemplate="%{x:.1f} s<br>%{text}<extra></extra>",
    )


def keys(facts: Facts) -> tuple[Key, ...]:
    """What symbols, bands and lines mean that all drawings of trials share."""
    return (*_mark_keys(facts), *_band_keys(facts))


def _mark_keys(facts: Facts) -> tuple[Key, ...]:
    """What the symbols mean, as far as there are any."""
    met = {mark.kind for _, timeline in over_time(facts) for mark in timeline.marks}
    return tuple(
        Key(label, colour, "dot") for kind, (label, _, colour) in _MARKS.items() if kind in met
    )


def _band_keys(facts: Facts) -> tuple[Key, ...]:
    """What the bands mean, as far as there are any."""
    drawn = [timeline for _, timeline in over_time(facts)]
    keys = []
    if any(timeline.checkpoints for timeline in drawn):
        keys.append(Key("checkpoint", look.CHECKPOINT, "band"))
    if any(_flushes(timeline) for timeline in drawn):
        keys.append(Key("its flushes", look.CHECKPOINT_FLUSH, "band"))
    if any(timeline.outages for timeline in drawn):
        keys.append(Key("connections lost", look.OUTAGE, "band"))
    if any(timeline.second[0] < 0 for timeline in drawn):
        keys.append(Key("warm-up, not counted", look.WARMUP, "band"))
    if drawn and any(_ends_early(ends(facts)[1], timeline) for timeline in drawn):
        keys.append(Key("end of a shorter window", look.MUTED, "dash"))
    return tuple(keys)


def across(facts: Facts) -> int:
    """Panels in a row of a wide page: the rounds of a stage."""
    rounds = len({trial.round for trial in facts.trials if trial.timeline})
    return max(1, min(rounds, ACROSS_MAX))


def _band(begin: float, end: float, colour: str) -> dict[str, Any]:
    return {
        "type": "rect", "xref": "x", "yref": "paper", "x0": begin, "x1": end, "y0": 0, "y1": 1,
        "fillcolor": colour, "line": {"width": 0}, "layer": "below",
    }  # fmt: skip
