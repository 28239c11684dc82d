"""What the client does in each stage: keys that add up, where they come from, files, profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.catalog import workload_profile
from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan
from pgdyno.model.settings import OriginKind
from pgdyno.model.workload import Arrivals, Partitions, Step
from pgdyno.plan import fixture_shape, read_plan
from pgdyno.plan.describe import workload_values
from pgdyno.plan.resolve.plan import resolve
from pgdyno.plan.schema.workload_table import SHAPES_DATA, TABLES, keys_of
from tests.data.servers import HOST, installed

FOLDER = Path(__file__).parents[2] / "data" / "plans" / "good"


def resolved(name: str, *overrides: str, quick: bool = False, aa: bool = False) -> Plan:
    return resolve(read_plan(FOLDER / name, overrides, quick, aa), installed(18), HOST)


def test_client_keys_add_up_until_a_stage_begins_afresh() -> None:
    plan = resolved("clients.toml")
    statement, pipeline, crowd, anew = (stage.workload for stage in plan.stages)

    assert statement == plan.workload
    assert (pipeline.face, pipeline.connections) == ("pipeline", 4)
    assert pipeline.tpcc is not None
    assert pipeline.tpcc.mix["payment"] == 1.0
    assert (crowd.face, crowd.connections, crowd.terminals) == ("pipeline", 6, 600)
    assert crowd.arrivals == Arrivals("open", 250.5, "poisson")
    assert (anew.face, anew.isolation, anew.arrivals) == ("statement", "serializable", Arrivals())
    assert len({stage.workload.data for stage in plan.stages}) == 1


def test_client_keys_tell_who_chose_them() -> None:
    plan = resolved("clients.toml", "stage.crowd.client.connections=5")
    chosen = {one.name: one for one in plan.stage("crowd").client}

    assert list(chosen) == ["arrivals", "connections", "face", "mix", "terminals"]
    assert chosen["face"].origin.detail == f"{plan.source}: stage pipeline"
    assert chosen["arrivals"].value == '{ rate = 250.5, spacing = "poisson" }'
    assert chosen["connections"].origin.kind is OriginKind.OVERRIDE
    assert chosen["connections"].value == "5"
    assert plan.stage("crowd").workload.connections == 5


def test_a_stage_wins_over_quick_and_set_of_the_plan() -> None:
    plan = resolved("clients.toml", "workload.connections=2", quick=True)

    assert [stage.workload.connections for stage in plan.stages] == [2, 2, 6, 2]


def test_the_twin_does_what_its_stage_does() -> None:
    first, *_, twin = resolved("clients.toml", aa=True).stages

    assert twin.twin_of == first.name
    assert (twin.workload, twin.client) == (first.workload, first.client)


def test_stages_with_other_clients_have_other_trials() -> None:
    plan = resolved("clients.toml")
    other = resolved("clients.toml", 'stage.crowd.client.isolation="repeatable read"')
    changed = {
        one.stage
        for one, two in zip(plan.trials, other.trials, strict=True)
        if one.ident != two.ident
    }

    assert changed == {"crowd"}


def test_the_needs_are_those_of_the_hungriest_client() -> None:
    few, many = (
        resolved("clients.toml"),
        resolved("clients.toml", "stage.crowd.client.connections=80"),
    )

    assert many.estimate.memory_bytes > few.estimate.memory_bytes


def test_a_profile_fills_in_what_the_plan_leaves_open() -> None:
    plan = resolved("benchmarksql.toml")
    its_own, text = plan.stages

    assert its_own.workload.tpcc is not None
    assert text.workload.tpcc is not None
    assert (its_own.workload.tpcc.schema, its_own.workload.tpcc.rules) == (
        "bmsql",
        "benchmarksql-5",
    )
    assert (text.workload.tpcc.schema, text.workload.tpcc.rules) == ("bmsql", "text")
    assert its_own.workload.tpcc.home == "random"  # the plan's own
    assert plan.origins["workload.schema"] == "profile benchmarksql-5"
    assert plan.origins["workload.home"] == plan.source
    assert plan.origins["workload.order"] == "default"


def test_every_key_of_a_profile_is_one_of_its_kind_with_a_reason() -> None:
    profile = workload_profile("benchmarksql-5")
    plan = resolved("benchmarksql.toml")

    for key, one in profile.key.items():
        assert f"workload.{key}" in plan.origins
        assert one.why.endswith(".")


def test_files_stand_in_the_plan_so_that_the_run_file_can_repeat_it() -> None:
    plan = resolved("script.toml")
    both, write = (stage.workload.script for stage in plan.stages)

    assert both is not None
    assert write is not None
    assert [(file.path, file.weight) for file in both.files] == [
        ("files/read.sql", 3.0), ("files/write.sql", 1.0),
    ]  # fmt: skip
    assert both.files[0].text == (FOLDER / "files" / "read.sql").read_text()
    assert [file.path for file in write.files] == ["files/write.sql"]
    assert plan.workload.data.kind == "tpcb"


def test_files_count_by_their_content(tmp_path: Path) -> None:
    text = (FOLDER / "mix.toml").read_text()
    for folder, setup in (("a", "CREATE TABLE queue ()"), ("b", "CREATE TABLE queue (id int)")):
        (tmp_path / folder / "files").mkdir(parents=True)
        (tmp_path / folder / "plan.toml").write_text(text)
        mix = (FOLDER / "files" / "queue.toml").read_text()
        (tmp_path / folder / "files" / "queue.toml").write_text(mix)
        (tmp_path / folder / "files" / "queue.sql").write_text(setup)
    one, other = (
        resolve(read_plan(tmp_path / folder / "plan.toml"), installed(18), HOST)
        for folder in ("a", "b")
    )

    shapes = [fixture_shape(plan.target, plan.workload, installed(18)) for plan in (one, other)]
    assert shapes[0].setup != shapes[1].setup
    assert not {t.ident for t in one.trials} & {t.ident for t in other.trials}
    (tmp_path / "a" / "files").rename(tmp_path / "a" / "moved")
    (tmp_path / "a" / "plan.toml").write_text(text.replace("files/", "moved/"))
    moved = resolve(read_plan(tmp_path / "a" / "plan.toml"), installed(18), HOST)
    assert [t.ident for t in moved.trials] == [t.ident for t in one.trials]


def test_steps_and_ramps_are_resolved() -> None:
    plan = resolved("tpcb.toml")

    assert plan.workload.steps == (Step(20.0, 0.5, 0.5), Step(40.0, 0.5, 1.0))
    assert plan.stage("other").workload.steps == plan.workload.steps
    assert plan.workload.sessions == 24


def test_the_data_of_pgbench_shape_the_fixture() -> None:
    plan = resolved("tpcb.toml")
    shape = fixture_shape(plan.target, plan.workload, installed(18))

    assert (shape.workload, shape.scale, shape.databases) == ("tpcb", 5, 3)
    assert shape.foreign_keys is True
    assert shape.warehouses is None
    select = resolved("tpcb.toml", "workload.kind=select-only")
    assert fixture_shape(select.target, select.workload, installed(18)) == shape


def test_partitions_and_order_shape_the_fixture_only_where_they_are_said() -> None:
    plain = resolved("smallest.toml")
    cut = resolved("smallest.toml", 'workload.partitions={by="hash",count=4}',
                   "workload.order=arrival")  # fmt: skip
    shapes = [fixture_shape(one.target, one.workload, installed(18)) for one in (plain, cut)]

    assert (shapes[0].partitions, shapes[0].order) == (None, None)
    assert shapes[1].partitions == Partitions("hash", 4)
    assert shapes[1].order == "arrival"


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "big.sql").write_bytes(b"-" * ((1 << 20) + 1))
    (tmp_path / "plan.toml").write_text(
        'name = "big"\nquestion = "?"\n[workload]\nkind = "script"\nfile = "big.sql"\n'
        '[[stage]]\nname = "one"\nwhy = "."\n'
    )

    with pytest.raises(PlanError, match=r"big.sql has 1048577 bytes, allowed are 1048576"):
        read_plan(tmp_path / "plan.toml")


@pytest.mark.parametrize("kind", sorted(TABLES))
def test_every_key_that_a_stage_may_change_can_be_told(kind: str) -> None:
    name = {"tpcc": "smallest.toml", "mix": "mix.toml", "script": "script.toml"}.get(
        kind, "tpcb.toml"
    )
    plan = resolved(name, f"workload.kind={kind}")
    keys = [key for key in keys_of(TABLES[kind]) if key not in SHAPES_DATA]

    assert set(keys) == workload_values(plan.workload).keys()


def test_a_stage_keeps_the_witnesses_of_the_scripts_that_it_drives() -> None:
    plan = resolved(
        "script.toml",
        'workload.witness={"files/write.sql" = "SELECT 1", "files/read.sql" = "SELECT 2"}',
    )

    both, write = (stage.workload.script for stage in plan.stages)
    assert both is not None
    assert write is not None
    assert both.witnesses == {"files/write.sql": "SELECT 1", "files/read.sql": "SELECT 2"}
    assert write.witnesses == {"files/write.sql": "SELECT 1"}
