"""What a role or a connection sets comes before a database's own, and is told beforehand."""

from __future__ import annotations

from dataclasses import replace

import pytest

import pgdyno
from pgdyno.model.rights import Role
from pgdyno.model.settings import ServerFacts
from pgdyno.plan.settings.stronger import overruled

ROLE = Role("engineer", False, True, True, True, True, True, False, frozenset())


@pytest.fixture(scope="module")
def plan() -> pgdyno.Plan:
    return pgdyno.load_plan({
        "name": "mine", "question": "?", "protocol": {"lowest_rung": "D2"},
        "stage": [
            {"name": "on", "why": ".", "settings": {"synchronous_commit": "on"}},
            {"name": "off", "why": ".", "settings": {"synchronous_commit": "off"}},
        ],
    })  # fmt: skip


def on_a_server_of_others(server: ServerFacts, **stronger: tuple[str, str]) -> ServerFacts:
    return replace(server, role=replace(ROLE, stronger=stronger))


def test_a_stage_is_refused_what_its_role_has_otherwise(plan: pgdyno.Plan) -> None:
    stages = plan.record.stages
    server = on_a_server_of_others(plan.server, synchronous_commit=("on", "user"))
    ((stage, setting, why),) = overruled(server, stages)
    assert (stage, setting.name, setting.value) == ("off", "synchronous_commit", "off")
    assert "role engineer has on, which comes before" in why
    assert "`ALTER ROLE engineer RESET synchronous_commit`" in why


def test_so_it_is_of_a_connections_options(plan: pgdyno.Plan) -> None:
    server = on_a_server_of_others(plan.server, synchronous_commit=("off", "client"))
    ((stage, _, why),) = overruled(server, plan.record.stages)
    assert stage == "on"
    assert "the connection's options say off" in why


def test_nothing_is_refused_where_nothing_is_stronger(plan: pgdyno.Plan) -> None:
    server = on_a_server_of_others(plan.server, work_mem=("4096", "user"))
    assert not list(overruled(server, plan.record.stages))
    assert not list(overruled(plan.server, plan.record.stages)), "a server of ours has no role"
