"""What is said of several servers: shares, their own counts, and how they are unlike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.server_facts import ServerRow
from pgdyno.analysis.servers import servers_facts
from pgdyno.analysis.session_account import account_of
from pgdyno.analysis.shape import part_facts
from pgdyno.model.run import TrialRecord, TrialState
from pgdyno.store.histogram import merged_quantiles
from tests.data.miniature import CHARACTERS, a_plan, a_result
from tests.data.servers_result import NAMES, over_two


def test_a_server_has_its_share_its_counts_and_its_settings() -> None:
    plan = a_plan(CHARACTERS, 1)
    plan = replace(plan, target=replace(plan.target, share="block"))
    stage = plan.stages[0].name
    trials = [TrialRecord(one, one, stage, "", TrialState.FINISHED, result=over_two())
              for one in (1, 2)]  # fmt: skip
    parts = part_facts([stage], trials, merged_quantiles)

    found = servers_facts(plan, trials, parts)

    assert found is not None
    assert (found.names, found.share) == (NAMES, "block")
    first, second = found.rows
    assert (first.stage, first.held, first.rounds) == (stage, "warehouses 1 to 5", 2)
    assert first.version == "PostgreSQL 18.6"
    assert first.share == pytest.approx(2 / 3, abs=0.001)
    assert first.share + second.share == pytest.approx(1.0)
    window_s = a_result().window_s
    assert first.commits_per_s == pytest.approx(6e4 / window_s)
    assert first.commits_are_most, "how many of them are those of who looks on is not known"
    assert second.wal_bytes_per_s == pytest.approx(2e8 / window_s)
    assert second.commits_per_s is None, "it did not show them"
    assert (first.checkpoints, second.checkpoints) == (2.0, None)
    assert (first.violations, second.violations, second.checked) == (0, 6, 2)
    (unlike,) = found.unlike
    assert (unlike.name, unlike.values) == ("shared_buffers", ("6GB", "128MB"))


def test_commits_of_who_looks_on_are_none_of_a_servers() -> None:
    plan = a_plan(CHARACTERS, 1)
    result = over_two()
    first, second = result.servers
    own = replace(first, deltas=first.deltas | {"database.own_commits": 500.0})
    told = replace(result, servers=(own, second))
    trials = [TrialRecord(1, 1, plan.stages[0].name, "", TrialState.FINISHED, result=told)]
    parts = part_facts([plan.stages[0].name], trials, merged_quantiles)

    def row(*trials: TrialRecord) -> ServerRow:
        found = servers_facts(plan, trials, parts)
        assert found is not None
        return found.rows[0]

    counted = row(*trials)
    assert counted.commits_per_s == pytest.approx((6e4 - 500) / a_result().window_s)
    assert not counted.commits_are_most
    assert row(*trials, replace(trials[0], result=result)).commits_are_most, "of one it is unknown"


def test_one_server_has_no_facts_of_several() -> None:
    trial = TrialRecord(1, 1, CHARACTERS[0].stage.name, "", TrialState.FINISHED, result=a_result())
    assert servers_facts(a_plan(CHARACTERS, 1), [trial], ()) is None


def test_sessions_of_several_servers_are_no_account_of_the_load() -> None:
    trial = TrialRecord(1, 1, "one", "", TrialState.FINISHED, result=over_two())
    said = account_of(trial, {})
    assert getattr(said, "reason", "") == (
        "the load went to 2 servers, whose sessions were sampled apart"
    )
