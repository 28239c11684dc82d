"""Active sessions over time, stacked by what they do, one panel for each trial."""

from __future__ import annotations

import plotly.graph_objects as go

from pgdyno.analysis.facts import Facts, TrialFacts
from pgdyno.analysis.session_facts import GROUP_LABELS, GROUPS, SessionLine
from pgdyno.report.charts import time_axis
from pgdyno.report.charts.chart import Chart, Key, Panel
from pgdyno.report.charts.stacked import BELOW_PX, ENDS, Look, Stack, ends_text, figure, heights


def _colour(group: str) -> str:
    return f"var(--wait-{group.replace('_', '-')})"


def _lines(facts: Facts) -> dict[int, SessionLine]:
    return {line.trial: line for stage in facts.sessions for line in stage.lines}


def _stack(line: SessionLine) -> Stack:
    groups = {group: line.groups[group] for group in GROUPS if group in line.groups}
    return Stack(line.second, line.step_s, groups, line.least, line.greatest, line.apart)


_LOOK = Look(_colour, lambda group: GROUP_LABELS[group], "sessions", 1)


def _panels(facts: Facts) -> tuple[Panel, ...]:
    lines = _lines(facts)
    drawn = [
        (trial, timeline, _stack(lines[trial.number]))
        for trial, timeline in time_axis.over_time(facts)
        if trial.number in lines
    ]
    highest = heights([stack for _, _, stack in drawn])
    return tuple(
        _panel(trial, stack, figure(facts, timeline, stack, _LOOK, highest))
        for trial, timeline, stack in drawn
    )


def _panel(trial: TrialFacts, stack: Stack, drawing: go.Figure) -> Panel:
    title = time_axis.title(trial)
    means = {name: sum(values) / len(values) for name, values in stack.layers.items()}
    parts = ", ".join(
        f"{GROUP_LABELS[name]} {mean:.1f}"
        for name, mean in sorted(means.items(), key=lambda m: -m[1])
    )
    return Panel(
        title,
        f"Active sessions in trial {trial.number}, {title}, on average: {parts or 'none'}"
        f"{ends_text(stack)}.",
        drawing,
    )


def _keys(facts: Facts) -> tuple[Key, ...]:
    met = {group for line in _lines(facts).values() for group in line.groups}
    groups = tuple(Key(GROUP_LABELS[one], _colour(one), "bar") for one in GROUPS if one in met)
    ends = (ENDS,) if _are_joined(facts) else ()
    return (*groups, *ends, *time_axis.keys(facts))


def _are_joined(facts: Facts) -> bool:
    return any(line.apart for line in _lines(facts).values())


CHART = Chart(
    name="active_sessions",
    title="Active sessions over time",
    caption=(
        "How many sessions run a statement or hold a transaction open at a moment, stacked by what"
        " they do. The axes of time are those of throughput. Where a point is longer than a second,"
        " what each of them came to in single seconds is drawn below."
    ),
    height_px=180,
    per_row_px=BELOW_PX,
    rows=_are_joined,
    panels=_panels,
    keys=_keys,
    across=time_axis.across,
)
