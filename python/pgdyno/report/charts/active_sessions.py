"""Active sessions over time, stacked by what they do, one panel for each trial."""

from __future__ import annotations

import plotly.graph_objects as go

from pgdyno.analysis.facts import Facts, TrialFacts
from pgdyno.analysis.session_facts import GROUP_LABELS, GROUPS, SessionLine
from pgdyno.analysis.timeline_facts import Timeline
from pgdyno.report.charts import look, time_axis
from pgdyno.report.charts.chart import Chart, Key, Panel


def _colour(group: str) -> str:
    return f"var(--wait-{group.replace('_', '-')})"


def _lines(facts: Facts) -> dict[int, SessionLine]:
    return {line.trial: line for stage in facts.sessions for line in stage.lines}


def _panels(facts: Facts) -> tuple[Panel, ...]:
    lines = _lines(facts)
    drawn = [
        (trial, timeline, lines[trial.number])
        for trial, timeline in time_axis.over_time(facts)
        if trial.number in lines
    ]
    if not drawn:
        return ()
    highest = max(_highest(line) for _, _, line in drawn) * 1.06
    return tuple(_panel(facts, *one, highest) for one in drawn)


def _highest(line: SessionLine) -> float:
    return max(
        line.greatest or map(sum, zip(*line.groups.values(), strict=True)), default=1.0
    )  # fmt: skip


def _panel(
    facts: Facts, trial: TrialFacts, timeline: Timeline, line: SessionLine, highest: float
) -> Panel:
    stacked = [
        go.Scatter(
            x=_seconds(line, part),
            y=_held(line.groups[group][part]),
            mode="lines",
            stackgroup=f"sessions {part.start}",
            line={"color": _colour(group), "width": 0},
            fillcolor=_colour(group),
            hovertemplate=f"%{{x:.0f}} s<br>{GROUP_LABELS[group]}: %{{y:.1f}}<extra></extra>",
        )
        for part in time_axis.unbroken(line.second, line.step_s)
        for group in GROUPS
        if group in line.groups
    ]
    stacked += [
        go.Scatter(
            x=_seconds(line, part),
            y=_held(ends[part]),
            mode="lines",
            line={"color": look.INK, "width": 0.75},
            hoverinfo="skip",
        )
        for part in time_axis.unbroken(line.second, line.step_s)
        for ends in (line.least, line.greatest)
        if ends
    ]
    yaxis = look.axis("sessions", range=[0, highest], nticks=6)
    drawing = time_axis.figure(facts, timeline, stacked, yaxis)
    title = time_axis.title(trial)
    means = {name: sum(values) / len(values) for name, values in line.groups.items()}
    parts = ", ".join(
        f"{GROUP_LABELS[name]} {mean:.1f}"
        for name, mean in sorted(means.items(), key=lambda m: -m[1])
    )
    ends = (
        f"; between {min(line.least):.1f} and {max(line.greatest):.1f} in single seconds"
        if line.least
        else ""
    )
    alt = f"Active sessions in trial {trial.number}, {title}, on average: {parts or 'none'}{ends}."
    return Panel(title, alt, drawing)


def _seconds(line: SessionLine, part: slice) -> tuple[float, ...]:
    """From the begin of the first point to the end of the last: one alone has a width, too."""
    middles = line.second[part]
    return (middles[0] - line.step_s / 2, *middles, middles[-1] + line.step_s / 2)


def _held(values: tuple[float, ...]) -> tuple[float, ...]:
    return (values[0], *values, values[-1])


def _keys(facts: Facts) -> tuple[Key, ...]:
    met = {group for line in _lines(facts).values() for group in line.groups}
    groups = tuple(Key(GROUP_LABELS[one], _colour(one), "bar") for one in GROUPS if one in met)
    joined = any(line.least for line in _lines(facts).values())
    ends = (Key("all together in the second with the fewest, and the most", look.INK, "line"),)
    return (*groups, *ends * joined, *time_axis.keys(facts))


CHART = Chart(
    name="active_sessions",
    title="Active sessions over time",
    caption=(
        "How many sessions run a statement or hold a transaction open at a moment, stacked by what"
        " they do. The axes of time are those of throughput."
    ),
    height_px=180,
    panels=_panels,
    keys=_keys,
    across=time_axis.across,
)
