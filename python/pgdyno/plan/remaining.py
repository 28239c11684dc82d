"""Which rounds of a run are still to be measured, or measured again; and which stay as they are.

Stages are compared by pairs of one round, so a round is measured as a whole or not at all: a trial
that is repeated hours after its neighbours is no pair with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pgdyno.model.plan import Plan, Trial
from pgdyno.model.run import TrialRecord, TrialState

_FAILURES_REPEATED = 1  # of a round, without being asked


@dataclass(frozen=True, slots=True)
class Rest:
    """What is left of a run."""

    todo: tuple[Trial, ...]  # in the order of the plan
    repeated: tuple[int, ...]  # numbers of `todo` whose round was begun before
    notes: tuple[str, ...]  # what is measured again, and what is not, and why: a line each


def rest_of(
    plan: Plan,
    trials: Sequence[TrialRecord],
    replaced: Sequence[TrialRecord] = (),
    *,
    again: bool = False,
    until: Mapping[str, int] = MappingProxyType({}),
    looked: int = 0,
) -> Rest:
    """What of a plan is not measured yet, in whole rounds.

    A round that was interrupted is measured again. So is one with failed or invalid trials, once:
    what fails twice for a reason of its own would fail for ever, and go on costing hours. Whoever
    removed the reason asks for it with `again`. A host of the load that was lost is no reason of
    its own. A trial that went on without such a host, as the plan asks, stands.

    Args:
        plan: The resolved plan.
        trials: Those that stand for their rounds.
        replaced: Those of rounds that were measured again.
        again: Whether rounds that failed twice are measured again, too.
        until: Stages that are decided, with the last round that they need.
        looked: The last round after which a look was taken. What it saw is not exchanged: failures
            in it count as they are.
    """
    todo: list[Trial] = []
    repeated: list[int] = []
    notes: list[str] = []
    for number in dict.fromkeys(trial.round for trial in plan.trials):
        needing = {one.name for one in plan.stages if number <= until.get(one.name, number)}
        planned = [one for one in plan.trials if one.round == number and one.stage in needing]
        mine = [one for one in trials if one.round == number and one.stage in needing]
        states = {trial.state for trial in mine}
        if states <= {TrialState.FINISHED, TrialState.DEGRADED}:
            continue
        if number <= looked:
            notes.append(f"round {number} stays as it is: {_why(mine)}, and a look was taken on it")
            continue
        before = {
            trial.attempt
            for trial in replaced
            if trial.round == number and trial.counts_against_its_stage
        }
        whole = not states & {TrialState.PLANNED, TrialState.RUNNING}
        if whole and len(before) >= _FAILURES_REPEATED and not again:
            notes.append(
                f"round {number} stays as it is: {_why(mine)}, and it was measured again before"
                " (--again measures it once more)"
            )
            continue
        todo += planned
        if states != {TrialState.PLANNED}:
            repeated += [trial.number for trial in planned]
            notes.append(f"round {number} is measured again as a whole: {_why(mine)}")
    return Rest(tuple(todo), tuple(repeated), tuple(notes))


def _why(trials: Sequence[TrialRecord]) -> str:
    failed = [f"{trial.stage} {_STATES[trial.state]}" for trial in trials if trial.failed]
    return ", ".join(failed) or "it was interrupted"


_STATES = {TrialState.FAILED: "failed", TrialState.INVALID: "was invalid"}
