"""Client keys of any stages: the workload of a stage is the plan's with what was said since."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pgdyno.model.plan import Plan
from pgdyno.plan import fixture_ident, fixture_shape, read_plan
from pgdyno.plan.resolve.plan import resolve
from tests.data.servers import HOST, installed

CLIENTS = st.fixed_dictionaries({}, optional={
    "face": st.sampled_from(["statement", "pipeline", "procedure"]),
    "isolation": st.sampled_from(["read committed", "serializable"]),
    "terminals": st.integers(30, 1000),
    "connections": st.integers(1, 30),
    "home": st.sampled_from(["fixed", "random"]),
})  # fmt: skip
STAGES = st.lists(st.tuples(CLIENTS, st.booleans()), min_size=1, max_size=5)
PLAIN = {"face": "statement", "isolation": "read committed", "terminals": 40, "connections": 8,
         "home": "fixed"}  # fmt: skip


def plan_of(stages: list[tuple[dict[str, Any], bool]]) -> Plan:
    text = 'name = "any"\nquestion = "?"\n[workload]\nterminals = 40\n[protocol]\nrounds = 1\n'
    for number, (client, afresh) in enumerate(stages):
        keys = ", ".join(f"{key} = {json.dumps(value)}" for key, value in client.items())
        text += (f'[[stage]]\nname = "s{number}"\nwhy = "."\nafresh = {str(afresh).lower()}\n'
                 f"client = {{ {keys} }}\n")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.toml"
        path.write_text(text)
        return resolve(read_plan(path), installed(18), HOST)


@given(STAGES)
def test_each_stage_has_what_was_said_since_the_last_fresh_one(
    stages: list[tuple[dict[str, Any], bool]],
) -> None:
    plan = plan_of(stages)

    said: dict[str, Any] = {}
    for stage, (client, afresh) in zip(plan.stages, stages, strict=True):
        said = client if afresh else said | client
        workload = stage.workload
        assert workload.tpcc is not None
        got = {key: getattr(workload, key, None) or getattr(workload.tpcc, key) for key in PLAIN}
        assert got == PLAIN | said
        assert {one.name for one in stage.client} == said.keys()


@given(STAGES)
def test_all_stages_share_one_fixture_and_same_clients_have_the_same_trials(
    stages: list[tuple[dict[str, Any], bool]],
) -> None:
    plan = plan_of(stages)

    server = installed(18)
    idents = {
        fixture_ident(fixture_shape(plan.target, stage.workload, server)) for stage in plan.stages
    }
    assert idents == {fixture_ident(fixture_shape(plan.target, plan.workload, server))}
    again = plan_of(stages)
    assert [trial.ident for trial in again.trials] == [trial.ident for trial in plan.trials]
