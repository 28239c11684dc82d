"""How charts look: colours by name, symbols, fonts, axes.

Colours are variables of the page's style sheet; the page puts their values in when it draws and
again when the theme changes. Nothing is told by colour alone: stages have symbols and dashes too,
rungs are written beside their bars.
"""

from __future__ import annotations

from math import ceil, floor, log10
from typing import Any

import plotly.graph_objects as go

INK = "var(--ink)"
SURFACE = "var(--surface)"
MUTED = "var(--muted)"
GRID = "var(--line)"
CARRIED = "var(--carried)"
CHECKPOINT = "var(--checkpoint)"
WARMUP = "var(--warmup)"
OUTAGE = "var(--outage)"

STAGE_COLOURS = 6  # --stage-1 to --stage-6 of the style sheet
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "pentagon", "hexagon")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SMALL_PX = 11
FONT_PX = 12


def stage_colour(index: int) -> str:
    """Colour of the stage at this place of the plan."""
    return f"var(--stage-{index % STAGE_COLOURS + 1})"


def stage_symbol(index: int) -> str:
    """Marker of the stage at this place of the plan."""
    return SYMBOLS[index % len(SYMBOLS)]


def stage_dash(index: int) -> str:
    """Dash of its lines."""
    return DASHES[index % len(DASHES)]


def rung_colour(rung: str) -> str:
    """Colour of a rung, from safe to unsafe."""
    return f"var(--rung-{rung.lower().replace('?', 'x')})"


def axis(title: str | None = None, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """A quiet axis with its title and unit."""
    return {
        "title": {"text": title, "standoff": 8, "font": {"size": FONT_PX, "color": MUTED}},
        "gridcolor": GRID,
        "linecolor": GRID,
        "zeroline": False,
        "tickfont": {"size": SMALL_PX, "color": MUTED},
        "automargin": True,
        "fixedrange": True,  # a finger that scrolls the page must not zoom a chart
        **more,
    }


def figure(traces: list[Any], **layout: Any) -> go.Figure:  # noqa: ANN401
    """A figure without background, title and legend: the page has them."""
    return go.Figure(
        traces,
        {
            "template": None,
            "showlegend": False,
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"color": INK, "size": FONT_PX},
            "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
            "hoverlabel": {"bgcolor": SURFACE, "font": {"color": INK, "size": FONT_PX}},
            **layout,
        },
    )


def log_axis(title: str, values: list[float]) -> dict[str, Any]:
    """A logarithmic axis over the values above zero; a plain one where there are none."""
    seen = [value for value in values if value > 0]
    if not seen:
        return axis(title)
    ticks = decade_ticks(min(seen), max(seen))
    return axis(title, type="log", tickvals=ticks, ticktext=[f"{tick:,g}" for tick in ticks])


def decade_ticks(low: float, high: float) -> list[float]:
    """Logarithmic ticks at 1, 2 and 5 of each decade, or at the decades where that is crowded."""
    decades = range(floor(log10(low / 1.3)), ceil(log10(high * 1.3)) + 1)
    steps = (1, 2, 5) if len(decades) <= 4 else (1,)
    ticks = [step * 10.0**decade for decade in decades for step in steps]
    return [tick for tick in ticks if low / 1.3 <= tick <= high * 1.3]
