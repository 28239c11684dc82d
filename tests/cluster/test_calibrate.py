"""Calibration and the knee against the null server, from end to end. No speed is asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

import pgdyno
from pgdyno.analysis.curve import curve_facts
from pgdyno.api.experiments.knee import search_knee
from pgdyno.api.runs import Run
from pgdyno.drive.driver import drive
from pgdyno.drive.null import Hold, null_server
from pgdyno.model.errors import DriveError, Interrupted
from pgdyno.model.knee import KneeAsked, Search, Searched, Windows
from pgdyno.model.plan import Protocol
from pgdyno.model.progress import Event, StepBegun
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Arrivals, Pgbench, Workload
from pgdyno.report.curve import render_html, verdict
from pgdyno.stats.knee import curve as curve_of
from pgdyno.store.calibration import read_ceilings
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.cluster
ATTEMPTS = 4
SELECTS = Workload(
    kind="select-only", seed=1, connections=8, terminals=8, threads=1, pgbench=Pgbench(1)
)


@pytest.mark.wide
def test_calibrate_keeps_a_ceiling_for_each_face(tmp_path: Path, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pgdyno", "calibrate", "--connections", "3", "--rounds", "1",
         "--seconds", "0.5", "--json", "--out", str(folder / "run.sqlite")],
        env=os.environ | {"PGDYNO_HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    kept = read_ceilings(tmp_path)
    assert [each["face"] for each in printed] == ["statement", "pipeline", "procedure"]
    assert [each.face for each in kept] == ["statement", "pipeline", "procedure"]
    statement, pipeline, procedure = (each.round_trips_per_transaction for each in kept)
    assert statement > 10 > pipeline > procedure == 1
    for ceiling in kept:
        assert (ceiling.connections, ceiling.transactions_per_s.n) == (3, 1)
        assert 0 < ceiling.cpu_s_per_round_trip.centre <= ceiling.cpu_s_per_transaction.centre
        shared = ceiling.driver_cpus == ceiling.server_cpus
        assert shared == (ceiling.machine.cpus == 1)
    run = Run(folder / "run.sqlite")
    assert run.is_whole
    assert run.ceilings == kept
    assert "Face procedure: " in run.report("md")
    assert json.loads(run.report("json"))["ceilings"][0]["face"] == "statement"
    assert (folder / "run.html").is_file()


@pytest.mark.wide
@pytest.mark.same_machine
def test_a_calibration_that_was_broken_off_goes_on(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    def broken_off(event: Event) -> None:
        assert isinstance(event, StepBegun)
        steps.append(event.what)
        if len(steps) == 3:
            raise KeyboardInterrupt

    out = folder / "run.sqlite"
    with pytest.raises(Interrupted, match="what was measured is kept") as caught:
        pgdyno.calibrate(
            "select-only", connections=2, seconds=0.5, rounds=2, out=out, on_event=broken_off
        )
    assert f"pgdyno resume {out}" in str(caught.value.hint)
    assert not Run(out).is_whole
    before = Run(out).calibrated.measured
    assert len(before) == 2
    assert read_ceilings(home_env) == ()

    run = pgdyno.resume(out)

    assert run.is_whole
    assert run.calibrated.measured[:2] == before
    assert [one.face for one in run.ceilings] == ["statement", "pipeline"]
    assert read_ceilings(home_env) == run.ceilings


def test_the_null_server_speaks_to_other_clients_and_refuses_what_it_does_not_know() -> None:
    with null_server(SELECTS) as server:
        arguments = server.connection.arguments()
        with psycopg.connect(**arguments, autocommit=True) as session:
            assert session.execute("SELECT 1").fetchone() == ("1",)
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="has no answer to"):
                session.execute("SELECT * FROM pg_class")
            assert session.execute("SHOW fsync").fetchone() == ("off",)
        with psycopg.connect(**arguments) as session, session.transaction():
            session.execute("SELECT 2")
        assert server.status().connections == 2
        socket = Path(server.connection.host)
    assert not socket.exists()


def test_a_null_server_that_cannot_start_says_why() -> None:
    with (
        pytest.raises(DriveError, match="threads is 0, allowed are 1 to"),
        null_server(SELECTS, threads=0),
    ):
        pass


def test_a_held_server_serves_no_more_than_its_workers_can() -> None:
    # Two workers of 10 ms: 200 a second at most, whatever this machine does.
    protocol = Protocol(1, 0.2, 1.0, 2.0, False, 0.03, 0.95, Rung.D0)
    with null_server(SELECTS, hold=Hold(workers=2, service_ms=10)) as server:
        driven = drive(server.connection, SELECTS, protocol, None)

    assert 0 < driven.transactions <= 202
    # Eight wait for two: each for three others, then for itself.
    assert driven.kinds[0].service_ns["p50"] >= 39_000_000


@pytest.mark.wide
def test_the_knee_of_a_held_server_lies_below_its_capacity() -> None:
    search = Search(100_000_000, start=40, low=1, high=5_000, width=0.5, repeats=1, points_max=10)
    workload = Workload(
        kind="select-only", seed=1, connections=64, terminals=64, threads=1, pgbench=Pgbench(1),
        arrivals=Arrivals("closed", None, "poisson"),
    )  # fmt: skip
    for _ in range(ATTEMPTS):  # windows of a second are disturbed on a busy machine
        with null_server(workload, hold=Hold(workers=2, service_ms=10)) as server:
            asked = KneeAsked(workload, search, Windows(0.2, 1.0), "rate")
            kept: list[Searched] = []
            searched = search_knee(
                server.connection, Searched(asked, server.connection.shown(), ""), keep=kept.append
            )
            half = kept[len(kept) // 2]
            again = search_knee(server.connection, half)
        curve = curve_of(searched, "a-knee", "0.1.0")
        assert kept[-1] == searched
        assert again.points[: len(half.points)] == half.points
        assert len(again.points) > len(half.points), "it goes on where it was broken off"
        if curve.knee.state == "found":
            break

    assert curve.knee.state == "found", verdict(curve)
    assert curve.knee.low is not None
    assert curve.knee.low < 210
    page = render_html(curve_facts(curve))
    assert verdict(curve) in page
    assert "chart-curve-1" in page
