"""Layers stacked over time. Where points are means of several seconds, what stood out in these.

A mean of seconds hides a stall of one. So lines above the stack go from the least that all layers
came to together to the most, and below it each layer that is drawn has a line of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from pgdyno.analysis.extremes import LAYER_PARTS_MAX
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.timeline_facts import Extremes, Timeline
from pgdyno.report.charts import look, time_axis
from pgdyno.report.charts.chart import Key

BELOW_PX = 90  # further height of a panel that has lines below
ENDS = Key("all together where they were fewest, and most", look.INK, "line")
_ROOM = 1.06  # above the highest


@dataclass(frozen=True, slots=True)
class Stack:
    """What is drawn of a trial, in the order from below."""

    second: tuple[float, ...]
    step_s: float
    layers: Mapping[str, tuple[float, ...]]
    least: tuple[float, ...]
    greatest: tuple[float, ...]
    apart: Mapping[str, Extremes]


@dataclass(frozen=True, slots=True)
class Look:
    """How layers of a chart are called and drawn."""

    colour: Callable[[str], str]
    label: Callable[[str], str]
    unit: str
    digits: int


def heights(stacks: Sequence[Stack]) -> tuple[float, float]:
    """Of the axes of all panels: above, and below."""
    above = [_highest(one) for one in stacks]
    below = [max(line.values) for one in stacks for line in one.apart.values()]
    return _ROOM * max(above, default=1.0), _ROOM * max(below, default=1.0)


def _highest(stack: Stack) -> float:
    sums = map(sum, zip(*stack.layers.values(), strict=True))
    return max((*stack.greatest, *sums), default=1.0)


def figure(
    facts: Facts, timeline: Timeline, stack: Stack, of: Look, highest: tuple[float, float]
) -> go.Figure:
    """The drawing of a trial."""
    above, below = highest
    traces = [*_layers(stack, of), *_ends(stack), *_apart(stack, of)]
    yaxis = look.axis(of.unit, range=[0, above], nticks=6)
    beside = look.axis("each", range=[0, below], nticks=4) if stack.apart else None
    return time_axis.figure(facts, timeline, traces, yaxis, beside)


def ends_text(stack: Stack) -> str:
    """What stood out, for those who do not see it."""
    if not stack.least:
        return ""
    return f"; between {min(stack.least):.1f} and {max(stack.greatest):.1f} in single seconds"


def _layers(stack: Stack, of: Look) -> Iterator[go.Scatter]:
    for part in time_axis.unbroken(stack.second, stack.step_s):
        for name, values in stack.layers.items():
            yield go.Scatter(
                x=_seconds(stack, part),
                y=_held(values[part]),
                mode="lines",
                stackgroup=f"stack {part.start}",
                line={"color": of.colour(name), "width": 0},
                fillcolor=of.colour(name),
                hovertemplate=_told(name, of),
            )


def _told(name: str, of: Look) -> str:
    return f"%{{x:.0f}} s<br>{of.label(name)}: %{{y:.{of.digits}f}}<extra></extra>"


def _ends(stack: Stack) -> Iterator[go.Scatter]:
    for part in time_axis.unbroken(stack.second, stack.step_s):
        for ends in (stack.least, stack.greatest):
            if ends:
                yield go.Scatter(
                    x=_seconds(stack, part),
                    y=_held(ends[part]),
                    mode="lines",
                    line={"color": look.INK, "width": 0.75},
                    hoverinfo="skip",
                )


def _apart(stack: Stack, of: Look) -> Iterator[go.Scatter]:
    for name, line in stack.apart.items():
        span_s = line.second[-1] - line.second[0]
        apart_s = max(stack.step_s, 2 * span_s / LAYER_PARTS_MAX)
        for part in time_axis.unbroken(line.second, apart_s):
            yield go.Scatter(
                x=line.second[part],
                y=line.values[part],
                yaxis=time_axis.BELOW,
                mode="lines",
                line={"color": of.colour(name), "width": 1},
                hovertemplate=_told(name, of),
            )


def _seconds(stack: Stack, part: slice) -> tuple[float, ...]:
    """From the begin of the first point to the end of the last: one alone has a width, too."""
    middles = stack.second[part]
    return (middles[0] - stack.step_s / 2, *middles, middles[-1] + stack.step_s / 2)


def _held(values: tuple[float, ...]) -> tuple[float, ...]:
    return (values[0], *values, values[-1])
