"""What the windows of a search for the knee amount to, as the facts of its report."""

from __future__ import annotations

from pgdyno.analysis.curve_facts import CurveFacts
from pgdyno.model.knee import Curve
from pgdyno.stats.knee import keeps


def curve_facts(curve: Curve) -> CurveFacts:
    """Judge every window by the limit."""
    windows = tuple((point, keeps(point, curve.limit_p99_ns)) for point in curve.points)
    return CurveFacts(curve, windows)
