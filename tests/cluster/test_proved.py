"""Stages are proved on real servers: what is planted is found, and nothing is left behind."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

import pgdyno
from pgdyno.api.experiments import prove as proving
from pgdyno.intervention.probes import Bench
from pgdyno.intervention.shim import Slower
from pgdyno.model.errors import Interrupted, PlanError
from pgdyno.model.progress import Event, StepBegun
from pgdyno.model.proof import Design
from tests.children import started
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.wide, pytest.mark.xdist_group("proved")]
SHORT = Design(block_s=2, dropped_s=1, pairs=1, sittings=2)
FLUSHED = ("nothing", "client", "round-trip", "wal-flush", "commit-free")


def plan(stage: dict[str, object]) -> dict[str, object]:
    return {
        "name": "proved",
        "question": "What is the limit?",
        "workload": {"kind": "tpcb", "scale": 1, "connections": 1},
        "protocol": {"rounds": 1, "warmup_s": 1, "window_s": 2, "lowest_rung": "D2"},
        "stage": [{"name": "base", "why": "Measured.", **stage}],
    }


@pytest.fixture(scope="module")
def run_file(session_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a plan that was carried out once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGDYNO_HOME", str(session_home))
        out = tmp_path_factory.mktemp("run") / "run.sqlite"
        return pgdyno.run(pgdyno.load_plan(plan({})), out=out).path


def test_a_flush_that_is_planted_slow_is_what_throughput_follows(
    run_file: Path, home_env: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes 40 ms with the probe, which no neighbour on a busy machine comes near."""

    def planted(self: Bench, probe: str) -> object:
        found = real(self, probe)
        return Planted(found.shim, found.kind) if isinstance(found, Slower) else found

    real = Bench.intervention
    monkeypatch.setattr(Bench, "intervention", planted)
    run = pgdyno.prove(
        run_file, probes=FLUSHED, design=SHORT, out=tmp_path / "proof.sqlite"
    )  # fmt: skip

    assert run.is_whole
    facts = run.proof
    assert [one.probe.name for one in facts.probes] == list(FLUSHED)
    by_name = {one.probe.name: one for one in facts.probes}
    flush = by_name["wal-flush"]
    assert flush.effect is not None
    assert flush.effect.pairs == 2
    assert flush.effect.ratio < 0.9
    assert flush.effect.factor is not None
    assert flush.effect.factor > 1.1
    assert flush.effect.units_per_s is not None
    assert flush.effect.units_per_s > 0
    client = by_name["client"].effect
    assert client is not None
    assert client.factor is not None
    assert client.factor > 1
    assert by_name["round-trip"].elasticity is None
    assert "Proof by intervention" in run.report("html")
    assert json.loads(run.report("json"))["stage"] == "base"
    assert "What limits stage base?" in run.report("md")
    assert strays(home_env) == []


class Planted(Slower):
    """So slow that nobody overlooks it."""

    def _delay_ns(self) -> int:
        return 40_000_000


@pytest.mark.long
@pytest.mark.same_machine
def test_a_proof_that_is_stopped_goes_on_where_it_was(
    run_file: Path, home_env: Path, tmp_path: Path
) -> None:
    def stop(event: Event) -> None:
        if isinstance(event, StepBegun) and event.what.startswith("sitting 2 of 2: driving"):
            raise KeyboardInterrupt

    out = tmp_path / "proof.sqlite"
    with pytest.raises(Interrupted, match="what was measured is kept"):
        pgdyno.prove(run_file, probes=FLUSHED, design=SHORT, out=out, on_event=stop)
    assert strays(home_env) == []
    first = pgdyno.Run(out)
    assert not first.is_whole
    assert len(first.proved.sittings) == 1
    assert "Only 1 of 2 sittings took place." in first.proof.doubts

    run = pgdyno.resume(out)

    assert run.is_whole
    assert run.proved.sittings[0] == first.proved.sittings[0]


@pytest.mark.long
def test_a_proof_that_is_killed_leaves_nobody_and_the_next_one_works(
    run_file: Path, home_env: Path, tmp_path: Path
) -> None:
    command = [
        sys.executable, "-m", "pgdyno", "prove", str(run_file), "--block", "2", "--pairs", "1",
        "--sittings", "2", "--out", str(tmp_path / "killed.sqlite"),
    ]  # fmt: skip
    killed = started(command, stderr=subprocess.PIPE, text=True)
    assert killed.stderr is not None
    until(lambda: "driving" in killed.stderr.readline(), "the load runs")
    children = psutil.Process(killed.pid).children(recursive=True)
    assert children

    killed.send_signal(signal.SIGKILL)

    until(lambda: not any(one.is_running() for one in children), "all processes end")
    run = pgdyno.prove(
        run_file, probes=FLUSHED, design=replace(SHORT, sittings=2), out=tmp_path / "next.sqlite"
    )  # fmt: skip
    assert run.is_whole
    assert strays(home_env) == []


def strays(home: Path) -> list[str]:
    """What a proof could leave: its library, its thieves, a copy of the data."""
    folders = [one.name for one in Path("/tmp").glob("pgdyno-shim-*") if not held_by_others(one)]
    thieves = [
        one.info["pid"]
        for one in psutil.process_iter(["pid", "cmdline"])
        if "pgdyno.intervention.thief" in (one.info["cmdline"] or [])
        and os.getpid() in [parent.pid for parent in one.parents()]
    ]
    copies = [one.name for one in (home / "work").glob("data")]
    return [*folders, *map(str, thieves), *copies]


def held_by_others(folder: Path) -> bool:
    """Whether another process works in a folder: a proof of a test beside this one."""
    mine = {os.path.realpath(one) for one in Path("/proc/self/fd").glob("*")}
    if str(folder) in mine:
        return False
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:  # it ended meanwhile
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def test_what_cannot_be_proved_is_refused_before_anything_runs(
    run_file: Path, home_env: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "proof.sqlite"
    for asked, words in (
        ({"stage": "other"}, "no stage is called 'other', there are base"),
        ({"probes": ["gravity"]}, "no probe is called 'gravity', known are nothing, cpu"),
        ({"probes": ["nothing"]}, "no probe can be made on stage base"),
    ):
        with pytest.raises(PlanError, match=words):
            pgdyno.prove(run_file, **asked, out=out)
    monkeypatch.setattr(proving, "_refusals", lambda names: dict.fromkeys(names, "No way."))
    with pytest.raises(PlanError, match=r"on stage base, e\.g\. nothing: No way"):
        pgdyno.prove(run_file, out=out)
    assert list(tmp_path.iterdir()) == []
