"""The charts of the HTML report, one file each; a file with a `CHART` is found by location."""

from __future__ import annotations

from pgdyno.model.by_location import modules_of
from pgdyno.report.charts.chart import Chart, Key, Panel

__all__ = ["Chart", "Key", "Panel", "charts"]

_SHARED = {"chart", "look", "stacked", "time_axis"}


def charts() -> dict[str, Chart]:
    """All charts by name."""
    found: list[Chart] = [module.CHART for module in modules_of(__name__, _SHARED)]
    return {chart.name: chart for chart in found}
