"""What each stage adds: bars from zero, the step of each stage in the colour of its rung."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import plotly.graph_objects as go

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts, StageFacts
from pgdyno.model.units import count_text
from pgdyno.report.charts import look
from pgdyno.report.charts.chart import Chart, Key, Panel

BAR_WIDTH = 0.62
NOTES_PX = 112  # a column for the ratios, right of the bars, where no interval is longer
_NOTE_BESIDE_PX = 8
_LETTER_PX = 7.2


_WHISKER_TIMES = 2.0  # the longest bar


def _panels(facts: Facts) -> tuple[Panel, ...]:
    stages = [stage for stage in facts.stages if stage.throughput]
    if not stages:
        return ()
    names = [stage.name for stage in stages]
    medians = [stage.throughput.median if stage.throughput else 0.0 for stage in stages]
    before = [0.0, *(_before(stage, then, facts) for then, stage in pairwise(stages))]
    ends = [_interval(stage, facts) for stage in stages]
    carried = go.Bar(
        y=names,
        x=[0.0, *(min(pair) for pair in zip(before[1:], medians[1:], strict=True))],
        orientation="h",
        width=BAR_WIDTH,
        marker={"color": look.CARRIED, "line": {"width": 0}},
        hoverinfo="skip",
    )
    steps = [
        _step(stage, now, then, facts.headline)
        for stage, now, then in zip(stages, medians, before, strict=True)
    ]
    whiskers = [
        # The wide one in the page's colour keeps the narrow one legible on any bar.
        _whisker(stages, ends, colour=look.SURFACE, width=5),
        _whisker(stages, ends, colour=look.INK, width=1.6),
    ]
    # An interval of two rounds may reach to ten thousand times the bars: it ends where they are
    # still seen, and is told in full beside them.
    widest = max(high for *_, high in ends)
    marks = [middle for _, middle, _ in ends]
    longest = max(*medians, *marks, min(widest, _WHISKER_TIMES * max(medians)))
    drawing = look.figure(
        [carried, *steps, *whiskers, _cut_off(stages, ends, longest)],
        barmode="overlay",
        annotations=[_note(stage) for stage in stages],
        margin={side: look.MARGIN_PX for side in "ltb"} | {"r": _notes_px(stages)},
        xaxis=look.axis(f"{facts.headline}, median of rounds", range=[0, longest * 1.02], nticks=5),
        yaxis=look.axis(
            autorange="reversed",
            showgrid=False,
            tickfont={"size": look.FONT_PX},
            **look.name_ticks(names),
        ),
    )
    spoken = ". ".join(_spoken(stage, facts.headline) for stage in stages)
    alt = f"Bar chart of {facts.headline} by stage. {spoken}."
    return (Panel("", alt, drawing),)


def _before(stage: StageFacts, then: StageFacts, facts: Facts) -> float:
    """Where its step begins: at the stage that it builds on."""
    base = facts.base_of(stage)
    if base.name != facts.base_of(then).name or base is stage:
        return 0.0  # the first that was measured of a load stands for itself
    built_on = base if stage.afresh else then
    return built_on.throughput.median if built_on.throughput else 0.0


def _step(stage: StageFacts, now: float, then: float, metric: str) -> go.Bar:
    """The part of a bar between the stage before and this one."""
    marker: dict[str, object] = {"color": look.rung_colour(stage.rung), "line": {"width": 0}}
    if now < then:
        marker["pattern"] = {"shape": "/", "fgcolor": look.SURFACE, "size": 6}
    return go.Bar(
        y=[stage.name],
        x=[abs(now - then)],
        base=[min(now, then)],
        orientation="h",
        width=BAR_WIDTH,
        marker=marker,
        text=[look.plain(_spoken(stage, metric))],
        textposition="none",
        hovertemplate="%{text}<extra></extra>",
    )


def _whisker(
    stages: Sequence[StageFacts],
    ends: Sequence[tuple[float, float, float]],
    *,
    colour: str,
    width: float,
) -> go.Scatter:
    """The intervals around the ratios, of the stages that have one."""
    drawn = [
        (stage.name, middle, low, high)
        for stage, (low, middle, high) in zip(stages, ends, strict=True)
        if low < high
    ]
    return go.Scatter(
        y=[name for name, *_ in drawn],
        x=[now for _, now, _, _ in drawn],
        mode="markers",
        marker={"color": colour, "size": 7, "symbol": "line-ns", "line": {"width": width}},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [max(0.0, high - now) for _, now, _, high in drawn],
            "arrayminus": [max(0.0, now - low) for _, now, low, _ in drawn],
            "color": colour,
            "thickness": width,
            "width": 6,
        },
        hoverinfo="skip",
    )


def _cut_off(
    stages: Sequence[StageFacts], ends: Sequence[tuple[float, float, float]], longest: float
) -> go.Scatter:
    """An arrow where an interval goes on beyond the axis."""
    beyond = [one.name for one, (*_, high) in zip(stages, ends, strict=True) if high > longest]
    return go.Scatter(
        y=beyond,
        x=[longest] * len(beyond),
        mode="markers",
        marker={"color": look.INK, "size": 11, "symbol": "triangle-right"},
        hoverinfo="skip",
    )


def _interval(stage: StageFacts, facts: Facts) -> tuple[float, float, float]:
    """The interval on the axis, and the ratio in it, times the median of its base.

    Not around the stage's own median: that need not be the ratio's, nor lie in its interval.
    """
    assert stage.throughput is not None
    against, first = stage.to_first, facts.base_of(stage).throughput
    ends = (against.low, against.ratio, against.high) if against else (None, None, None)
    low, ratio, high = ends
    if low is None or ratio is None or high is None or first is None:
        return (stage.throughput.median,) * 3
    return low * first.median, ratio * first.median, high * first.median


def _notes_px(stages: Sequence[StageFacts]) -> int:
    """What the longest interval takes."""
    letters = max(len(words.interval(stage.to_first)) for stage in stages)
    return max(NOTES_PX, round(_NOTE_BESIDE_PX + letters * _LETTER_PX))


def _note(stage: StageFacts) -> dict[str, object]:
    if stage.to_first is None or stage.to_first.ratio is None:
        text = stage.rung
    else:
        text = f"<b>{words.ratio(stage.to_first)}</b> · {stage.rung}"
        text += f"<br>{words.interval(stage.to_first)}"
    return {
        "x": 1,
        "xref": "paper",
        "y": stage.name,
        "text": text,
        "showarrow": False,
        "xanchor": "left",
        "xshift": _NOTE_BESIDE_PX,
        "align": "left",
        "font": {"size": look.FONT_PX, "color": look.INK},
    }


def _spoken(stage: StageFacts, metric: str) -> str:
    assert stage.throughput is not None
    text = f"{stage.name} ({stage.rung}): {count_text(stage.throughput.median)} {metric}"
    if stage.to_first is not None and stage.to_first.ratio is not None:
        text += f", {words.ratio(stage.to_first)} of {stage.to_first.base}"
        text += f" ({words.interval(stage.to_first)})"
    return text


def _keys(facts: Facts) -> tuple[Key, ...]:
    used = sorted({stage.rung for stage in facts.stages if stage.throughput})
    rungs = tuple(Key(words.rung(rung), look.rung_colour(rung), "bar") for rung in used)
    return (*rungs, Key("carried over", look.CARRIED, "bar"))


CHART = Chart(
    name="waterfall",
    title="What each stage adds",
    caption=(
        "A bar is as long as the median throughput of its stage's rounds. Its coloured part is"
        " what the stage adds to the one before it that was measured, or to the first if it begins"
        " afresh; it is hatched where the median is lower, and its colour is the durability rung."
        " The line across a bar is the interval of the ratio to the first stage (of its load), from"
        " paired rounds, and its mark the ratio itself, both times the first stage's median; the"
        " line ends in an arrow where it goes on beyond the axis."
    ),
    height_px=70,
    per_row_px=58,
    panels=_panels,
    keys=_keys,
)
