"""How charts look: colours by name, symbols, fonts, axes.

Colours are variables of the page's style sheet; the page puts their values in when it draws and
again when the theme changes. Nothing is told by colour alone: stages have symbols and dashes too,
rungs are written beside their bars.
"""

from __future__ import annotations

import html
import textwrap
from math import ceil, floor, log10
from typing import Any

import plotly.graph_objects as go

INK = "var(--ink)"
SURFACE = "var(--surface)"
MUTED = "var(--muted)"
GRID = "var(--line)"
CARRIED = "var(--carried)"
CHECKPOINT = "var(--checkpoint)"
CHECKPOINT_FLUSH = "var(--checkpoint-flush)"
WARMUP = "var(--warmup)"
OUTAGE = "var(--outage)"

STAGE_COLOURS = 6  # --stage-1 to --stage-6 of the style sheet
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "pentagon", "hexagon")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
MARGIN_PX = 8  # around a drawing: room for half a marker at the end of an axis
SMALL_PX = 11
FONT_PX = 12
LINE_LETTERS, LINES = 20, 4  # of a name at an axis; 48 letters of a plan's stage fit
WIDTH_LETTERS = 48  # of all names along an axis of a telephone, at SMALL_PX
BESIDE_LETTERS_MIN = 8  # shorter lines are read by nobody; names that meet are turned
NAME_LETTERS = 64  # of a name beside a chart
MARGIN = 1.3  # free at both ends of a logarithmic axis, as a factor
# Ticks of a decade, from few to many.
_STEPS = (1,), (1, 2, 5), tuple(range(1, 10)), tuple(1 + tenth / 5 for tenth in range(45))


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
        "ticks": "",
        "zeroline": False,
        "tickfont": {"size": SMALL_PX, "color": MUTED},
        "automargin": True,
        "separatethousands": True,  # as the tables do
        "fixedrange": True,  # a finger that scrolls the page must not zoom a chart
        **more,
    }


def figure(traces: list[Any], **layout: Any) -> go.Figure:  # noqa: ANN401
    """A figure without background, title and legend: the page has them.

    Markers are drawn whole: plotly cuts those at an axis's end, where its margin has room for them.
    """
    for trace in traces:
        if isinstance(trace, go.Scatter) and "markers" in (trace.mode or ""):
            trace.cliponaxis = False
    return go.Figure(
        traces,
        {
            "template": "none",  # else each figure of a page carries plotly's own, 6 kB
            "autotypenumbers": "strict",  # a stage may be called 10
            "showlegend": False,
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"color": INK, "size": FONT_PX},
            "margin": {"l": MARGIN_PX, "r": MARGIN_PX, "t": MARGIN_PX, "b": MARGIN_PX},
            "hoverlabel": {
                "align": "left",
                "bgcolor": SURFACE,
                "font": {"color": INK, "size": FONT_PX},
            },
            **layout,
        },
    )


def plain(text: str) -> str:
    """Text for plotly, which reads tags, entities, TeX and its own fields in what it is given."""
    return html.escape(text, quote=False).replace("$", "&#36;").replace("%", "&#37;")


def label(name: str, beside: int = 1) -> str:
    """A name at an axis, in lines short enough for a telephone; the page's tables have it whole.

    Args:
        name: The name.
        beside: How many names share the width of the axis.
    """
    letters = min(LINE_LETTERS, max(BESIDE_LETTERS_MIN, WIDTH_LETTERS // beside))
    lines = textwrap.wrap(name, letters, max_lines=LINES * LINE_LETTERS // letters, placeholder="…")
    return "<br>".join(plain(line) for line in lines)


def short(name: str) -> str:
    """A name beside a chart: whole, unless it is longer than any plan allows."""
    return name if len(name) <= NAME_LETTERS else f"{name[: NAME_LETTERS - 1]}…"


def name_ticks(names: list[str]) -> dict[str, Any]:
    """The ticks of an axis whose categories are names."""
    return {"tickvals": names, "ticktext": [label(name) for name in names]}


def log_axis(title: str, values: list[float]) -> dict[str, Any]:
    """A logarithmic axis over the values above zero; a plain one where there are none."""
    seen = [value for value in values if value > 0]
    if not seen:
        return axis(title)
    return log_axis_between(title, min(seen) / MARGIN, max(seen) * MARGIN)


def log_axis_between(title: str, low: float, high: float) -> dict[str, Any]:
    """A logarithmic axis with these ends, and ticks between them."""
    ticks = decade_ticks(low, high)
    return axis(
        title,
        type="log",
        range=[log10(low), log10(high)],
        tickvals=ticks,
        ticktext=[f"{tick:,.10g}" for tick in ticks],
    )


def decade_ticks(low: float, high: float) -> list[float]:
    """Logarithmic ticks at 1, 2 and 5 of each decade; at fewer or more where that fits better."""
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    ticks: list[float] = []
    for steps in _STEPS if len(decades) > 4 else _STEPS[1:]:
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) > 1:
            break
    return ticks
