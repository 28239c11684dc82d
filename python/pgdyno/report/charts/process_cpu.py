"""CPUs that the server's processes use over time, stacked by role, one panel for each stage."""

from __future__ import annotations

from pgdyno.analysis.facts import Facts, TrialFacts
from pgdyno.analysis.process_line_facts import ROLE_LABELS, ProcessLine
from pgdyno.report.charts import look, time_axis
from pgdyno.report.charts.chart import Chart, Key, Panel
from pgdyno.report.charts.stacked import BELOW_PX, ENDS, Look, Stack, ends_text, figure, heights

_APART = ("backend", "checkpointer", "background_writer", "wal_writer", "io_worker", "autovacuum")
"""Roles with a colour of their own; the others are one."""
_REST = "other processes"


def _colour(role: str) -> str:
    return look.stage_colour(_APART.index(role)) if role in _APART else look.MUTED


def _label(role: str) -> str:
    return ROLE_LABELS.get(role, role) if role in _APART else _REST


def _stack(line: ProcessLine) -> Stack:
    """What is drawn of a line, from below: roles with a colour, then the others together."""
    layers = {role: line.roles[role] for role in _APART if role in line.roles}
    rest = [values for role, values in line.roles.items() if role not in _APART]
    if rest:
        layers[_REST] = tuple(map(sum, zip(*rest, strict=True)))
    return Stack(line.second, line.step_s, layers, line.least, line.greatest, line.apart)


_LOOK = Look(_colour, _label, "CPUs", 2)


def _drawn(facts: Facts) -> list[tuple[ProcessLine, TrialFacts]]:
    trials = {trial.number: trial for trial, _ in time_axis.over_time(facts)}
    return [(one, trials[one.trial]) for one in facts.process_lines if one.trial in trials]


def _panels(facts: Facts) -> tuple[Panel, ...]:
    drawn = [(_stack(line), trial) for line, trial in _drawn(facts)]
    highest = heights([stack for stack, _ in drawn])
    return tuple(_panel(facts, stack, trial, highest) for stack, trial in drawn)


def _panel(facts: Facts, stack: Stack, trial: TrialFacts, highest: tuple[float, float]) -> Panel:
    assert trial.timeline is not None
    title = time_axis.title(trial)
    means = ", ".join(
        f"{_label(role)} {sum(values) / len(values):.2f}" for role, values in stack.layers.items()
    )
    return Panel(
        title,
        f"CPUs used by the server's processes in trial {trial.number}, {title}: {means}"
        f"{ends_text(stack)}.",
        figure(facts, trial.timeline, stack, _LOOK, highest),
    )


def _keys(facts: Facts) -> tuple[Key, ...]:
    drawn = [_stack(line).layers for line, _ in _drawn(facts)]
    if not drawn:
        return ()
    met = [role for role in (*_APART, _REST) if any(role in one for one in drawn)]
    roles = tuple(Key(_label(role), _colour(role), "bar") for role in met)
    ends = (ENDS,) if _are_joined(facts) else ()
    return (*roles, *ends, *time_axis.keys(facts))


def _are_joined(facts: Facts) -> bool:
    return any(line.apart for line, _ in _drawn(facts))


CHART = Chart(
    name="process_cpu",
    title="CPUs of the server's processes over time",
    caption=(
        "How many CPUs the server's processes used, by role, in the trial of each stage whose"
        " throughput is the median of its rounds. Where points are means of several looks, what"
        " each came to in single ones is drawn below."
    ),
    height_px=150,
    per_row_px=BELOW_PX,
    rows=_are_joined,
    panels=_panels,
    keys=_keys,
    across=lambda facts: max(1, min(time_axis.ACROSS_MAX, len(facts.stages))),
    section="resources",
)
