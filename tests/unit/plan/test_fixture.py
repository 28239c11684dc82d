"""Hashes: equal exactly when what they stand for is equal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.model.fixture_shape import FixtureShape
from pgdyno.model.record_json import from_json, to_json
from pgdyno.model.settings import DiskFormat, ServerFacts
from pgdyno.plan import fixture_ident, fixture_shape, read_plan
from pgdyno.plan.resolve.plan import resolve
from tests.data.servers import HOST, installed, running

PLAN = Path(__file__).parents[2] / "data" / "plans" / "good" / "everything.toml"


def idents(*overrides: str, major: int = 18) -> tuple[str, tuple[str, ...]]:
    plan = resolve(read_plan(PLAN, overrides), installed(major), HOST)
    shape = fixture_shape(plan.target, plan.workload, installed(major))
    return fixture_ident(shape), tuple(trial.ident for trial in plan.trials)


def test_rows_of_another_version_are_another_fixture() -> None:
    plan = resolve(read_plan(PLAN), installed(18), HOST)
    shapes = [
        fixture_shape(plan.target, plan.workload, installed(18), version)
        for version in (None, 1, 2)
    ]
    assert len({fixture_ident(shape) for shape in shapes}) == 3


def shape_of(server: ServerFacts) -> FixtureShape:
    plan = resolve(read_plan(PLAN), installed(18), HOST)
    return fixture_shape(plan.target, plan.workload, server)


def test_builds_of_one_major_with_other_catalogues_share_no_fixture() -> None:
    released = replace(installed(18), disk_format=DiskFormat(202506291, 1800))
    builds = [
        replace(released, disk_format=one)
        for one in (DiskFormat(202504091, 1800), DiskFormat(202503121, 1800),
                    DiskFormat(202504091, 1700))
    ]  # fmt: skip
    names = {fixture_ident(shape_of(server)) for server in (released, *builds)}
    assert len(names) == 4
    # A release keeps the name that its fixtures always had.
    assert shape_of(released) == shape_of(installed(18))
    assert shape_of(builds[0]).catalog_version == 202504091


@pytest.mark.parametrize("name", ["wal_block_size", "segment_size", "max_index_keys"])
def test_what_was_compiled_otherwise_is_another_fixture(name: str) -> None:
    server = running(18)
    knobs = {**server.knobs, name: replace(server.knobs[name], default="77")}
    assert getattr(shape_of(replace(server, knobs=knobs)), name) == 77


def test_the_shape_holds_only_what_shapes_the_data() -> None:
    plan = resolve(read_plan(PLAN), installed(18), HOST)
    assert fixture_shape(plan.target, plan.workload, installed(18)) == FixtureShape(
        workload="tpcc",
        schema="spec",
        warehouses=20,
        seed=7,
        foreign_keys=True,
        postgres_major=18,
        block_size=8192,
        checksums=False,
        initdb=("--wal-segsize=64", "--no-data-checksums", "--encoding=UTF8"),
    )


def test_a_fixture_keeps_the_name_that_earlier_versions_gave_it() -> None:
    assert idents()[0] == "f21dcffa5f8e574f"
    plan = resolve(read_plan(PLAN.parent / "tpcb.toml"), installed(18), HOST)
    shape = fixture_shape(plan.target, plan.workload, installed(18), 1)
    assert fixture_ident(shape) == "db4a3f3382a83585"
    assert from_json(FixtureShape, to_json(shape)) == shape


@pytest.mark.parametrize(
    ("major", "argument", "checksums"),
    [(15, "--no-locale", False), (18, "--no-locale", True), (15, "-k", True)],
)
def test_checksums_follow_version_and_arguments(major: int, argument: str, checksums: bool) -> None:
    folder = PLAN.parent
    draft = read_plan(folder / "smallest.toml", [f'target.initdb=["{argument}"]'])
    plan = resolve(draft, installed(major), HOST)

    assert fixture_shape(plan.target, plan.workload, installed(major)).checksums is checksums


@pytest.mark.parametrize(
    "override",
    ["workload.warehouses=21", "workload.seed=8", "workload.foreign_keys=false",
     'target.initdb=["--wal-segsize=64"]'],
)  # fmt: skip
def test_what_shapes_the_data_changes_fixture_and_trials(override: str) -> None:
    assert idents(override)[0] != idents()[0]
    assert not set(idents(override)[1]) & set(idents()[1])


@pytest.mark.parametrize(
    "override",
    ["workload.connections=15", "workload.terminals=201", "workload.threads=1",
     "workload.isolation=serializable", "workload.delivery=deferred", "workload.home=fixed",
     "workload.think_multiplier=2", "workload.mix.delivery=9", "protocol.window_s=120",
     "protocol.warmup_s=11", "protocol.drain_s=1", "protocol.prewarm=true",
     "target.transport=socket", "stage.base.settings.temp_buffers=5MB"],
)  # fmt: skip
def test_what_shapes_results_alone_changes_the_trials_alone(override: str) -> None:
    assert idents(override)[0] == idents()[0]
    assert not set(idents(override)[1]) & set(idents()[1]) - minimal_trials(override)


def minimal_trials(override: str) -> set[str]:
    """Trials of the stage that begins afresh do not feel what an earlier stage sets."""
    if not override.startswith("stage.base"):
        return set()
    plan = resolve(read_plan(PLAN), installed(18), HOST)
    return {trial.ident for trial in plan.trials if trial.stage == "minimal"}


@pytest.mark.parametrize(
    "override",
    ["name=other", 'question="Other?"', "notes=[]", "protocol.margin=0.1",
     "protocol.confidence=0.9", "stage.base.why=Other.", "reference={}",
     "stage.sized.settings.max_wal_size=4096MB", "stage.sized.settings.jit=no",
     'stage.sized.settings.work_mem="8MB"'],
)  # fmt: skip
def test_what_shapes_nothing_changes_nothing(override: str) -> None:
    assert idents(override) == idents()


def test_one_changed_setting_changes_the_stages_that_have_it() -> None:
    plan = resolve(read_plan(PLAN), installed(18), HOST)
    other = resolve(
        read_plan(PLAN, ["stage.statements.settings.work_mem=9MB"]), installed(18), HOST
    )
    changed = {
        one.stage
        for one, two in zip(plan.trials, other.trials, strict=True)
        if one.ident != two.ident
    }
    assert changed == {"statements"}


def test_binaries_and_the_server_itself_name_the_same_fixture() -> None:
    plan = resolve(read_plan(PLAN), installed(18), HOST)
    assert fixture_shape(plan.target, plan.workload, installed(18)) == fixture_shape(
        plan.target, plan.workload, running(18)
    )
