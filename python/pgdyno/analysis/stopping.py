"""What the looks at a plan say of its stages, and which of its trials are needed no more.

The same for the plan that asks whether to go on, for one that is resumed, and for the report.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.analysis.one_device import against_itself
from pgdyno.analysis.stages import throughput_table
from pgdyno.model.manifest import HostManifest
from pgdyno.model.plan import Plan
from pgdyno.model.run import TrialRecord, TrialState
from pgdyno.stats.compare import compare_plan, families
from pgdyno.stats.looks import judge_at_looks
from pgdyno.stats.verdict import Comparison


def at_looks(
    plan: Plan,
    host: HostManifest,
    trials: Sequence[TrialRecord],
    replaced: Sequence[TrialRecord] = (),
) -> tuple[Comparison, ...]:
    """What the last looks say of each stage against the first of its load.

    Args:
        plan: The resolved plan.
        host: Where it is measured, which tells the folders that are one storage.
        trials: Those that stand for their rounds, ended or not.
        replaced: Those of rounds that were measured again.

    Returns:
        Nothing of a plan whose rounds are all measured.
    """
    if plan.protocol.rounds_max is None:
        return ()
    table = throughput_table(plan, trials, replaced)
    loads = {one.name: one.workload.load for one in plan.stages}
    to_first, _ = families(table.stages, loads)
    return judge_at_looks(
        table, to_first, "first", plan.protocol.rounds_max, plan.protocol.margin,
        against_itself(plan, host),
    )  # fmt: skip


def so_far(
    plan: Plan,
    host: HostManifest,
    trials: Sequence[TrialRecord],
    replaced: Sequence[TrialRecord] = (),
) -> tuple[Comparison, ...]:
    """What each stage shows against the first of its load, where all rounds are measured.

    Storage that would be compared with itself is left out.

    Args:
        plan: See `at_looks`, as what follows.
        host: Where it is measured.
        trials: Those that stand for their rounds.
        replaced: The others.
    """
    table = throughput_table(plan, trials, replaced)
    loads = {one.name: one.workload.load for one in plan.stages}
    protocol = plan.protocol
    compared = compare_plan(
        table, margin=protocol.margin, confidence=protocol.confidence, loads=loads
    ).against_first
    itself = against_itself(plan, host)
    return tuple(one for one in compared if not itself(one.stage, one.base))


def last_rounds(compared: Sequence[Comparison]) -> dict[str, int]:
    """Stages that need no further round, with the last one that they needed.

    The first stage of a load stays as long as another one needs it.
    """
    ended = {one.stage: one.look for one in compared if one.stopped and one.look is not None}
    for base in dict.fromkeys(one.base for one in compared):
        mine = [one.stage for one in compared if one.base == base]
        if all(stage in ended for stage in mine):
            ended[base] = max(ended[stage] for stage in mine)
    return ended


def still_needed(
    plan: Plan,
    host: HostManifest,
    trials: Sequence[TrialRecord],
    replaced: Sequence[TrialRecord] = (),
) -> list[TrialRecord]:
    """The trials without those that were not begun, and need not be.

    Args:
        plan: See `at_looks`, as what follows.
        host: Where it is measured.
        trials: Those that stand for their rounds.
        replaced: The others.
    """
    until = last_rounds(at_looks(plan, host, trials, replaced))
    return [
        one
        for one in trials
        if one.state is not TrialState.PLANNED or one.round <= until.get(one.stage, one.round)
    ]
