"""Bars with intervals, one for each name: a chart of several reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import plotly.graph_objects as go

from pgdyno.report.charts import Panel, look

_ROW_PX = 46
_FRAME_PX = 90


class Bar(NamedTuple):
    """A value with its interval."""

    name: str
    value: float
    low: float
    high: float


def height_px(bars: int) -> int:
    """Of a chart with so many."""
    return _FRAME_PX + _ROW_PX * max(bars, 1)


def interval_bars(
    bars: Sequence[Bar],
    *,
    zero: float,
    unit: str,
    shown: Callable[[Bar], str],
    alt: str,
    rules: Sequence[dict[str, Any]] = (),
) -> Panel:
    """Draw them from the bottom to the top.

    Args:
        bars: The lowest first.
        zero: Where bars begin.
        unit: Of the values.
        shown: What is told where one is pointed at.
        alt: The same for who sees no chart.
        rules: Lines across it.
    """
    names = [one.name for one in bars]
    drawn = go.Bar(
        orientation="h", y=names, x=[one.value - zero for one in bars], base=zero,
        marker={"color": look.stage_colour(0)},
        error_x={
            "type": "data", "symmetric": False, "color": look.INK, "thickness": 1.5,
            "array": [one.high - one.value for one in bars],
            "arrayminus": [one.value - one.low for one in bars],
        },
        hovertext=[shown(one) for one in bars],
        hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip
    figure = look.figure(
        [drawn], xaxis=look.axis(unit), yaxis=look.axis(**look.name_ticks(names)),
        shapes=list(rules), bargap=0.45,
    )  # fmt: skip
    return Panel("", alt, figure)
