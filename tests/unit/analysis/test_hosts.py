"""What is said of hosts: which was the limit, which is unlike others, how they kept time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.hosts import fleet_facts
from pgdyno.analysis.judge import client_limit
from pgdyno.model.run import TrialRecord, TrialState
from tests.data.hosts import DRIVEN, FAR
from tests.data.miniature import a_result


def trial(number: int, stage: str = "one", fleet: bool = True) -> TrialRecord:
    result = replace(a_result(), fleet=DRIVEN if fleet else None)
    return TrialRecord(number, number, stage, "", TrialState.FINISHED, result=result)


def test_a_load_of_one_process_has_no_hosts() -> None:
    assert fleet_facts(["one"], [trial(1, fleet=False)], server_on_host=True) is None


def test_a_host_that_was_the_limit_or_is_unlike_the_others_is_named() -> None:
    found = fleet_facts(["one"], [trial(1), trial(2)], server_on_host=True)

    assert found is not None
    here, namespace, far = found.hosts
    assert (here.rounds, here.terminals, here.share) == (2, 300, 90_000 / 240_000)
    assert here.limit == namespace.limit == "clear"
    assert not here.remarks
    assert far.unlike == pytest.approx(0.5)
    assert far.limit == "finding"
    assert [one.partition(":")[0] for one in far.remarks] == [
        "it was the limit",
        "its requests took 50% more time than elsewhere",
        "it noticed due times 24.0 ms late at p99.9",
    ]
    (stage,) = found.stages
    assert (stage.hosts, stage.skew_ns) == (3, 2 * 620_000)
    assert far.drift_ppm == pytest.approx(5.0)


def test_the_verdict_of_the_client_is_that_of_the_worst_host_by_its_name() -> None:
    result = replace(a_result(), fleet=DRIVEN)

    judged = client_limit(result, server_on_host=True)

    assert judged.verdict == "finding"
    assert judged.fact.startswith(f"host {FAR.name}: a driver thread ran or waited")
