"""Response times over time: a map for each stage, on the axis of throughput."""

from __future__ import annotations

from itertools import accumulate, pairwise
from math import log10

import plotly.graph_objects as go

from pgdyno.analysis.facts import Facts, TrialFacts
from pgdyno.analysis.signal_facts import ResponseMap
from pgdyno.model.units import digits_text, ns_text
from pgdyno.report.charts import look, time_axis
from pgdyno.report.charts.chart import Chart, Key, Panel

MS_NS = 1e6
_LOWEST_MS = 1e-3  # of the axis, which has no zero
_FEW, _MANY = "var(--heat-few)", "var(--heat-many)"


def _drawn(facts: Facts) -> list[tuple[ResponseMap, TrialFacts]]:
    trials = {trial.number: trial for trial in facts.trials if trial.timeline}
    if not time_axis.over_time(facts):
        return []
    return [(one, trials[one.trial]) for one in facts.response_maps if one.trial in trials]


def _panels(facts: Facts) -> tuple[Panel, ...]:
    drawn = _drawn(facts)
    if not drawn:
        return ()
    edges_ms = [_ms(edge) for one, _ in drawn for edge in (one.edges_ns[0], one.edges_ns[-1])]
    ends, rates = (min(edges_ms), max(edges_ms)), _ends(facts)
    return tuple(_panel(facts, one, trial, ends, rates) for one, trial in drawn)


def _panel(
    facts: Facts,
    found: ResponseMap,
    trial: TrialFacts,
    ends_ms: tuple[float, float],
    rates: tuple[float, float],
) -> Panel:
    assert trial.timeline is not None
    rows = [[_short(rate) for rate in row] for row in _rates(found)]
    low, high = (log10(rate) for rate in rates)
    drawn = go.Heatmap(
        x=list(found.edges_s),
        y=[_ms(edge) for edge in found.edges_ns],
        z=[[round(log10(rate), 2) if rate else None for rate in row] for row in rows],
        zmin=low - (high == low),  # one shade, the darkest, where all rates are one
        zmax=high,
        customdata=rows,
        hovertemplate="%{x:.1f} s, about %{y:.3~g} ms<br>requests: %{customdata:,} a second"
        "<extra></extra>",
        hoverongaps=False,
        showscale=False,
        colorscale=[[0, _FEW], [1, _MANY]],
    )
    yaxis = look.log_axis_between("ms", *ends_ms)
    drawing = time_axis.figure(facts, trial.timeline, [drawn], yaxis)
    return Panel(time_axis.title(trial), _alt(found, time_axis.title(trial)), drawing)


def _short(rate: float) -> float:
    """Three digits: there are thousands of cells on a page."""
    shown = float(f"{rate:.3g}")
    return int(shown) if shown.is_integer() else shown


def _rates(found: ResponseMap) -> list[list[float]]:
    """Requests a second."""
    widths = [until - since for since, until in pairwise(found.edges_s)]
    return [
        [count / width for count, width in zip(row, widths, strict=True)] for row in found.counts
    ]


def _ends(facts: Facts) -> tuple[float, float]:
    """The least and the greatest rate that a cell of any panel has."""
    rates = [rate for one, _ in _drawn(facts) for row in _rates(one) for rate in row if rate]
    return min(rates), max(rates)


def _ms(edge_ns: int) -> float:
    return max(edge_ns / MS_NS, _LOWEST_MS)


def _alt(found: ResponseMap, title: str) -> str:
    by_row = [sum(row) for row in found.counts]
    half = next(row for row, below in enumerate(accumulate(by_row)) if 2 * below >= sum(by_row))
    slowest = found.counts[-1]
    at = next(column for column, count in enumerate(slowest) if count)
    empty = _longest_empty(found)
    none = "; none ended from {} to {} s".format(*map(digits_text, empty)) if empty else ""
    return (
        f"Map of response times in trial {found.trial}, {title}: the median of all its requests"
        f" lies between {_between(found, half)}, the slowest took between"
        f" {_between(found, len(by_row) - 1)}, the first of them at"
        f" {digits_text(found.edges_s[at])} s{none}."
    )


def _longest_empty(found: ResponseMap) -> tuple[float, float] | None:
    """The longest time in which nothing ended, s since the window began; None: there is none."""
    by_column = [any(column) for column in zip(*found.counts, strict=True)]
    spans, begin = [], None
    for ended, since, until in zip(by_column, found.edges_s[:-1], found.edges_s[1:], strict=True):
        begin = None if ended else since if begin is None else begin
        if begin is not None:
            spans.append((begin, until))
    return max(spans, key=lambda span: span[1] - span[0], default=None)


def _between(found: ResponseMap, row: int) -> str:
    low, high = (ns_text(found.edges_ns[edge]) for edge in (row, row + 1))
    return f"{low} and {high}"


def _keys(facts: Facts) -> tuple[Key, ...]:
    if not _drawn(facts):
        return ()
    few, many = map(digits_text, _ends(facts))
    shades = (
        Key(f"requests: {few} a second", _FEW, "bar"),
        Key(f"{many} a second", _MANY, "bar"),
    )
    return (*shades, *time_axis.keys(facts))


CHART = Chart(
    name="heat_over_time",
    title="Response times over time",
    caption=(
        "The trial of each stage whose throughput is the median of its rounds: how many requests"
        " of all kinds ended when, by how long they took, to half an octave. Both axes and the"
        " shades, which are logarithmic, are the same in all panels; nothing ended where a column"
        " is empty."
    ),
    height_px=200,
    panels=_panels,
    keys=_keys,
    across=lambda facts: max(1, min(time_axis.ACROSS_MAX, len(facts.stages))),
    section="latency",
)
