"""What a report says of a search for the knee, as a record; `analysis.curve` makes it."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.knee import Curve, Point


@dataclass(frozen=True, slots=True)
class CurveFacts:
    """A load-latency curve, and which of its windows kept the limit."""

    curve: Curve
    windows: tuple[tuple[Point, bool], ...]  # in the order of measurement, whether it was kept
