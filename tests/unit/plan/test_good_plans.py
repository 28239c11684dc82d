"""Plans that must be accepted, on every server that they are meant for."""

from __future__ import annotations

import io
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan
from pgdyno.model.record_json import from_json, to_json
from pgdyno.model.settings import OriginKind, Rung
from pgdyno.plan import read_plan, render_dry_run
from pgdyno.plan.resolve.plan import resolve
from tests.data.builds import builds_of
from tests.data.servers import GIB, HOST, installed, running

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "tests" / "data" / "plans" / "good"
GOOD = sorted(FOLDER.glob("*.toml"))
FIELD_REPORTS = (
    "tpcc-six-stages", "benchmarksql-9.5", "full-page-writes", "storage-comparison",
)  # fmt: skip
FROM_MAJOR = {  # of plans whose subject came with a version
    "parallel-io": 18,
    "parallel-maintenance": 16,
}
WITH_CODECS, CODECS = 15, ("lz4", "zstd")  # of the servers here, which was built with them
SHIPPED = sorted((ROOT / "plans").glob("*.toml"))


def resolved(name: str, *overrides: str, quick: bool = False, aa: bool = False) -> Plan:
    return resolve(read_plan(FOLDER / name, overrides, quick, aa), installed(18), HOST)


@pytest.mark.parametrize("path", [*GOOD, *SHIPPED], ids=lambda path: path.stem)
def test_a_good_plan_is_accepted_and_survives_the_run_file(path: Path) -> None:
    draft = read_plan(path)
    plan = resolve(draft, running(18), HOST, builds=builds_of(draft, running(15)))

    assert len(plan.trials) == plan.protocol.rounds * len(plan.stages)
    assert len({trial.ident for trial in plan.trials}) == len(plan.trials)
    assert [trial.number for trial in plan.trials] == list(range(1, len(plan.trials) + 1))
    assert from_json(Plan, to_json(plan)) == plan


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
@pytest.mark.parametrize("major", [15, 18])
@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("skip", [False, True])
def test_shipped_plans_run_everywhere(path: Path, major: int, quick: bool, skip: bool) -> None:
    names = [
        stage["name"] for stage in tomllib.loads(path.read_text())["stage"]
        if major == WITH_CODECS or stage.get("settings", {}).get("wal_compression") not in CODECS
    ]  # fmt: skip
    everything = [] if skip else [f"stage.{name}.skip=false" for name in names]
    if "quick" not in tomllib.loads(path.read_text()) and quick:
        pytest.fail(f"{path.name} has no [quick]")
    draft = read_plan(path, everything, quick=quick)
    if major < FROM_MAJOR.get(path.stem, 0):
        with pytest.raises(PlanError, match=f"came with PostgreSQL {FROM_MAJOR[path.stem]}"):
            resolve(draft, installed(major), HOST)
        return
    from_binaries, from_server = (
        resolve(draft, server, HOST, builds=builds_of(draft, server))
        for server in (installed(major), running(major))
    )

    assert without_words(from_binaries) == without_words(from_server)
    assert skip or [stage.name for stage in from_server.stages] == names
    for plan in (from_binaries, from_server):
        printed = io.StringIO()
        console = Console(file=printed, width=100)
        server = installed(major) if plan is from_binaries else running(major)
        console.print(render_dry_run(plan, server, HOST, builds=builds_of(draft, server)))
        assert printed.getvalue().endswith("Nothing was touched.\n")


def without_words(plan: Plan) -> list[dict[str, str]]:
    """The settings of each stage but those whose words depend on what the server was built with."""
    built = {"wal_compression", "io_method"}
    return [
        {one.name: one.value for one in stage.settings if one.name not in built}
        for stage in plan.stages
    ]


@pytest.mark.parametrize("name", FIELD_REPORTS)
def test_plans_after_field_reports_are_quick_on_two_cores(name: str) -> None:
    plan = resolve(read_plan(ROOT / "plans" / f"{name}.toml", quick=True), running(18), HOST)

    assert plan.estimate.measuring_s + plan.estimate.other_s <= 15 * 60
    assert plan.earlier is not None
    assert sum(bool(stage.earlier) for stage in plan.stages) > 1


@pytest.mark.parametrize(
    ("name", "rungs", "round_s", "most_s"),
    [
        ("demo", {"initdb": Rung.D0, "async-commit": Rung.D2}, 75, 600),
        ("tuning", {"initdb": Rung.D0, "tuned": Rung.D0, "async-commit": Rung.D2}, 110, 900),
    ],
)
def test_a_first_plan_may_end_after_three_rounds(
    name: str, rungs: dict[str, Rung], round_s: float, most_s: float
) -> None:
    path = ROOT / "plans" / f"{name}.toml"
    plan = resolve(read_plan(path), installed(18), HOST)
    quick = resolve(read_plan(path, quick=True), installed(18), HOST)

    assert {stage.name: stage.rung for stage in plan.stages} == rungs
    assert plan.stages[0].settings == ()
    assert plan.protocol.looks[0] == 3
    assert plan.protocol.checkpoints == "cycles", "a window without a checkpoint is a finding"
    assert plan.estimate.measuring_s <= most_s
    assert plan.estimate.measuring_s / plan.protocol.rounds <= round_s
    assert quick.estimate.measuring_s < plan.estimate.measuring_s / 4


def test_defaults_of_the_smallest_plan() -> None:
    plan = resolved("smallest.toml")

    assert plan.target.kind == "embedded"
    assert plan.workload.tpcc is not None
    assert (plan.workload.tpcc.warehouses, plan.workload.connections) == (10, 8)
    assert (plan.workload.terminals, plan.workload.threads) == (8, None)
    assert list(plan.workload.tpcc.mix.values()) == [45.0, 43.0, 4.0, 4.0, 4.0]
    assert plan.protocol.lowest_rung is Rung.D0
    assert set(plan.origins.values()) == {"default"}
    assert "one stage alone is compared with nothing; --aa would measure the noise" in plan.notes


def test_every_key_reaches_the_plan() -> None:
    plan = resolved("everything.toml")

    assert plan.target.initdb == ("--wal-segsize=64", "--no-data-checksums", "--encoding=UTF8")
    assert (plan.target.transport, plan.target.bindir) == ("tcp", "/usr/lib/postgresql/18/bin")
    assert plan.workload.tpcc is not None
    assert (plan.workload.terminals, plan.workload.seed) == (200, 7)
    assert plan.workload.tpcc.home == "random"
    assert plan.workload.tpcc.mix["order_status"] == 8.0
    assert (plan.protocol.window_s, plan.protocol.drain_s) == (120.5, 0.0)
    assert plan.reference["stages"] == {"base": {"tpm_total": 256195}}
    assert plan.origins["workload.seed"] == plan.source


def test_stages_add_up_until_one_begins_afresh() -> None:
    plan = resolved("everything.toml")
    names = {stage.name: {one.name: one for one in stage.settings} for stage in plan.stages}

    assert names["sized"]["max_wal_size"].value == "4GB"
    assert names["sized"]["max_wal_size"].origin.kind is OriginKind.PLAN
    assert names["sized"]["min_wal_size"].value == "1GB"  # a quarter of the plan's own
    assert names["sized"]["shared_buffers"].origin.kind is OriginKind.PROFILE
    assert names["sized"]["jit"].value == "off"
    assert names["sized"].items() <= names["statements"].items()
    assert names["statements"]["pg_stat_statements.track"].value == "all"
    assert set(names["minimal"]) == {"wal_level", "max_wal_senders", "synchronous_commit"}
    for stage in plan.stages:
        assert [one.name for one in stage.settings] == sorted(one.name for one in stage.settings)


def test_rungs_and_what_put_a_stage_there() -> None:
    plan = resolved("everything.toml")

    assert plan.stage("minimal").rung is Rung.D3
    assert plan.stage("minimal").rung_reason == "wal_level = minimal"
    assert plan.stage("sized").rung is Rung.D0


def test_notes_tell_what_a_reader_must_know() -> None:
    plan = resolved("everything.toml")

    assert "The mix is that of the field reports." in plan.notes
    assert (
        "stage statements: track_activities = off blinds the sampling of sessions and wait events"
        in plan.notes
    )
    assert (
        "stage minimal: synchronous_commit = local is the same as on while there is no standby"
        in plan.notes
    )


def test_quick_changes_only_what_it_names() -> None:
    plan, quick = resolved("everything.toml"), resolved("everything.toml", quick=True)

    assert (quick.protocol.window_s, quick.workload.data.scale) == (5.0, 1)
    assert quick.protocol.warmup_s == plan.protocol.warmup_s
    assert quick.origins["protocol.window_s"] == "quick"
    assert quick.origins["protocol.warmup_s"] == quick.source
    assert quick.quick
    assert not plan.quick


def test_set_wins_over_quick_and_names_itself() -> None:
    overrides = (
        "protocol.window_s=7",
        "stage.sized.settings.max_wal_size=8GB",
        'stage.statements.settings."pg_stat_statements.track"="top"',
        "workload.mix={new_order=1}",
    )
    plan = resolved("everything.toml", *overrides, quick=True)
    sized = {one.name: one for one in plan.stage("sized").settings}
    statements = {one.name: one for one in plan.stage("statements").settings}

    assert plan.protocol.window_s == 7.0
    assert plan.origins["protocol.window_s"] == "--set protocol.window_s=7"
    assert sized["max_wal_size"].value == "8GB"
    assert sized["max_wal_size"].origin.kind is OriginKind.OVERRIDE
    assert sized["max_wal_size"].origin.detail == "--set stage.sized.settings.max_wal_size"
    assert sized["min_wal_size"].value == "2GB"
    assert statements["pg_stat_statements.track"].value == "top"
    assert statements["pg_stat_statements.track"].origin.kind is OriginKind.OVERRIDE
    assert plan.workload.tpcc is not None
    assert plan.workload.tpcc.mix["new_order"] == 1.0
    assert plan.overrides == overrides


def test_the_twin_measures_the_first_stage_again_in_every_round() -> None:
    plan = resolved("noise.toml", aa=True)
    first, twin = plan.stages

    assert (twin.name, twin.twin_of) == ("initdb-twin", "initdb")
    assert (twin.settings, twin.rung) == (first.settings, first.rung)
    for number in range(1, plan.protocol.rounds + 1):
        names = {trial.stage for trial in plan.trials if trial.round == number}
        assert names == {"initdb", "initdb-twin"}


def test_time_for_measuring_is_exact() -> None:
    plan = resolved("everything.toml")
    assert plan.estimate.measuring_s == 5 * 4 * (10 + 120.5)


def test_a_loaded_fixture_saves_time_and_disk() -> None:
    draft = read_plan(FOLDER / "smallest.toml")
    fresh = resolve(draft, installed(18), HOST).estimate
    loaded = resolve(draft, installed(18), HOST, fixtures=(GIB,)).estimate

    assert loaded.other_s < fresh.other_s
    assert loaded.disk_bytes <= fresh.disk_bytes - 0.9 * GIB


def test_a_running_server_is_told_by_itself() -> None:
    plan = resolve(read_plan(FOLDER / "running.toml"), running(18), HOST)

    assert plan.stage("async").rung is Rung.D2
    assert any("memory of a running server is not checked" in one for one in plan.notes)


def test_the_state_of_a_running_server_counts_for_its_rung() -> None:
    server = running(18)
    unsafe = replace(server.knobs["fsync"], default="off")
    careless = replace(server, knobs={**server.knobs, "fsync": unsafe})
    draft = read_plan(FOLDER / "running.toml", ["protocol.lowest_rung=D6"])

    stages = resolve(draft, careless, HOST).stages

    assert [stage.rung for stage in stages] == [Rung.D6, Rung.D6]
    assert stages[0].rung_reason == "fsync = off"


def test_a_dry_run_cuts_no_path_on_a_narrow_terminal() -> None:
    plan = replace(resolved("smallest.toml"), source="/srv/" + "plans-of-somebody/" * 6 + "my.toml")
    stream = io.StringIO()
    Console(file=stream, width=60).print(render_dry_run(plan, installed(18), HOST))

    head, _, _ = stream.getvalue().partition("target")
    assert plan.source in "".join(head.split())
