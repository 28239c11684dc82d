"""CPUs that the server's processes use over time, stacked by role, one panel for each stage."""

from __future__ import annotations

import plotly.graph_objects as go

from pgdyno.analysis.facts import Facts, TrialFacts
from pgdyno.analysis.process_line_facts import ROLE_LABELS, ProcessLine
from pgdyno.report.charts import look, time_axis
from pgdyno.report.charts.chart import Chart, Key, Panel

_APART = ("backend", "checkpointer", "background_writer", "wal_writer", "io_worker", "autovacuum")
"""Roles with a colour of their own; the others are one."""
_REST = "other processes"


def _colour(role: str) -> str:
    return look.stage_colour(_APART.index(role)) if role in _APART else look.MUTED


def _label(role: str) -> str:
    return ROLE_LABELS.get(role, role) if role in _APART else _REST


def _stacked(line: ProcessLine) -> dict[str, tuple[float, ...]]:
    """What is drawn of a line, from below: roles with a colour, then the others together."""
    apart = {role: line.roles[role] for role in _APART if role in line.roles}
    rest = [values for role, values in line.roles.items() if role not in _APART]
    return apart | ({_REST: tuple(map(sum, zip(*rest, strict=True)))} if rest else {})


def _drawn(facts: Facts) -> list[tuple[ProcessLine, TrialFacts]]:
    trials = {trial.number: trial for trial, _ in time_axis.over_time(facts)}
    return [(one, trials[one.trial]) for one in facts.process_lines if one.trial in trials]


def _panels(facts: Facts) -> tuple[Panel, ...]:
    drawn = _drawn(facts)
    highest = 1.06 * max((_highest(line) for line, _ in drawn), default=1.0)
    return tuple(_panel(facts, line, trial, highest) for line, trial in drawn)


def _highest(line: ProcessLine) -> float:
    return max(map(sum, zip(*line.roles.values(), strict=True)), default=1.0)


def _panel(facts: Facts, line: ProcessLine, trial: TrialFacts, highest: float) -> Panel:
    assert trial.timeline is not None
    stacked = _stacked(line)
    traces = [
        go.Scatter(
            x=line.second[part],
            y=values[part],
            mode="lines",
            stackgroup=f"processes {part.start}",
            line={"color": _colour(role), "width": 0},
            fillcolor=_colour(role),
            hovertemplate=f"%{{x:.0f}} s<br>{_label(role)}: %{{y:.2f}}<extra></extra>",
        )
        for part in time_axis.unbroken(line.second, line.step_s)
        for role, values in stacked.items()
    ]
    yaxis = look.axis("CPUs", range=[0, highest], nticks=5)
    drawing = time_axis.figure(facts, trial.timeline, traces, yaxis)
    title = time_axis.title(trial)
    means = ", ".join(
        f"{_label(role)} {sum(values) / len(values):.2f}" for role, values in stacked.items()
    )
    return Panel(
        title, f"CPUs used by the server's processes in trial {trial.number}, {title}: {means}.",
        drawing,
    )  # fmt: skip


def _keys(facts: Facts) -> tuple[Key, ...]:
    drawn = [_stacked(line) for line, _ in _drawn(facts)]
    if not drawn:
        return ()
    met = [role for role in (*_APART, _REST) if any(role in one for one in drawn)]
    roles = tuple(Key(_label(role), _colour(role), "bar") for role in met)
    return (*roles, *time_axis.keys(facts))


CHART = Chart(
    name="process_cpu",
    title="CPUs of the server's processes over time",
    caption=(
        "How many CPUs the server's processes used, by role, in the trial of each stage whose"
        " throughput is the median of its rounds."
    ),
    height_px=150,
    panels=_panels,
    keys=_keys,
    across=lambda facts: max(1, min(time_axis.ACROSS_MAX, len(facts.stages))),
    section="resources",
)
