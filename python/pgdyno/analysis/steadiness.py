"""Whether the windows of a plan were steady: by their seconds, or from cycle to cycle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pgdyno.analysis.cycles import Load
from pgdyno.analysis.facts import Judgement
from pgdyno.model.plan import Plan
from pgdyno.model.run import Series, TrialRecord, TrialState
from pgdyno.stats.interval import FloatArray
from pgdyno.stats.steady_cycles import check_cycles


def cycle_steadiness(
    plan: Plan, trials: Sequence[TrialRecord], series: Mapping[int, dict[str, Series]]
) -> dict[str, Judgement]:
    """What the cycles of all finished trials say of each stage whose windows are whole cycles.

    Stages of one load share the spread of their cycles.

    Args:
        plan: The resolved plan.
        trials: All its trials.
        series: Those of each trial, by its number.

    Returns:
        Nothing of stages whose windows go by the clock; unknown where they hold no whole cycle.
    """
    loads = {stage.name: stage.workload.load for stage in plan.stages}
    rates: dict[str, dict[str, list[FloatArray]]] = {}
    for trial in trials:
        result = trial.result
        if trial.state is not TrialState.FINISHED or result is None or not result.follows_cycles:
            continue
        load = Load(trial, result, series.get(trial.number, {}), plan.workload.headline)
        mine = rates.setdefault(loads[trial.stage], {}).setdefault(trial.stage, [])
        mine.append(cycle_rates(load) if load.holds_cycles else np.empty(0))
    return {
        stage: Judgement(found.state.value, found.fact, None)
        for stages in rates.values()
        for stage, found in check_cycles(stages).items()
    }


def cycle_rates(load: Load) -> FloatArray:
    """Throughput in each whole cycle after the first one of a load, shape `(cycles,)`.

    The first one is left out: nothing was dirty when it began, so that it writes nothing.
    """
    begins = np.array(load.begins_s, dtype=np.float64)
    if begins.size < 2 or load.per_s().size == 0:
        return np.empty(0)
    ended = np.diff(load.ended_by(begins)) / np.diff(begins)
    return np.asarray(ended * load.scale, dtype=np.float64)
