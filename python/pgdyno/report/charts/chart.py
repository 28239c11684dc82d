"""What a chart is: panels of one size that the page lays out in a grid, and a key beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import plotly.graph_objects as go

from pgdyno.analysis.facts import Facts

Mark = Literal["bar", "line", "dot", "band", "cross", "dash", "ring", "frame", "rhomb"]
"""How a line of the key is drawn; the last three are hollow."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One drawing. `alt` says in words what a reader sees, with the numbers that matter."""

    title: str
    alt: str
    figure: go.Figure


@dataclass(frozen=True, slots=True)
class Key:
    """A line of the key, drawn by the page so that it never covers data."""

    label: str
    colour: str  # a variable of the style sheet
    mark: Mark


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: how it is called, read and drawn."""

    name: str
    title: str
    caption: str
    height_px: int
    panels: Callable[[Facts], tuple[Panel, ...]]
    keys: Callable[[Facts], tuple[Key, ...]]
    across: Callable[[Facts], int] = lambda _: 1  # panels in a row of a wide page
    per_row_px: int = 0  # further height for each row
    rows: Callable[[Facts], int] = lambda facts: len(facts.stages)
    section: str | None = None  # at whose end it stands; None: a section says where

    def height(self, facts: Facts) -> int:
        """Height of a panel."""
        return self.height_px + self.per_row_px * self.rows(facts)
