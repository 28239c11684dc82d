"""The price of the protocol and the table of requirements, on made-up results."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.compliance import requirements
from pgdyno.analysis.facts import Requirement
from pgdyno.analysis.protocol import protocol_costs
from pgdyno.model.plan import Plan
from pgdyno.model.run import TrialRecord, TrialResult, TrialState
from tests.data.miniature import CHARACTERS, a_plan, a_result

STATEMENT, PIPELINE = (character.stage.name for character in CHARACTERS[:2])


def a_plan_of_faces() -> Plan:
    plan = a_plan(CHARACTERS[:2], rounds=2)
    faces = (plan.workload, replace(plan.workload, face="pipeline"))
    stages = (replace(s, workload=w) for s, w in zip(plan.stages, faces, strict=True))
    return replace(plan, stages=tuple(stages))


def with_cost(service_ns: int, client_s: float, round_trips: float) -> TrialResult:
    result = a_result()
    kinds = tuple(replace(k, service_ns={**k.service_ns, "mean": service_ns}) for k in result.kinds)
    client = replace(result.client, user_s=client_s, system_s=0.0)
    return replace(result, kinds=kinds, client=client, round_trips_per_transaction=round_trips)


def trial(round_: int, stage: str, result: TrialResult) -> TrialRecord:
    return TrialRecord(round_, round_, stage, "i", TrialState.FINISHED, result=result)


def test_the_price_is_what_the_leanest_face_does_without_round_by_round() -> None:
    finished = [
        trial(1, STATEMENT, with_cost(4_000_000, 8.0, 13.4)),
        trial(1, PIPELINE, with_cost(1_000_000, 2.0, 2.5)),
        trial(2, STATEMENT, with_cost(8_000_000, 16.0, 13.4)),
        trial(2, PIPELINE, with_cost(4_000_000, 8.0, 2.5)),
    ]

    slow, lean = protocol_costs(a_plan_of_faces(), finished)

    assert (slow.face, lean.face) == ("statement", "pipeline")
    assert (slow.round_trips, lean.round_trips) == (13.4, 2.5)
    assert slow.costs["service_us"].rounds == (4000.0, 8000.0)
    assert slow.price is not None
    assert slow.price.base == PIPELINE
    assert slow.price.shares["service_us"].rounds == (0.75, 0.5)
    assert slow.price.shares["client_cpu_us"].rounds == pytest.approx((0.75, 0.5))
    assert lean.price is None


def test_one_face_has_no_price() -> None:
    plan = a_plan(CHARACTERS[:2], rounds=1)
    finished = [trial(1, name, with_cost(1_000, 1.0, 13.4)) for name in (STATEMENT, PIPELINE)]

    assert [cost.price for cost in protocol_costs(plan, finished)] == [None, None]
    assert protocol_costs(plan, []) == ()


def row(rows: tuple[Requirement, ...], what: str) -> Requirement:
    return next(one for one in rows if what in one.what)


def test_what_the_text_asks_is_held_against_each_stage() -> None:
    plan = a_plan(CHARACTERS[:1], rounds=1)
    result = a_result()
    slow = {**result.kinds[0].response_ns, "p90": 6_000_000_000}
    kinds = (
        replace(result.kinds[0], response_ns=slow, keying_mean_s=18.2, think_mean_s=11.0),
        *result.kinds[1:],
    )
    finished = [trial(1, STATEMENT, replace(result, kinds=kinds, nopm=128.0))]

    rows = requirements(plan, finished)

    assert row(rows, "New-Order, p90").meets(STATEMENT) is False
    assert row(rows, "New-Order, keying").meets(STATEMENT) is True
    assert row(rows, "New-Order, mean think").meets(STATEMENT) is False
    assert row(rows, "Payment, keying").meets(STATEMENT) is None
    assert row(rows, "Payment, p90").meets(STATEMENT) is True
    assert row(rows, "NOPM per warehouse").measured[STATEMENT] == pytest.approx(12.8)
    assert row(rows, "NOPM per warehouse").meets(STATEMENT) is True
    assert row(rows, "home").meets(STATEMENT) is True
    assert row(rows, "window").meets(STATEMENT) is False


@pytest.mark.parametrize(("nopm", "meets"), [(80.0, False), (129.0, False), (100.0, True)])
def test_throughput_must_fit_the_number_of_warehouses(nopm: float, meets: bool) -> None:
    plan = a_plan(CHARACTERS[:1], rounds=1)
    rows = requirements(plan, [trial(1, STATEMENT, replace(a_result(), nopm=nopm))])

    assert row(rows, "NOPM per warehouse").meets(STATEMENT) is meets
