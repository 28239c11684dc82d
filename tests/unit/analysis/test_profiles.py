"""Profiles as a report tells them: costs by role and function, and what differs between stages."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from pgdyno.analysis.profile_facts import ProfileFacts
from pgdyno.analysis.profiles import profile_facts
from pgdyno.model.profile import Profile
from pgdyno.report.flame import flame_data
from tests.data.profiled import LACK, PER_S, PLACES, SECONDS, STACKS, made_up

BASES = {"tuned": "initdb", "async-commit": "initdb"}


def profiles(*stages: str, rounds: int = 3) -> list[tuple[str, Profile]]:
    rng = np.random.default_rng(20261124)
    return [(stage, made_up(stage, rng)) for _ in range(rounds) for stage in stages]


def facts(found: list[tuple[str, Profile]]) -> ProfileFacts:
    told = profile_facts(tuple(PLACES), found, BASES)
    assert told is not None
    return told


def test_no_profile_is_nothing() -> None:
    assert profile_facts(tuple(PLACES), [], BASES) is None


def test_costs_of_roles_are_those_that_were_drawn() -> None:
    told = facts(profiles(*PLACES))
    assert told.cpu is not None
    for place, stage in enumerate(PLACES):
        true = sum(weights[place] for weights in STACKS.values())
        assert told.cpu.branches[place].stage == stage
        assert told.cpu.branches[place].whole == pytest.approx(true, rel=0.06)
        assert sum(role.values[place] for role in told.cpu_roles) == pytest.approx(
            told.cpu.branches[place].whole
        )
        assert (told.stages[place].profiles, told.stages[place].seconds) == (3, 3 * SECONDS)
        assert told.stages[place].transactions == 3 * SECONDS * PER_S


def test_a_parent_has_all_that_its_children_have() -> None:
    tree = facts(profiles(*PLACES)).cpu
    assert tree is not None
    for branch in tree.branches:
        below = np.zeros(len(tree.parents))
        for node, parent in enumerate(tree.parents):
            assert parent < node
            if parent >= 0:
                below[parent] += branch.values[node]
        assert (below <= np.array(branch.values) * 1.002 + 1e-9).all()
        assert sum(v for v, p in zip(branch.values, tree.parents, strict=True) if p < 0) == (
            pytest.approx(branch.whole, rel=1e-3)
        )


def test_what_changed_is_found_and_what_did_not_is_not() -> None:
    told = facts(profiles(*PLACES))
    found = {(one.stage, one.name): one for one in told.changed}
    read = found["tuned", "_copy_to_iter"]
    assert (read.base, read.role, read.module) == ("initdb", "backend", "[kernel]")
    assert read.low < 12 - 130 < read.high < 0
    assert found["async-commit", "jbd2_log_wait_commit"].value == 0
    assert not {name for _, name in found} & {"GetCachedPlan", "unix_stream_sendmsg"}


def test_stages_alike_do_not_differ() -> None:
    rng = np.random.default_rng(4)
    alike = [(stage, made_up("tuned", rng)) for _ in range(3) for stage in ("initdb", "tuned")]
    assert facts(alike).changed == ()


def test_a_function_that_calls_itself_counts_once() -> None:
    told = facts(profiles("initdb"))
    for one in told.heavy:
        (share,) = one.shares
        assert share.own <= share.total * 1.0001
        assert share.total <= told.cpu_roles[0].values[0] * 1.0001


def test_a_profile_without_transactions_tells_no_cost() -> None:
    idle = replace(made_up("initdb", np.random.default_rng(1)), transactions=(0.0,) * SECONDS)
    told = facts([("initdb", idle)])
    assert told.cpu is None
    assert told.waiting is not None
    assert any("No transaction ended" in lack.fact for lack in told.lacks)


def test_what_could_not_be_seen_is_said_once() -> None:
    seen = made_up("initdb", np.random.default_rng(1))
    blind = replace(seen, cpu=None, quality=(), lacks=(LACK,))
    told = facts([("initdb", blind), ("tuned", blind)])
    assert told.cpu is None
    assert told.heavy == told.named == ()
    assert told.lacks == (LACK,)


def test_the_data_of_the_graph_are_finite_and_small() -> None:
    tree = facts(profiles(*PLACES)).cpu
    assert tree is not None
    text = json.dumps(flame_data(tree), allow_nan=False)
    assert len(text) < 20_000
