"""Charts of the report for notebooks: their figures in the page's light colours."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import plotly.graph_objects as go
import plotly.io as pio

from pgdyno.analysis.facts import Facts
from pgdyno.model.errors import PgdynoError
from pgdyno.model.wording import listed
from pgdyno.report.charts import Key, charts

_COLOUR = re.compile(r"^\s*(--[\w-]+): light-dark\((rgb\([^)]*\)|#\w+), .*\);$", re.MULTILINE)
_VARIABLE = re.compile(r"var\((--[\w-]+)\)")
_SHARE = re.compile(r"rgb\((\d+) (\d+) (\d+) / (\d+)%\)")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart: a figure for each of its panels, and the key beside them."""

    title: str
    caption: str
    keys: tuple[Key, ...]
    figures: dict[str, go.Figure]  # title of a panel -> plotly figure

    @property
    def figure(self) -> go.Figure:
        """The first of them; most charts have one."""
        return next(iter(self.figures.values()))

    def _repr_html_(self) -> str:
        drawn = "".join(
            f"<h5>{escape(title)}</h5>{_html(figure, is_first=number == 0)}"
            for number, (title, figure) in enumerate(self.figures.items())
        )
        keys = " ".join(
            f'<span style="color:{_light(key.colour)}">■</span> {escape(key.label)}'
            for key in self.keys
        )
        return f"<h4>{escape(self.title)}</h4>{drawn}<p>{keys}</p><p>{escape(self.caption)}</p>"


def draw(facts: Facts, name: str) -> Drawing:
    """Draw one chart of the report.

    Raises:
        PgdynoError: No chart is called so, or the run has nothing to draw in it.
    """
    known = charts()
    if name not in known:
        raise PgdynoError(f"no chart is called {name!r}, there are {listed(sorted(known))}")
    chart = known[name]
    panels = chart.panels(facts)
    if not panels:
        raise PgdynoError(f"the run has nothing to draw in chart {name!r}")
    figures = {
        panel.title or chart.title: _in_colours(panel.figure, chart.height(facts))
        for panel in panels
    }
    return Drawing(chart.title, chart.caption, chart.keys(facts), figures)


def _html(figure: go.Figure, *, is_first: bool) -> str:
    text: str = pio.to_html(figure, include_plotlyjs=is_first, full_html=False)
    return text


def _in_colours(figure: go.Figure, height_px: int) -> go.Figure:
    plain: dict[str, Any] = json.loads(_light(figure.to_json()))
    return go.Figure(plain["data"], plain["layout"]).update_layout(
        height=height_px, paper_bgcolor="white", plot_bgcolor="white"
    )


def _light(text: str) -> str:
    """The text with the page's light colours in place of its variables."""
    colours = light_colours()
    return _VARIABLE.sub(lambda found: colours[found[1]], text)


@cache
def light_colours() -> dict[str, str]:
    """The light colours of the page's style sheet, by variable, as plotly writes them."""
    sheet = (files("pgdyno.report") / "page" / "report.css").read_text("utf-8")
    return {found[1]: _plotlys(found[2]) for found in _COLOUR.finditer(sheet)}


def _plotlys(colour: str) -> str:
    found = _SHARE.fullmatch(colour)
    if found is None:
        return colour
    red, green, blue, percent = found.groups()
    return f"rgba({red},{green},{blue},{int(percent) / 100})"
