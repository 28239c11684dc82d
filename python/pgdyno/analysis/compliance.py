"""How near each stage comes to what the TPC-C text asks of a run ("TPC-C-like").

Only what can be measured or read from the plan; what pgdyno never does (audit, price, ACID tests)
stands among the deviations. Clauses 4.2, 5.2 and 5.5 of revision 5.11; times in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from pgdyno.analysis.facts import Requirement
from pgdyno.analysis.words import kind as kind_text
from pgdyno.model.plan import Plan, Workload
from pgdyno.model.run import KindResult, TrialRecord, TrialResult

TERMINALS_PER_WAREHOUSE = 10
NOPM_PER_WAREHOUSE = (9.0, 12.86)
WINDOW_S = 7200.0
DEFERRED_P90_S = 80.0


@dataclass(frozen=True, slots=True)
class _Kind:
    """What the text asks of a kind of transaction."""

    share_low: float  # of the mix
    keying_s: float  # least
    think_s: float  # least mean
    p90_s: float  # limit of the 90th percentile of response times


KINDS = {
    "new_order": _Kind(0.0, 18, 12, 5),
    "payment": _Kind(0.43, 3, 12, 5),
    "order_status": _Kind(0.04, 2, 10, 5),
    "delivery": _Kind(0.04, 2, 5, 5),
    "stock_level": _Kind(0.04, 2, 5, 20),
}

_Measure = Callable[[TrialResult, Workload], float | None]


def requirements(plan: Plan, finished: Sequence[TrialRecord]) -> tuple[Requirement, ...]:
    """Each requirement with what the stages measured, medians of rounds; none unless TPC-C.

    Args:
        plan: The resolved plan.
        finished: Trials whose numbers may be used.
    """
    if plan.workload.tpcc is None:
        return ()
    results = {
        stage.name: [t.result for t in finished if t.stage == stage.name and t.result]
        for stage in plan.stages
    }
    rows = []
    for clause, what, unit, low, high, measure in _rules():
        measured = {}
        for stage in plan.stages:
            found = [measure(result, stage.workload) for result in results[stage.name]]
            values = [value for value in found if value is not None]
            measured[stage.name] = median(values) if values else None
        rows.append(Requirement(clause, what, unit, low, high, measured))
    return tuple(rows)


def _rules() -> Iterator[tuple[str, str, str, float | None, float | None, _Measure]]:
    low, high = NOPM_PER_WAREHOUSE
    yield "4.2.2", "NOPM per warehouse", "NOPM", low, high, _nopm_per_warehouse
    yield "4.2.2", "terminals per warehouse", "1", TERMINALS_PER_WAREHOUSE, None, _terminals
    yield "2.4.1.1", "terminals that keep their home warehouse", "share", 1.0, 1.0, _home
    yield "5.5.2", "measured window", "s", WINDOW_S, None, lambda result, _: result.window_s
    for name, kind in KINDS.items():
        text = kind_text(name)
        if kind.share_low:
            yield "5.2.3", f"{text}, share of the mix", "share", kind.share_low, None, _share(name)
        yield "5.2.5", f"{text}, keying time", "s", kind.keying_s, None, _keying(name)
        yield "5.2.5", f"{text}, mean think time", "s", kind.think_s, None, _think(name)
        if name == "delivery":
            yield (
                "2.7.2",
                f"{text}, p90 until done",
                "s",
                None,
                DEFERRED_P90_S,
                _p90(name, DEFERRED_P90_S),
            )
        else:
            yield (
                "5.2.5",
                f"{text}, p90 of the response",
                "s",
                None,
                kind.p90_s,
                _p90(name, kind.p90_s),
            )


def _nopm_per_warehouse(result: TrialResult, workload: Workload) -> float | None:
    if result.nopm is None or workload.tpcc is None:
        return None
    return result.nopm / workload.tpcc.warehouses / workload.databases


def _terminals(_result: TrialResult, workload: Workload) -> float | None:
    return workload.terminals / workload.tpcc.warehouses if workload.tpcc else None


def _home(_result: TrialResult, workload: Workload) -> float | None:
    return float(workload.tpcc.home == "fixed") if workload.tpcc else None


def _kind(result: TrialResult, name: str) -> KindResult | None:
    return next((kind for kind in result.kinds if kind.kind == name), None)


def _share(name: str) -> _Measure:
    def share(result: TrialResult, _: Workload) -> float | None:
        kind = _kind(result, name)
        total = sum(one.window.ended for one in result.kinds)
        return kind.window.ended / total if kind and total else None

    return share


def _keying(name: str) -> _Measure:
    def keying(result: TrialResult, _: Workload) -> float | None:
        kind = _kind(result, name)
        return kind.keying_mean_s if kind else None

    return keying


def _think(name: str) -> _Measure:
    def think(result: TrialResult, _: Workload) -> float | None:
        kind = _kind(result, name)
        return kind.think_mean_s if kind else None

    return think


def _p90(name: str, limit_s: float) -> _Measure:
    def p90(result: TrialResult, _: Workload) -> float | None:
        kind = _kind(result, name)
        if kind is None or not kind.window.ended:
            return None
        p90_ns = kind.response_ns["p90"]
        is_bound = p90_ns >= kind.response_ns.get("exact_below", p90_ns + 1)
        # A lower bound within the limit does not say that the limit was kept.
        return None if is_bound and p90_ns / 1e9 <= limit_s else p90_ns / 1e9

    return p90
