"""The charts of the HTML report, one file each; a file with a `CHART` is found by location."""

from __future__ import annotations

import importlib
import pkgutil

from pgdyno.report.charts.chart import Chart, Key, Panel

__all__ = ["Chart", "Key", "Panel", "charts"]


def charts() -> dict[str, Chart]:
    """All charts by name."""
    modules = (
        importlib.import_module(f"{__name__}.{module.name}")
        for module in pkgutil.iter_modules(__path__)
        if module.name not in {"chart", "look"}
    )
    found: list[Chart] = [module.CHART for module in modules]
    return {chart.name: chart for chart in found}
