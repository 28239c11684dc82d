"""A replica that answered reads: its part of the load, its lag in the windows, and the label."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pgdyno.analysis.account_facts import Account, NoAccount
from pgdyno.analysis.replica import replica_rows, stale_reads
from pgdyno.analysis.replica_facts import Levels
from pgdyno.analysis.windows import window_facts
from pgdyno.diagnosis.gate import paced
from pgdyno.model.run import Series, TrialRecord, TrialState
from pgdyno.model.workload import READS
from tests.data.met import sessions
from tests.data.miniature import CHARACTERS, SECOND_NS, WINDOW_S, a_plan, a_result


def lags(begin_ns: int, end_ns: int) -> Series:
    """One sample before the window, three in it, one after."""
    times = np.array([begin_ns - 1, begin_ns, begin_ns + 1, end_ns, end_ns + 1])
    return Series("replica.lag_s", "s", "gauge", times, np.array([9.0, 0.0, 0.2, 0.4, 9.0]))


def test_what_a_replica_answered_and_how_far_it_was_behind() -> None:
    plan = a_plan(CHARACTERS, 1)
    first, second = plan.stages[:2]
    routed = replace(second, workload=replace(second.workload, replica_connections=3))
    plan = replace(plan, stages=(first, routed, *plan.stages[2:]))
    result = a_result()
    trials = [TrialRecord(number, 1, stage.name, "", TrialState.FINISHED, result=result)
              for number, stage in enumerate(plan.stages[:2], start=1)]  # fmt: skip
    series = {2: {"replica.lag_s": lags(*result.window_ns)}}

    (row,) = replica_rows(plan, trials, series)

    reads = sum(kind.window.succeeded for kind in result.kinds if kind.kind in READS)
    all_of_it = sum(kind.window.succeeded + kind.window.rolled_back for kind in result.kinds)
    assert (row.stage, row.connections, row.rounds) == (routed.name, 3, 1)
    assert row.answered_per_s == pytest.approx(reads / result.window_s)
    assert row.share == pytest.approx(reads / all_of_it)
    assert row.samples == 3
    assert row.lag_s is not None
    assert (row.lag_s.p50, row.lag_s.most) == (0.2, 0.4)
    assert row.behind_bytes is None, "it was not sampled"
    (deviation,) = stale_reads(plan)
    assert deviation.stages == (routed.name,)
    assert "stale" in deviation.what


def test_lags_of_which_the_least_is_known_make_greater_ones_bounds() -> None:
    plan = a_plan(CHARACTERS, 1)
    routed = replace(plan.stages[0], workload=replace(plan.stages[0].workload,
                                                      replica_connections=3))  # fmt: skip
    plan = replace(plan, stages=(routed, *plan.stages[1:]))
    trial = TrialRecord(1, 1, routed.name, "", TrialState.FINISHED, result=a_result())
    begin_ns, end_ns = a_result().window_ns
    bound = Series("replica.lag_at_least_s", "s", "gauge", np.array([begin_ns + 2, end_ns + 2]),
                   np.array([0.3, 7.0]))  # fmt: skip
    series = {"replica.lag_s": lags(begin_ns, end_ns), bound.name: bound}

    (row,) = replica_rows(plan, [trial], {1: series})

    assert row.samples == 4
    assert row.lag_s == Levels(0.2, 0.4, 0.4, exact_below=0.3)
    (alone,) = replica_rows(plan, [trial], {1: {bound.name: bound}})
    assert alone.lag_s == Levels(0.3, 0.3, 0.3, exact_below=0.3), "nothing else is known"


def test_a_server_that_answers_all_has_no_row() -> None:
    plan = a_plan(CHARACTERS, 1)
    trial = TrialRecord(1, 1, plan.stages[0].name, "", TrialState.FINISHED, result=a_result())
    assert replica_rows(plan, [trial], {}) == ()
    assert stale_reads(plan) == ()


def test_sessions_of_the_server_are_no_account_of_what_a_replica_answers() -> None:
    """They have nothing to do while terminals wait for the replica: the load asks for no less."""
    plan, result = a_plan(CHARACTERS, 1), a_result()
    stage = plan.stages[0]
    routed = replace(stage, workload=replace(stage.workload, replica_connections=1))
    trial = TrialRecord(1, 1, stage.name, "", TrialState.FINISHED, result=result)
    met = sessions(result.window_ns[0] // SECOND_NS - 1, WINDOW_S + 2)

    alone, beside = (window_facts(trial, plan, one, {}, {met.name: met}) for one in (stage, routed))

    assert isinstance(alone.account, Account)
    assert isinstance(beside.account, NoAccount)
    assert beside.account.reason == (
        "a replica answered a part of the load, whose sessions were not sampled"
    )
    assert paced(beside) is None
