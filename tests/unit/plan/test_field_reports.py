"""What the plans after field reports rely on: stages left out, fewer databases, pgtune's rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.catalog import profile
from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan
from pgdyno.model.settings import Rung
from pgdyno.plan import read_plan, stage_builds
from pgdyno.plan.resolve.plan import resolve
from pgdyno.plan.resolve.profile import size_profile
from tests.data.servers import HOST, installed, running

PLANS = Path(__file__).parents[3] / "plans"


def six(*overrides: str) -> Plan:
    return resolve(read_plan(PLANS / "tpcc-six-stages.toml", overrides), running(18), HOST)


def test_a_skipped_stage_is_left_out_and_said() -> None:
    plan = six()

    assert "report-5" not in [stage.name for stage in plan.stages]
    assert (
        "stage report-5 is left out (skip); what brings it in is --set stage.report-5.skip=false"
        in plan.notes
    )
    assert plan.stage("report-4").build is None


def test_a_build_that_is_not_there_is_refused_with_the_way_out() -> None:
    draft = read_plan(PLANS / "tpcc-six-stages.toml", ["stage.report-6.skip=false"])

    with pytest.raises(PlanError, match='stage report-6: build "clang-o2" is unknown') as caught:
        stage_builds(draft, [], "CPU")

    assert "--set stage.report-6.skip=true" in str(caught.value.hint)


def test_huge_pages_that_are_not_there_are_refused_with_the_way_out() -> None:
    with pytest.raises(PlanError, match="0 are free") as caught:
        six("stage.report-4.settings.huge_pages=on")

    assert "--set stage.report-4.skip=true" in str(caught.value.hint)


def test_a_stage_drives_fewer_databases_than_are_loaded() -> None:
    plan = six()
    driven = {stage.name: stage.workload.databases for stage in plan.stages}

    assert plan.workload.databases == 4
    assert driven["report-1"] == 1
    assert {n for name, n in driven.items() if name != "report-1"} == {4}
    assert len({stage.workload.sessions for stage in plan.stages}) == 1


def test_what_the_client_gains_is_a_stage_of_its_own() -> None:
    plan = six()
    faces = [stage.workload.face for stage in plan.stages]

    assert faces == ["statement"] * 3 + ["pipeline"] + ["statement"] * 2 + ["pipeline"] * 3 + [
        "procedure"
    ]
    assert plan.stage("beyond").settings == plan.stage("report-4").settings


def test_quick_checks_the_first_round_only_and_says_so() -> None:
    plan = resolve(read_plan(PLANS / "tpcc-six-stages.toml", quick=True), running(18), HOST)

    assert plan.protocol.checked_rounds == 1
    assert plan.origins["protocol.checked_rounds"] == "quick"
    assert six().protocol.checked_rounds is None


def test_durability_stands_in_stages_of_its_own() -> None:
    rungs = {stage.name: stage.rung for stage in six().stages}

    assert rungs["initdb"] is rungs["tuned"] is rungs["report-durable"] is Rung.D0
    assert rungs["report-1"] is rungs["report-4"] is Rung.D4


def test_pgtunes_rules_on_a_machine_with_24_gib() -> None:
    settings, notes = size_profile(profile("pgtune"), {}, {}, running(18), HOST)
    values = {one.name: one.value for one in settings}

    assert values["shared_buffers"] == "6GB"
    assert values["effective_cache_size"] == "18GB"
    assert values["maintenance_work_mem"] == "1536MB"
    assert values["wal_buffers"] == "16MB"
    assert values["work_mem"] == "20427kB"  # (24 - 6) GiB / ((300 + 8) * 3)
    assert (values["min_wal_size"], values["max_wal_size"]) == ("2GB", "8GB")
    assert notes == [
        f"profile pgtune leaves out {choice}, which this installation was built without"
        for choice in ("wal_compression = lz4", "io_method = io_uring")
    ]


def test_words_that_a_server_was_built_with_are_kept() -> None:
    settings, notes = size_profile(profile("pgtune"), {}, {}, installed(18), HOST)

    assert {one.value for one in settings} >= {"lz4", "io_uring"}
    assert notes == []


def test_figures_of_then_come_with_their_source() -> None:
    plan = six()

    assert plan.earlier is not None
    assert plan.earlier.runs == 1
    assert plan.stage("report-1").earlier == {"tpm_total": 256195.32, "nopm": 102494.46}
    assert plan.stage("initdb").earlier == {}
