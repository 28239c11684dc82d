"""A replica that answered reads: how much of the load, and how far behind it was meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np
import numpy.typing as npt

from pgdyno.analysis.efficiency import transactions
from pgdyno.analysis.facts import Deviation
from pgdyno.analysis.replica_facts import Levels, ReplicaRow
from pgdyno.model.plan import Plan
from pgdyno.model.run import Series, TrialRecord, TrialResult
from pgdyno.model.workload import READS

_LAG, _BEHIND = "replica.lag_s", "replica.behind_bytes"
_LAG_AT_LEAST = "replica.lag_at_least_s"
_WHAT = (
    "Order-Status and Stock-Level are answered by a replica: their reads may be stale, an order"
    " that a terminal has just entered may not be seen"
)
_WHY = "the plan says so; how far the replica is behind stands with the results"
_CLAUSES = "2.6, 2.8, 3.4"


def replica_rows(
    plan: Plan,
    finished: Sequence[TrialRecord],
    series: Mapping[int, Mapping[str, Series]],
) -> tuple[ReplicaRow, ...]:
    """By stage; none where none answered.

    Args:
        plan: Of the run.
        finished: Trials whose numbers are used.
        series: What was sampled, by trial and name.
    """
    rows = []
    for stage in plan.stages:
        trials = [(one.number, one.result) for one in finished
                  if one.stage == stage.name and one.result]  # fmt: skip
        if not stage.workload.replica_connections or not trials:
            continue
        answered = [sum(kind.window.ended for kind in result.kinds if kind.kind in READS)
                    for _, result in trials]  # fmt: skip
        shares = [count / max(1, transactions(result)) for count, (_, result) in
                  zip(answered, trials, strict=True)]  # fmt: skip
        lags, bounds = (_inside(trials, series, name) for name in (_LAG, _LAG_AT_LEAST))
        rows.append(
            ReplicaRow(
                stage.name,
                stage.workload.replica_connections,
                len(trials),
                median(count / result.window_s for count, (_, result) in
                       zip(answered, trials, strict=True)),
                median(shares),
                int(lags.size + bounds.size),
                _levels(lags, bounds),
                _levels(_inside(trials, series, _BEHIND)),
            )
        )  # fmt: skip
    return tuple(rows)


def stale_reads(plan: Plan) -> tuple[Deviation, ...]:
    """The deviation of stages whose reads a replica answers."""
    names = [one.name for one in plan.stages if one.workload.replica_connections]
    if not names:
        return ()
    own = () if len(names) == len(plan.stages) else tuple(names)
    return (Deviation(_WHAT, _WHY, _CLAUSES, own),)


def _inside(
    trials: Sequence[tuple[int, TrialResult]],
    series: Mapping[int, Mapping[str, Series]],
    name: str,
) -> npt.NDArray[np.float64]:
    """Samples that lie within the windows."""
    found = [np.empty(0)]
    for number, result in trials:
        one = series.get(number, {}).get(name)
        if one is not None:
            begin, end = result.window_ns
            found.append(one.values[(one.unix_ns >= begin) & (one.unix_ns <= end)])
    return np.concatenate(found)


def _levels(
    values: npt.NDArray[np.float64], bounds: npt.NDArray[np.float64] | None = None
) -> Levels | None:
    """Quantiles; of values of which only the least is known that they can have been, bounds, too.

    A bound may stand for any greater value, so that from the least of them on all are bounds. Each
    quantile is a sample: between a value and a bound there is nothing that is known.
    """
    if bounds is None or not bounds.size:
        exact_below = None
    else:
        exact_below, values = float(bounds.min()), np.concatenate((values, bounds))
    if not values.size:
        return None
    p50, p99, most = np.quantile(values, (0.5, 0.99, 1.0), method="inverted_cdf").tolist()
    return Levels(p50, p99, most, exact_below)
