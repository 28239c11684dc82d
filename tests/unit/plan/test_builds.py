"""Stages that name builds: which one is meant, what it has, and whose data it can use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.model.build import Build
from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan
from pgdyno.model.record_json import from_json, to_json
from pgdyno.model.settings import ServerFacts
from pgdyno.plan import Builds, fixture_shape, read_plan, stage_builds
from pgdyno.plan.resolve.builds import find_build
from pgdyno.plan.resolve.plan import resolve
from tests.data.builds import CPU, a_build
from tests.data.servers import HOST, running

FOLDER = Path(__file__).parents[2] / "data" / "plans" / "good"
PLAN = FOLDER / "builds.toml"  # own, plain, inherits, afresh, fast
PLAIN, FAST, OTHER = a_build("aaaa1111", "plain"), a_build("aaaa2222", "fast"), a_build("bbbb1111")
THERE = (PLAIN, FAST, OTHER)


def named(*overrides: str, there: tuple[Build, ...] = THERE) -> tuple[Build | None, ...]:
    return stage_builds(read_plan(PLAN, overrides), there, CPU)


def resolved(*overrides: str, aa: bool = False, facts: ServerFacts | None = None) -> Plan:
    draft = read_plan(PLAN, overrides, aa=aa)
    found = {build.ident: facts or running(15) for build in THERE}
    builds = Builds(stage_builds(draft, THERE, CPU), found)
    return resolve(draft, running(18), HOST, builds=builds)


def test_a_build_stays_until_a_stage_begins_afresh() -> None:
    assert named() == (None, PLAIN, PLAIN, None, FAST)


def test_a_build_is_named_by_its_name_or_by_the_begin_of_its_ident() -> None:
    assert find_build("plain", THERE) is PLAIN
    assert find_build("aaaa2", THERE) is FAST
    assert find_build("bbbb", THERE) is OTHER
    assert find_build("bbbb", (*THERE, a_build("cccc", "bbbb"))).ident == "cccc", "names go first"


@pytest.mark.parametrize(
    ("word", "fact"),
    [
        ("slow", 'build "slow" is unknown; there are: plain, fast, bbbb1111'),
        ("aaa", 'build "aaa" is unknown'),
        ("aaaa", 'build "aaaa" means several: aaaa1111, aaaa2222'),
    ],
)
def test_a_build_that_is_not_there_is_refused_with_those_that_are(word: str, fact: str) -> None:
    with pytest.raises(PlanError) as caught:
        named(f"stage.plain.build={word}")
    assert f"{PLAN}: stage plain: {fact}" in caught.value.fact
    assert str(caught.value.hint).endswith("Nothing was touched.")


def test_all_builds_that_are_missing_are_told_at_once() -> None:
    with pytest.raises(PlanError, match="2 errors") as caught:
        named(there=())
    assert "there are: none" in caught.value.fact


def test_a_build_for_another_cpu_is_refused() -> None:
    elsewhere = replace(PLAIN, cpu="EPYC 9")
    with pytest.raises(PlanError, match="compiled for EPYC 9, this machine is Test CPU"):
        named(there=(elsewhere, FAST))
    assert named(there=(replace(PLAIN, cpu=CPU), FAST))[1] is not None


def test_the_plan_tells_the_builds_of_its_stages() -> None:
    plan = resolved(aa=True)

    assert [stage.build for stage in plan.stages] == [None, PLAIN, PLAIN, None, FAST, None]
    assert from_json(Plan, to_json(plan)) == plan
    assert resolved("stage.own.build=fast", aa=True).stages[-1].build == FAST


def test_another_build_is_another_trial() -> None:
    plan, other = resolved(), resolved("stage.plain.build=bbbb")
    changed = {
        a.stage for a, b in zip(plan.trials, other.trials, strict=True) if a.ident != b.ident
    }
    assert changed == {"plain", "inherits"}


def test_settings_are_those_of_the_stages_own_build() -> None:
    with pytest.raises(PlanError) as caught:
        resolved("stage.fast.settings.io_workers=5", "stage.own.settings.io_method=sync")
    for text in (
        'stage fast: io_workers = "5": PostgreSQL 15 has no such setting',
        # Taken over from a stage on the target's own 18, where it is right.
        'stage plain: io_method = "sync": PostgreSQL 15 has no such setting',
    ):
        assert text in caught.value.fact
    assert "stage inherits" not in caught.value.fact, "told once"
    assert "stage own" not in caught.value.fact


def test_arguments_of_initdb_must_suit_every_build() -> None:
    with pytest.raises(PlanError, match="initdb 15 has no such option; it came with 18"):
        resolved('target.initdb=["--no-data-checksums"]')


def changed(facts: ServerFacts, **defaults: str) -> ServerFacts:
    knobs = {name: replace(facts.knobs[name], default=value) for name, value in defaults.items()}
    return replace(facts, knobs={**facts.knobs, **knobs})


def test_builds_share_data_unless_they_store_otherwise() -> None:
    plan = resolved()
    shapes = [
        fixture_shape(plan.target, plan.workload, facts)
        for facts in (
            running(15), replace(running(15), version_num=150001), changed(running(15), jit="on"),
            running(18), changed(running(15), block_size="32768"),
            changed(running(15), wal_block_size="65536"),
        )
    ]  # fmt: skip
    assert shapes[0] == shapes[1] == shapes[2]
    assert [shape for shape in shapes[2:] if shapes.count(shape) > 1] == [shapes[0]]
    assert shapes[0].wal_block_size is None, "fixtures of before are still found"


def test_every_fixture_that_is_missing_counts() -> None:
    draft = read_plan(FOLDER / "smallest.toml")
    one, two, there = (
        resolve(draft, running(18), HOST, fixtures).estimate
        for fixtures in ((None,), (None, None), (1 << 30, None))
    )
    assert one.disk_bytes < two.disk_bytes
    assert one.other_s < two.other_s
    assert there.disk_bytes < two.disk_bytes
