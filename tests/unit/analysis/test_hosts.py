"""What is said of hosts: which was the limit, which is unlike others, how they kept time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pgdyno.analysis.hosts import fleet_facts
from pgdyno.analysis.judge import client_limit
from pgdyno.analysis.stages import throughput_table
from pgdyno.model.fleet import NetworkCard, Surroundings
from pgdyno.model.run import TrialRecord, TrialState
from tests.data.hosts import DRIVEN, FAR
from tests.data.miniature import CHARACTERS, a_plan, a_result


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


def test_a_host_is_judged_by_its_own_ceiling_and_rate() -> None:
    """What all hosts reach together says nothing of one."""
    known = {1: {"local:a": 1_800.0, "netns:client": 6_000.0}}

    found = fleet_facts(["one"], [trial(1)], known, server_on_host=True)

    assert found is not None
    here, namespace, far = found.hosts
    assert here.ceiling_share == pytest.approx(90_000 / 60 / 1_800)
    assert here.limit == "finding"
    assert here.remarks[0].startswith("it was the limit: the client reached 83% of its ceiling")
    assert namespace.ceiling_share == pytest.approx(0.25)
    assert namespace.limit == "clear"
    assert far.ceiling_share is None
    judged = client_limit(replace(a_result(), fleet=replace(DRIVEN, hosts=DRIVEN.hosts[:2])),
                          server_on_host=True, host_ceilings=known[1])  # fmt: skip
    assert judged.fact.startswith("host local:a: the client reached 83% of its ceiling")


def test_a_full_network_card_is_a_limit_of_its_host() -> None:
    card = NetworkCard("eth0", 10**9, 60 * 110 * 10**6, 10**9)
    around = Surroundings(60.0, 24.0, 480.0, 6.0, {"ray": 30.0, "ssh": 0.5}, (card,))
    fleet = replace(DRIVEN, hosts=(DRIVEN.hosts[0], replace(DRIVEN.hosts[1], around=around)))
    record = replace(trial(1), result=replace(a_result(), fleet=fleet))

    found = fleet_facts(["one"], [record], server_on_host=True)

    assert found is not None
    _, row = found.hosts
    assert row.remarks == (
        "it was the limit: network card eth0 carried 88% of its 1 Gbit/s, limit 80%",
        "Ray took 0.50 CPUs there in the window",
    )
    assert row.beside == pytest.approx(18 / 480)
    assert row.card == "eth0 105 MiB/s, 88.0% of its speed"


def test_degraded_trials_are_told_and_are_in_no_number() -> None:
    """Not in the numbers of hosts, and not in the table that stages are compared by."""
    without = replace(DRIVEN, hosts=DRIVEN.hosts[:2], lost=("host ssh://b was lost: gone",),
                      went_on=True, terminals_lost=300, connections_lost=8)  # fmt: skip
    degraded = replace(
        trial(2), state=TrialState.DEGRADED, result=replace(a_result(), fleet=without)
    )

    found = fleet_facts(["one"], [trial(1), degraded], server_on_host=True)

    assert found is not None
    assert {row.rounds for row in found.hosts} == {1}
    (row,) = found.degraded
    assert (row.trial, row.hosts, row.terminals_lost, row.lost) == (2, 2, 300, without.lost)
    alone = fleet_facts(["one"], [degraded], server_on_host=True)
    assert alone is not None
    assert not alone.stages

    plan = a_plan(CHARACTERS, 2)
    base, other = plan.stages[0].name, plan.stages[1].name
    records = [replace(one, stage=name, round=round_)
               for name, round_, one in ((base, 1, trial(1)), (base, 2, degraded),
                                         (other, 1, trial(3)), (other, 2, trial(4)))]  # fmt: skip
    table = throughput_table(plan, records)
    assert np.isnan(table.row(base)).tolist() == [False, True]
    assert table.ended(base).all(), "a look does not wait for it"
    assert table.failures(base) is None
    lost = [replace(one, state=TrialState.INVALID, host_lost=True) if one is records[1] else one
            for one in records]  # fmt: skip
    assert throughput_table(plan, lost).failures(base) is None
    assert throughput_table(plan, lost).ended(base).all()
    failed = [replace(one, host_lost=False) for one in lost]
    assert throughput_table(plan, failed).failures(base) == f"1 of 2 trials of {base} failed"


def test_the_verdict_of_the_client_is_that_of_the_worst_host_by_its_name() -> None:
    result = replace(a_result(), fleet=DRIVEN)

    judged = client_limit(result, server_on_host=True)

    assert judged.verdict == "finding"
    assert judged.fact.startswith(f"host {FAR.name}: a driver thread ran or waited")
