"""Host and server over time: a row for each signal, a panel for each stage, one axis of time."""

from __future__ import annotations

import plotly.graph_objects as go

from pgdyno.analysis.extremes import PARTS_MAX
from pgdyno.analysis.facts import Facts, TrialFacts
from pgdyno.analysis.signal_facts import Signal, SignalLine
from pgdyno.model.units import digits_text
from pgdyno.report.charts import look, time_axis
from pgdyno.report.charts.chart import Chart, Key, Panel

_FORMATS = {"share": ".0%", "B/s": ".3s", "B": ".3s", "s": ".3s", "1/s": ".3s", "1": ".3s"}

_KILO = 1000.0
_SECONDS = (("s", 1.0, 1.0), ("ms", 1e3, 1e-3), ("µs", 1e6, 0.0))
"""Units of time, how many of them are a second, and from which highest value on each is used."""


def _panels(facts: Facts) -> tuple[Panel, ...]:
    trials = {trial.number: trial for trial in facts.trials if trial.timeline}
    if not time_axis.over_time(facts):
        return ()
    order = {stage.name: index for index, stage in enumerate(facts.stages)}
    return tuple(
        _panel(facts, signal, line, trials[line.trial], order[line.stage])
        for signal in facts.signals
        for line in signal.lines
        if line.trial in trials
    )


def _panel(facts: Facts, signal: Signal, line: SignalLine, trial: TrialFacts, index: int) -> Panel:
    assert trial.timeline is not None
    every = [value for one in signal.lines for value in one.values]
    low, high = min(0.0, *every), max(every) * 1.06
    shown = _FORMATS[signal.unit]
    unit, scale = _unit(signal.unit, high)
    x, y = _broken(line, scale)
    drawn = go.Scatter(
        x=x,
        y=y,
        mode="lines",
        line={"color": look.stage_colour(index), "width": 1.5},
        hovertemplate=f"%{{x:.0f}} s<br>%{{y:{shown}}}<extra></extra>",
    )
    ends = [low * scale, high * scale]
    yaxis = look.axis(unit, range=ends, nticks=4, tickformat=_ticks(signal.unit, ends[1]))
    drawing = time_axis.figure(facts, trial.timeline, [drawn], yaxis)
    title = f"{signal.name} · {time_axis.title(trial)}"
    alt = (
        f"Line of {signal.name} in trial {trial.number}, stage {trial.stage}: between"
        f" {digits_text(min(line.values) * scale)} and {digits_text(max(line.values) * scale)}"
        f" {unit or 'of 1'}."
    )
    return Panel(title, alt, drawing)


def _ticks(unit: str, high: float) -> str:
    """How the axis of a signal is written: `500m` for a half is read as 500 millions."""
    shown = _FORMATS[unit].replace(".3", "~")
    return "~g" if shown == "~s" and high < _KILO else shown


def _unit(unit: str, high: float) -> tuple[str, float]:
    """What stands beside the axis, and by what values are multiplied for it."""
    if unit == "s":
        return next((name, scale) for name, scale, from_s in _SECONDS if high >= from_s)
    return "" if unit in ("share", "1") else unit, 1.0


def _broken(line: SignalLine, scale: float) -> tuple[list[float | None], list[float | None]]:
    """A line with an empty point where nobody looked for a while."""
    x: list[float | None] = []
    y: list[float | None] = []
    span_s = line.second[-1] - line.second[0]
    for part in time_axis.unbroken(line.second, 2 * span_s / PARTS_MAX):
        x += [*line.second[part], None]
        y += [*(value * scale for value in line.values[part]), None]
    return x[:-1], y[:-1]


def _keys(facts: Facts) -> tuple[Key, ...]:
    return time_axis.keys(facts) if facts.signals else ()


def _across(facts: Facts) -> int:
    return max(1, min(time_axis.ACROSS_MAX, len(facts.stages)))


CHART = Chart(
    name="signals",
    title="Host and server over time",
    caption=(
        "The trial of each stage whose throughput is the median of its rounds; each row has one"
        " scale, and all have the axis of throughput. What never moved is left out."
    ),
    height_px=132,
    panels=_panels,
    keys=_keys,
    across=_across,
    section="resources",
)
