"""The library on real servers: what the command line does, without it, and as clean afterwards."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

import pgdyno
from pgdyno import api
from pgdyno.api.planning import FROM_PYTHON
from pgdyno.model.errors import Interrupted, PlanError
from pgdyno.model.progress import DriveProgress, Event, PhaseBegun, RunBegun, StepBegun, TrialEnded
from tests.cluster.test_run import assert_nothing_left

pytestmark = pytest.mark.cluster
PLAN: dict[str, Any] = {
    "name": "from-python",
    "question": "Does a plan that no file holds run?",
    "workload": {"kind": "tpcb", "scale": 1, "connections": 2},
    "protocol": {"rounds": 2, "warmup_s": 0.5, "window_s": 1.0, "lowest_rung": "D2"},
    "stage": [
        {"name": "initdb", "why": "What everybody gets."},
        {"name": "async", "why": "The price.", "settings": {"synchronous_commit": False}},
    ],
}


@pytest.mark.wide
@pytest.mark.same_machine
def test_a_plan_from_python_is_run_opened_and_drawn(folder: Path, home_env: Path) -> None:
    plan = pgdyno.load_plan(PLAN, set={"protocol.rounds": 1}).replace({"protocol.rounds": 2})
    assert [stage.name for stage in plan.stages] == ["initdb", "async"]
    assert len(plan.trials) == 4
    assert "Nothing was touched." in str(plan.preview())
    events: list[Event] = []

    run = pgdyno.run(plan, out=folder / "run.sqlite", on_event=events.append)

    assert [type(one) for one in events[:2]] == [StepBegun, RunBegun], "servers are tried first"
    assert [one.trial.number for one in events if isinstance(one, TrialEnded)] == [1, 2, 3, 4]
    assert run.is_whole
    assert run.info.command.endswith("from Python")
    trials = run.trials()
    assert len(trials) == 4
    assert (trials["throughput"] > 0).all()
    assert set(trials["headline"]) == {"tps"}
    assert {"trial": 1, "kind": "tpcb"}.items() <= next(run.kinds().rows()).items()
    settings = [row for row in run.settings().rows() if row["name"] == "synchronous_commit"]
    assert {row["stage"]: row["value"] for row in settings}["async"] == "off"
    assert len(run.series(1, "wal.bytes")) >= 2
    assert next(run.verdicts().rows())["stage"] == "async"
    compared = run.compare("initdb", "async")
    assert compared.ratio == pytest.approx(1 / next(run.verdicts().rows())["ratio"])
    assert "var(--" not in run.figure("rounds").figure.to_json()
    assert "plotly" in run.figure("rounds")._repr_html_().lower()
    assert "async" in run.report("md")
    assert (folder / "run.html").is_file()
    again = pgdyno.resume(run.path)
    assert again.trials()["started_unix_ns"].tolist() == trials["started_unix_ns"].tolist()
    assert_nothing_left(home_env)


@pytest.mark.long
@pytest.mark.same_machine
def test_ctrl_c_in_a_notebook_leaves_a_clean_state(folder: Path, home_env: Path) -> None:
    def press(event: Event) -> None:
        if isinstance(event, PhaseBegun) and event.trial is not None and event.trial.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="stopped after 1 of 4 trials"):
        pgdyno.run(pgdyno.load_plan(PLAN), out=folder / "run.sqlite", on_event=press)
    assert_nothing_left(home_env)
    assert not pgdyno.Run(folder / "run.sqlite").is_whole

    assert pgdyno.resume(folder / "run.sqlite").is_whole
    assert_nothing_left(home_env)


STAGE = {"name": "patient", "settings": {"commit_delay": 10}}
WORKLOAD = {"kind": "tpcb", "scale": 1, "connections": 2}


@pytest.mark.wide
@pytest.mark.same_machine
def test_a_stage_is_measured_without_a_plan(folder: Path, home_env: Path) -> None:
    def press(event: Event) -> None:
        if isinstance(event, PhaseBegun) and event.trial is not None and event.trial.number == 2:
            raise KeyboardInterrupt

    protocol = {"rounds": 2, "warmup_s": 0.2, "window_s": 1.0}
    out = folder / "stage.sqlite"
    with pytest.raises(Interrupted, match="stopped after 1 of 2 trials"):
        pgdyno.measure(STAGE, protocol, WORKLOAD, out=out, on_event=press)
    assert not pgdyno.Run(out).is_whole

    run = pgdyno.resume(out)

    assert run.info.experiment == "stage"
    assert run.is_whole
    trials = run.trials()
    assert trials["stage"].tolist() == ["patient", "patient"]
    assert (trials["tps"] > 0).all()
    assert {"name": "commit_delay", "value": "10"}.items() <= next(
        row for row in run.settings().rows() if row["name"] == "commit_delay"
    ).items()
    assert "`patient` reaches" in run.report("md")
    assert not out.with_suffix(".html").exists(), "hundreds of calls need no page each"
    assert_nothing_left(home_env)
    again = pgdyno.measure(STAGE, protocol | {"rounds": 1}, WORKLOAD, out=folder / "2.sqlite")
    assert again.facts.fixture["loaded"] == "by an earlier run"


def test_a_stage_alone_is_refused_as_one_of_a_plan_is() -> None:
    with pytest.raises(PlanError, match=r"stage.*setings"):
        pgdyno.measure({"setings": {}}, {}, WORKLOAD)


def test_wrong_plans_name_where_they_are_wrong() -> None:
    wrong = PLAN | {"protocol": {"rounds": "many"}, "nonsense": 1}

    with pytest.raises(PlanError) as caught:
        pgdyno.load_plan(wrong)

    assert caught.value.fact.startswith(FROM_PYTHON)
    assert "protocol.rounds" in caught.value.fact
    assert "nonsense" in caught.value.fact


def test_servers_and_databases_are_contexts() -> None:
    with pgdyno.Server({"work_mem": "5MB"}) as server:
        with server.connect() as session:
            assert session.execute("SHOW work_mem").fetchone() == ("5MB",)
        server.restart({"work_mem": "6MB", "fsync": False})
        with server.connect() as session:
            assert session.execute("SHOW work_mem").fetchone() == ("6MB",)
            assert session.execute("SHOW fsync").fetchone() == ("off",)
        with pgdyno.loaded(pgdyno.Data("tpcb", scale=1), server) as database:
            benched = pgdyno.bench(pgdyno.Asked("tpcb"), database, seconds=1, warmup=0)
            assert benched.driven.tps > 0
            assert benched.kinds()["succeeded"][0] > 0
        with server.connect() as session:
            left = session.execute("SELECT datname FROM pg_database WHERE datname ~ 'pgdyno'")
            assert left.fetchall() == []
    with pytest.raises(pgdyno.PgdynoError, match="the server is not running"):
        server.connect()


@pytest.mark.wide
def test_a_load_is_checked_and_exported_files_are_loaded(folder: Path) -> None:
    with pgdyno.Server() as server:
        needs = api.estimate_load(pgdyno.Data(scale=1), server.connection)
        loaded = pgdyno.load(pgdyno.Data(scale=1), server.connection)
        checked = pgdyno.check(server.conninfo)
    assert needs.estimate.rows == loaded.report.rows
    assert checked.hold
    assert len(checked.table()) == 12
    exported = api.export(folder / "files", warehouses=1, schema="spec")
    assert {file.name for file in exported.files} == {
        path.name for path in (folder / "files").iterdir()
    }


def test_ctrl_c_in_a_window_stops_the_driver(home_env: Path) -> None:
    pids: list[int] = []

    def press(_: DriveProgress) -> None:
        pids.extend(one.pid for one in psutil.Process().children(recursive=True)
                    if "pgdyno.drive.worker" in one.cmdline())  # fmt: skip
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with (
            pgdyno.loaded(pgdyno.Data("tpcb", scale=1)) as database,
            pytest.raises(Interrupted, match="stopped") as caught,
        ):
            pgdyno.bench(pgdyno.Asked("tpcb", connections=2), database, seconds=60, on_event=press)
    finally:
        signal.signal(signal.SIGINT, before)
    assert "nothing is still running" in str(caught.value.hint)
    assert pids, "the driver ran when Ctrl-C was pressed"
    assert not any(psutil.pid_exists(pid) for pid in pids)
