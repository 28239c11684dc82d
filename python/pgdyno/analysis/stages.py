"""Stages as the report tells them: the finished trials of each, summed up and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from statistics import geometric_mean

from pgdyno.analysis.changes import changes, effective_of
from pgdyno.analysis.cycle_facts import CycleFacts
from pgdyno.analysis.cycles import PlanCycles
from pgdyno.analysis.durability import Standing, standing
from pgdyno.analysis.efficiency import METRICS, per_transaction
from pgdyno.analysis.facts import (
    Comparison,
    Judgement,
    NoiseFloor,
    Percentiles,
    Spread,
    StageFacts,
    StatementFacts,
    TrialFacts,
)
from pgdyno.analysis.judge import most_doubtful
from pgdyno.analysis.setting_facts import SettingChange
from pgdyno.model.errors import PgdynoError
from pgdyno.model.plan import Plan, Stage
from pgdyno.model.run import StatementResult, TrialRecord, TrialResult, TrialState
from pgdyno.model.wording import plural
from pgdyno.plan.describe import build_text
from pgdyno.stats import compare, verdict
from pgdyno.stats.as_benchmarksql import AsBenchmarkSql, Ended, as_benchmarksql
from pgdyno.stats.noise import noise_floor
from pgdyno.stats.table import Table, attempts_of, table_of
from pgdyno.stats.window_end import exact_below
from pgdyno.store.histogram import Quantiles

SHARES = (0.5, 0.9, 0.95, 0.99, 0.999, 1.0)


def throughput_table(
    plan: Plan,
    trials: Sequence[TrialRecord],
    replaced: Sequence[TrialRecord] = (),
    short: Mapping[tuple[str, int], float] | None = None,
) -> Table:
    """NOPM, or tps, of each stage in each round; a trial that did not finish has none.

    Args:
        plan: The resolved plan.
        trials: Those that stand for their rounds.
        replaced: Those of rounds that were measured again: what failed there did fail, unless it
            lost a host of its load.
        short: What anchors gave in the phase that the windows of other rounds have.
    """
    throughput = {
        (trial.stage, trial.round): (short or {}).get(
            (trial.stage, trial.round), trial.result.throughput
        )
        if trial.result and trial.state is TrialState.FINISHED
        else None
        for trial in trials
    }
    ended = (TrialState.FINISHED, TrialState.FAILED, TrialState.INVALID)
    attempts = attempts_of(
        (trial.stage, (trial.round, trial.attempt), trial.failed)
        for trial in (*trials, *replaced)
        if trial.state in ended and not trial.host_lost
    )
    table = table_of(throughput, [stage.name for stage in plan.stages])
    left_out = {
        stage.name: frozenset(one.round for one in trials
                              if one.stage == stage.name and _is_nobodys_fault(one))
        for stage in plan.stages
    }  # fmt: skip
    return replace(table, attempts=attempts, left_out=left_out)


def _is_nobodys_fault(trial: TrialRecord) -> bool:
    """Whether it ended without a number that is compared, for which its stage is not to blame."""
    return trial.state is TrialState.DEGRADED or (trial.failed and trial.host_lost)


def stage_facts(
    plan: Plan,
    trials: Sequence[TrialRecord],
    trial_facts: Sequence[TrialFacts],
    compared: compare.PlanComparison,
    quantiles: Quantiles,
    cycles: PlanCycles,
    steady: Mapping[str, Judgement],
) -> tuple[StageFacts, ...]:
    """What is said of each stage, in plan order.

    Args:
        plan: The resolved plan.
        trials: All trials that are needed.
        trial_facts: What is said of each trial.
        compared: The comparisons of the plan.
        quantiles: As `store.histogram.merged_quantiles`.
        cycles: What is known of checkpoint cycles.
        steady: What cycles say of the steadiness of stages whose windows are made of them.
    """
    finished = [trial for trial in trials if trial.state is TrialState.FINISHED]
    to_first = {one.stage: comparison_facts(one) for one in compared.against_first}
    to_previous = {one.stage: comparison_facts(one) for one in compared.against_before}
    facts = []
    before: Stage | None = None
    for stage in plan.stages:
        mine = sorted(
            (trial for trial in finished if trial.stage == stage.name), key=lambda t: t.round
        )
        told_of = _facts(
            sum(trial.stage == stage.name for trial in trials),
            stage,
            mine,
            [one for trial in mine for one in trial_facts if one.number == trial.number],
            standing(stage, trials),
            (to_first.get(stage.name), to_previous.get(stage.name)),
            changes(
                before,
                stage,
                effective_of(before.name, trials) if before else {},
                effective_of(stage.name, trials),
            ),
            quantiles,
        )
        if stage.twin_of is not None and told_of.to_first is not None:
            # A difference of two equal stages is chance: no number of rounds decides on it.
            told_of = replace(told_of, to_first=replace(told_of.to_first, rounds_needed=None))
        told_of = _in_cycles(told_of, cycles, mine)
        facts.append(replace(told_of, steadiness=steady.get(stage.name, told_of.steadiness)))
        before = stage
    return tuple(facts)


def _facts(
    planned: int,
    stage: Stage,
    trials: Sequence[TrialRecord],
    trial_facts: Sequence[TrialFacts],
    stands: Standing,
    compared: tuple[Comparison | None, Comparison | None],
    changed: tuple[SettingChange, ...],
    quantiles: Quantiles,
) -> StageFacts:
    results = [trial.result for trial in trials if trial.result]
    shares = [one.result.client.share_of_host if one.result else None for one in trials]
    long = [one for one in results if one.followed and one.followed.cycles is None] or results
    bmsql = stage.workload.tpcc is not None and stage.workload.tpcc.schema == "bmsql"
    printed = [one for result in results if bmsql and (one := _as_benchmarksql(result))]
    return StageFacts(
        name=stage.name,
        why=stage.why,
        twin_of=stage.twin_of,
        afresh=stage.afresh,
        rung=stands.rung,
        rung_reason=stands.reason,
        rung_planned=stands.planned,
        losses=stands.losses,
        not_known=stands.not_known,
        read_back=stands.read_back,
        rounds=tuple(trial.round for trial in trials),
        rounds_planned=planned,
        throughput=Spread.of(tuple(result.throughput for result in results)),
        nopm=Spread.of(tuple(one.nopm for one in results if one.nopm is not None)),
        tpm_total=Spread.of(tuple(result.tpm_total for result in results)),
        benchmarksql_orders=Spread.of(tuple(one.tpmc for one in printed)),
        benchmarksql_total=Spread.of(tuple(one.tpm_total for one in printed)),
        to_first=compared[0],
        to_previous=compared[1],
        latency=_latency(long, quantiles),
        statements=_statements(long, quantiles),
        per_transaction=_efficiency(long),
        checkpoints=tuple(one.checkpoints for one in trial_facts),
        checkpoint_cycle=most_doubtful([one.checkpoint_cycle for one in trial_facts]),
        client_share=Spread.of(tuple(share for share in shares if share is not None)),
        client_limit=most_doubtful([one.client_limit for one in trial_facts], shares),
        ceiling_share=Spread.of(
            tuple(one.ceiling_share for one in trial_facts if one.ceiling_share is not None)
        ),
        steadiness=most_doubtful([one.steadiness for one in trial_facts]),
        window_end=most_doubtful([one.window_end for one in trial_facts]),
        changes=changed,
        build=build_text(stage.build) if stage.build else None,
        folder=stage.folder,
        pooler=stage.pooler.shown if stage.pooler else None,
    )


def _in_cycles(facts: StageFacts, cycles: PlanCycles, trials: Sequence[TrialRecord]) -> StageFacts:
    """The same, over whole cycles where anchors tell of them."""
    return replace(
        facts,
        throughput=Spread.of(over_cycles(cycles, trials)),
        checkpoint_cycle=_anchored(cycles.anchored(facts.name)) or facts.checkpoint_cycle,
    )


def over_cycles(cycles: PlanCycles, trials: Sequence[TrialRecord]) -> tuple[float, ...]:
    """Throughput of finished trials of one stage; short windows corrected by the anchors' mean."""
    values = [
        (one.round, cycles.short.get((one.stage, one.round), one.result.throughput))
        for one in trials
        if one.result
    ]
    if not trials or cycles.anchored(trials[0].stage) is None:
        return tuple(value for _, value in values)
    known = cycles.stages[trials[0].stage]
    shares = [whole / known.short[at] for at, whole in known.whole.items() if known.short.get(at)]
    share = geometric_mean(shares)
    return tuple(value * share for _, value in values)


def _anchored(known: CycleFacts | None) -> Judgement | None:
    """What stands for the windows of a stage whose whole cycles are known from anchors."""
    if known is None:
        return None
    lengths = " and ".join(f"{one.cycle_s:.0f}" for one in known.anchors)
    anchors = plural(len(known.anchors), "anchor")
    fact = f"{anchors} of 1.3 checkpoint cycles ({lengths} s) correct the rest"
    return Judgement("clear", fact, None)


def noise_facts(plan: Plan, table: Table, confidence: float) -> NoiseFloor | None:
    """What the identical stages of an A/A plan show; None where there are none."""
    groups: dict[str, list[str]] = {}
    for stage in plan.stages:
        if stage.twin_of is not None:
            groups.setdefault(stage.twin_of, [stage.twin_of]).append(stage.name)
    if not groups:
        return None
    try:
        floor = noise_floor(table, list(groups.values()), confidence)
    except PgdynoError as error:
        return NoiseFloor(None, None, None, error.fact, (error.hint,) if error.hint else ())
    shown = "; ".join(f"{plural(one.rounds, 'round')} {one.effect:.1%}" for one in floor.shown)
    sentence = (
        f"identical stages differ by a spread of {floor.sd:.2%} in a round"
        f" (interval {floor.sd_low:.2%} to {floor.sd_high:.2%}), at most by {floor.widest:.2%};"
        f" the smallest effect seen with 80% chance: {shown}"
    )
    needed = tuple((one.effect, one.rounds) for one in floor.needed)
    return NoiseFloor(floor.sd, floor.sd_low, floor.sd_high, sentence, floor.warnings, needed)


def comparison_facts(one: verdict.Comparison) -> Comparison:
    """A comparison as reports tell it: what is not known is None."""
    known = isfinite(one.high)  # an interval of (0, inf) is none
    return Comparison(
        base=one.base,
        ratio=one.ratio if isfinite(one.ratio) else None,
        low=one.low if known else None,
        high=one.high if known else None,
        confidence=one.confidence,
        rounds=one.n,
        verdict=one.verdict.value,
        reason=one.reason,
        p_adjusted=one.p_adjusted if isfinite(one.p_adjusted) else None,
        rounds_needed=one.rounds_needed,
        method=one.method,
        warnings=one.warnings,
        failures=one.failures,
        look=one.look,
    )


def _latency(results: Sequence[TrialResult], quantiles: Quantiles) -> tuple[Percentiles, ...]:
    kinds = list(dict.fromkeys(kind.kind for result in results for kind in result.kinds))
    lines = []
    for name in kinds:
        parts = [kind for result in results for kind in result.kinds if kind.kind == name]
        n = sum(part.window.timed for part in parts)
        if n == 0:
            continue
        values = quantiles([part.response for part in parts], SHARES)
        below_ns = exact_below(part.response_ns for part in parts)
        lines.append(replace(Percentiles(name, n, *values), exact_below_ns=below_ns))
    return tuple(lines)


def _as_benchmarksql(result: TrialResult) -> AsBenchmarkSql | None:
    """None: it would still wait for the last answer."""
    if any(kind.window.unanswered for kind in result.kinds):
        return None
    ended = {
        kind.kind: Ended(
            kind.window.succeeded, kind.window.rolled_back, kind.window.failed,
            late=0 if kind.window.drained is None else kind.window.unfinished,
        )
        for kind in result.kinds
    }  # fmt: skip
    return as_benchmarksql(ended, result.window_s + result.drained_s)


def _statements(results: Sequence[TrialResult], quantiles: Quantiles) -> tuple[StatementFacts, ...]:
    found: dict[tuple[str, str], list[StatementResult]] = {}
    for result in results:
        for kind in result.kinds:
            for one in kind.statements:
                found.setdefault((kind.kind, one.name), []).append(one)
    shares = (0.5, 0.95, 0.99, 1.0)
    return tuple(
        replace(
            StatementFacts(
                kind,
                name,
                sum(part.count for part in parts),
                *quantiles([part.histogram for part in parts], shares),
            ),
            exact_below_ns=exact_below(part.ns for part in parts),
        )
        for (kind, name), parts in found.items()
    )


def _efficiency(results: Sequence[TrialResult]) -> dict[str, Spread]:
    rounds = [per_transaction(result) for result in results]
    spreads = {}
    for metric in METRICS:
        values = tuple(costs[metric.name] for costs in rounds if metric.name in costs)
        spread = Spread.of(values)
        # A cost that some round did not measure cannot stand beside those that all did.
        if spread is not None and len(values) == len(rounds):
            spreads[metric.name] = spread
    return spreads
