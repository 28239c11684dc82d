"""CPUs that the server's processes used over time, by role, from what the kernel counts of them.

Of the trial of each stage whose throughput is its median, as other lines of the host. Roles are
sampled together, and averaged over the same steps, so that they can be stacked; what stood out in
the steps that were joined is told beside the averages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pgdyno.analysis.extremes import extremes, rounded
from pgdyno.analysis.process_line_facts import ProcessLine
from pgdyno.analysis.resources import members
from pgdyno.analysis.signals import middle
from pgdyno.analysis.trials import POINTS_MAX
from pgdyno.model.counters import known_steps
from pgdyno.model.run import Series, TrialRecord

_PREFIX, _CPU = "process.", ".cpu_s"
_SEEN_CPUS = 0.001  # on average, that are drawn; less is no line
NS = 1e9


def process_lines(
    stages: Sequence[str],
    trials: Sequence[TrialRecord],
    series: Mapping[int, Mapping[str, Series]],
) -> tuple[ProcessLine, ...]:
    """One line for each stage whose server's processes were sampled.

    Args:
        stages: Their names, in the order of the plan.
        trials: Those whose numbers may be used.
        series: Of each trial, by its number and their names.
    """
    chosen = [one for stage in stages if (one := middle(trials, stage)) is not None]
    found = (_line(one, series.get(one.number, {})) for one in chosen)
    return tuple(one for one in found if one is not None)


def _line(record: TrialRecord, series: Mapping[str, Series]) -> ProcessLine | None:
    assert record.result is not None
    counted = {
        role: one
        for role in members(series, _PREFIX)
        if (one := series.get(f"{_PREFIX}{role}{_CPU}")) is not None
    }
    if not counted or len({one.values.size for one in counted.values()}) != 1:
        return None
    begin_ns, end_ns = record.result.window_ns
    times = next(iter(counted.values())).unix_ns
    known = np.all([known_steps(one) for one in counted.values()], axis=0)
    known &= times[1:] <= end_ns
    at = (times - begin_ns) / NS
    starts, ends = at[:-1][known], at[1:][known]
    if not starts.size:
        return None
    parts = np.array_split(np.arange(starts.size), min(starts.size, POINTS_MAX))
    firsts = [part[0] for part in parts]
    passed = np.add.reduceat(ends - starts, firsts)
    grown = {role: np.maximum(0.0, np.diff(one.values)[known]) for role, one in counted.items()}
    roles = {role: np.add.reduceat(one, firsts) / passed for role, one in grown.items()}
    seen = [role for role in sorted(roles, key=lambda role: -float(roles[role].mean()))
            if roles[role].mean() >= _SEEN_CPUS]  # fmt: skip
    cpus = {role: one / (ends - starts) for role, one in grown.items()}
    every = np.sum([cpus[role] for role in seen], axis=0)
    joined = starts.size > len(parts)
    lasts = [part[-1] for part in parts]
    return ProcessLine(
        record.number,
        record.stage,
        round(float(np.median(ends[lasts] - starts[firsts])), 3),
        tuple(np.round((starts[firsts] + ends[lasts]) / 2, 3).tolist()),
        {role: rounded(roles[role]) for role in seen},
        least=rounded(np.minimum.reduceat(every, firsts)) if seen and joined else (),
        greatest=rounded(np.maximum.reduceat(every, firsts)) if seen and joined else (),
        apart={role: extremes((starts + ends) / 2, cpus[role]) for role in seen if joined},
    )
