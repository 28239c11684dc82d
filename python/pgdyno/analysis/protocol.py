"""The price of the protocol: what a transaction costs through the face of each stage.

Service time (from when a connection took a request up to its answer) and CPU are means over all
kinds, weighted by what really ended; so they belong to the mix that was driven. Where stages have
different faces, each is held against the stage with the fewest round trips, round by round.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pgdyno.analysis.efficiency import per_transaction
from pgdyno.analysis.facts import ProtocolCost, ProtocolPrice, Spread
from pgdyno.model.plan import Plan
from pgdyno.model.run import TrialRecord, TrialResult

MEASURES = ("service_us", "client_cpu_us", "server_cpu_us")


def protocol_costs(plan: Plan, finished: Sequence[TrialRecord]) -> tuple[ProtocolCost, ...]:
    """The cost of each stage's face, in plan order; stages without a finished trial are left out.

    Args:
        plan: The resolved plan.
        finished: Trials whose numbers may be used.
    """
    by_stage = {
        stage.name: {t.round: t.result for t in finished if t.stage == stage.name and t.result}
        for stage in plan.stages
    }
    costs = {
        name: {round_: _cost(result) for round_, result in rounds.items()}
        for name, rounds in by_stage.items()
        if rounds and all(one.round_trips_per_transaction is not None for one in rounds.values())
    }
    faces = {stage.name: stage.workload.face for stage in plan.stages if stage.name in costs}
    lean = min(costs, key=lambda name: _trips(by_stage[name]), default=None)
    compared = len(set(faces.values())) > 1
    return tuple(
        ProtocolCost(
            stage=name,
            face=faces[name],
            round_trips=_trips(by_stage[name]),
            statements=median(r.statements_per_transaction or 0 for r in by_stage[name].values()),
            costs=_spreads(list(rounds.values())),
            price=_price(rounds, costs[lean], lean) if compared and lean and name != lean else None,
        )
        for name, rounds in costs.items()
    )


def _trips(rounds: dict[int, TrialResult]) -> float:
    return median(result.round_trips_per_transaction or 0 for result in rounds.values())


def _cost(result: TrialResult) -> dict[str, float]:
    """The measures of one trial, those that it has."""
    ended = [(k, k.window.ended) for k in result.kinds]
    count = sum(n for _, n in ended)
    found = per_transaction(result)
    # With requests that have no answer the mean is a lower bound only.
    if count and not any("exact_below" in kind.service_ns for kind in result.kinds):
        found["service_us"] = sum(k.service_ns["mean"] * n for k, n in ended if n) / count / 1e3
    return {name: found[name] for name in MEASURES if name in found}


def _spreads(rounds: Sequence[dict[str, float]]) -> dict[str, Spread]:
    spreads = {}
    for name in MEASURES:
        values = tuple(costs[name] for costs in rounds if name in costs)
        spread = Spread.of(values)
        if spread is not None and len(values) == len(rounds):
            spreads[name] = spread
    return spreads


def _price(
    mine: dict[int, dict[str, float]], lean: dict[int, dict[str, float]], name: str
) -> ProtocolPrice | None:
    """Shares of a transaction that the leanest face does without, paired by round."""
    rounds = sorted(mine.keys() & lean.keys())
    shares = {}
    for measure in MEASURES:
        pairs = [
            (mine[r][measure], lean[r][measure])
            for r in rounds
            if measure in mine[r] and measure in lean[r] and mine[r][measure] > 0
        ]
        spread = Spread.of(tuple(1 - other / own for own, other in pairs))
        if spread is not None:
            shares[measure] = spread
    return ProtocolPrice(name, shares) if shares else None
