"""The main job on real servers, through the command line: run, stop, resume, report, refuse."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from pgdyno.model.record_json import to_json
from pgdyno.model.run import RunInfo, TrialState
from pgdyno.store.run_file import RunFile
from tests import children
from tests.cluster.conftest import DEBIAN_BINDIR
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[2]

PLAN = """
name = "small"
question = "Does a test plan run from end to end?"

[target]
kind = "embedded"

[workload]
kind = "tpcc"
warehouses = 1
connections = 4

[protocol]
rounds = 2
warmup_s = 0.5
window_s = 1.5
lowest_rung = "D2"

[[stage]]
name = "initdb"
why = "What everybody gets."

[[stage]]
name = "async"
why = "The price of waiting for the disk."
settings = { synchronous_commit = "off" }
"""
TUNED = """
[[stage]]
name = "tuned"
why = "Sized to this machine."
afresh = true
profile = "tuned"
"""


def pgdyno(*args: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end and expect an exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "pgdyno", *map(str, args)],
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert done.returncode == code, f"{args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture
def plan(folder: Path, home_env: Path) -> Path:
    path = folder / "small.toml"
    path.write_text(PLAN)
    return path


def servers(home: Path) -> list[str]:
    """Command lines of PostgreSQL servers that run below a home."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if words[0].endswith("/postgres") and any(str(home) in word for word in words[1:]):
            found.append(" ".join(words))
    return found


def assert_nothing_left(home: Path) -> None:
    assert servers(home) == []
    assert not (home / "work" / "data").exists()


def test_a_plan_runs_to_a_report(plan: Path, folder: Path, home_env: Path) -> None:
    out = folder / "run.sqlite"
    plan.write_text(PLAN + TUNED)

    done = pgdyno("run", plan, "--set", "protocol.checked_rounds=1", "--out", out)

    for word in ("initdb", "tuned", "async", "NOPM", "tpmTotal", "p99", "D2", str(folder)):
        assert word in done.stdout
    with RunFile.read(out) as run:
        trials = run.trials()
        assert [trial.state for trial in trials] == [TrialState.FINISHED] * 6
        assert sorted((t.round, t.stage) for t in trials) == sorted(
            (r, s) for r in (1, 2) for s in ("initdb", "tuned", "async")
        )
        for trial in trials:
            result = trial.result
            assert result is not None
            assert result.nopm > 0
            assert result.tpm_total > result.nopm
            assert all(condition.ok for condition in result.conditions)
            assert len(result.conditions) == (12 if trial.round == 1 else 0)
            assert result.deltas["wal.bytes"] > 0
            assert result.deltas["server.cpu_s"] > 0
            assert 0 < result.client.share_of_host < 1
            effective = {setting.name: setting.value for setting in result.settings}
            expected = "off" if trial.stage == "async" else "on"
            assert effective["synchronous_commit"] == expected
            assert result.durability is not None
            lost = {(loss.what, loss.layer) for loss in result.durability.losses}
            assert (("synchronous_commit = off", "server") in lost) == (trial.stage == "async")
            for kind in result.kinds:
                for counts in (kind.window, kind.run):
                    assert counts.due == (
                        counts.succeeded + counts.rolled_back + counts.failed
                        + counts.skipped + counts.unfinished
                    )  # fmt: skip
        assert run.series(1)["driver.committed.new_order"].values.sum() > 0
    assert out.with_suffix(".html").stat().st_size > 1 << 20
    checked = "hold in 4 checks, after loading and after each trial of round 1"
    for form, word in (("md", "async"), ("md", checked), ("json", '"schema"')):
        assert word in pgdyno("report", out, "--format", form, "--out", "-").stdout
    assert_nothing_left(home_env)


@pytest.mark.same_machine
@pytest.mark.long
def test_ctrl_c_keeps_finished_trials_and_resume_goes_on(
    plan: Path, folder: Path, home_env: Path
) -> None:
    out = folder / "run.sqlite"
    process = start_and_wait_for_first_trial(plan, out)

    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=DEADLINE_S)

    assert process.returncode == 130
    assert f"pgdyno resume {out}" in " ".join(stderr.split())
    assert_nothing_left(home_env)
    with RunFile.read(out) as run:
        before = {trial.number: trial for trial in run.finished()}
    assert 1 <= len(before) < 4

    again = pgdyno("resume", out)

    with RunFile.read(out) as run:
        after = {trial.number: trial for trial in run.finished()}
        kept = run.replaced()
    assert len(after) == 4
    # The round that was broken off is measured again, with the trials that it had already.
    assert "is measured again as a whole: it was interrupted" in again.stderr
    broken = {trial.round for trial in kept}
    assert len(broken) == 1
    assert all(after[n] == trial for n, trial in before.items() if trial.round not in broken)
    assert {trial.replaced_by: trial.result for trial in kept if trial.result} == {
        n: trial.result for n, trial in before.items() if trial.round in broken
    }
    assert all(t.attempt == (2 if t.round in broken else 1) for t in after.values())
    assert_nothing_left(home_env)


@pytest.mark.same_machine
@pytest.mark.long
def test_a_run_goes_on_where_it_was_begun_or_not_at_all(
    plan: Path, folder: Path, home_env: Path
) -> None:
    out = folder / "run.sqlite"
    one_round = ("--set", "protocol.rounds=1", "--set", "protocol.window_s=2.0")
    pgdyno("run", plan, "--out", out, *one_round)
    with RunFile.append(out) as run:
        info, invalid = run.info(), replace(run.trials()[1], state=TrialState.INVALID, reason="x")
        run.put_trial(invalid)
    elsewhere = replace(info.host, kernel="5.10.0-elsewhere")
    rewrite(out, replace(info, host=elsewhere))

    refused = " ".join(pgdyno("resume", out, code=2).stderr.split())

    assert f"kernel was 5.10.0-elsewhere, is {info.host.kernel}" in refused
    rewrite(out, info)
    assert info.plan is not None
    first, second, *more = info.plan.stages
    lost = replace(second.settings[0], name="shared_preload_libraries", value="nosuch")
    broken = replace(second, settings=(lost, *second.settings[1:]))
    rewrite(out, replace(info, plan=replace(info.plan, stages=(first, broken, *more))))
    refused = " ".join(pgdyno("resume", out, code=2).stderr.split())
    assert 'could not access file "nosuch"' in refused
    with RunFile.read(out) as run:
        assert run.trials()[1] == invalid
    rewrite(out, info)
    done = pgdyno("resume", out)
    told = f"round 1 is measured again as a whole: {invalid.stage} was invalid"
    assert told in " ".join(done.stderr.split())
    with RunFile.append(out) as run:
        assert [trial.state for trial in run.trials()] == [TrialState.FINISHED] * 2
        assert len(run.replaced()) == 2
        run.put_trial(replace(run.trials()[1], state=TrialState.INVALID, reason="x"))
    # It was repeated once; the second time it is left alone, and no success is claimed.
    stays = pgdyno("resume", out, code=1)
    assert "round 1 stays as it is" in " ".join(stays.stderr.split())
    with RunFile.read(out) as run:
        assert len(run.replaced()) == 2
    assert_nothing_left(home_env)


def rewrite(out: Path, info: RunInfo) -> None:
    """Have a run file say that it was begun otherwise."""
    with closing(sqlite3.connect(out)) as db, db:
        head = to_json(info)
        db.execute("UPDATE head SET value = ? WHERE key = 'info'", (head,))


@pytest.mark.same_machine
@pytest.mark.long
def test_a_killed_run_leaves_no_server_and_is_resumed(
    plan: Path, folder: Path, home_env: Path
) -> None:
    out = folder / "run.sqlite"
    process = start_and_wait_for_first_trial(plan, out)

    process.kill()
    process.communicate(timeout=DEADLINE_S)

    deadline = time.monotonic() + DEADLINE_S
    while servers(home_env) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert servers(home_env) == []
    pgdyno("resume", out)
    with RunFile.read(out) as run:
        assert len(run.finished()) == 4
    assert_nothing_left(home_env)


def start_and_wait_for_first_trial(plan: Path, out: Path) -> subprocess.Popen[str]:
    """Start a run, and return when its first trial is in the run file."""
    process = children.started(
        [sys.executable, "-m", "pgdyno", "run", str(plan), "--out", str(out)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + DEADLINE_S
    try:
        while time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()
            if out.exists():
                with RunFile.read(out) as run:
                    if run.finished():
                        return process
            time.sleep(0.2)
    except BaseException:
        process.kill()  # or the next test finds its home taken
        raise
    process.kill()
    raise AssertionError("no trial was finished in time")


def drivers(pid: int) -> list[psutil.Process]:
    """The drivers that a run has at work: while there is one, its server must live."""
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.Error):
            if "pgdyno.drive.worker" in child.cmdline():
                found.append(child)
    return found


@pytest.mark.long
def test_a_server_that_dies_fails_its_trial_only(plan: Path, folder: Path, home_env: Path) -> None:
    out = folder / "run.sqlite"
    process = start_and_wait_for_first_trial(plan, out)
    until(lambda: drivers(process.pid), "second trial under load")
    pid = int((home_env / "work" / "data" / "postmaster.pid").read_text().split()[0])

    os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=DEADLINE_S)

    assert process.returncode == 1
    with RunFile.read(out) as run:
        bad = [t for t in run.trials() if t.state is not TrialState.FINISHED]
        assert len(bad) == 1
        assert bad[0].state in (TrialState.FAILED, TrialState.INVALID)
        assert bad[0].reason
        assert len(run.finished()) == 3
    assert out.with_suffix(".html").exists()
    assert_nothing_left(home_env)


@pytest.mark.long
def test_debian_postgresql_by_bindir(plan: Path, folder: Path, home_env: Path) -> None:
    out = folder / "run.sqlite"

    pgdyno("run", plan, "--bindir", DEBIAN_BINDIR, "--out", out,
           "--set", "protocol.rounds=1", "--set", "protocol.window_s=2.0")  # fmt: skip

    with RunFile.read(out) as run:
        assert len(run.finished()) == 2
        assert str(run.info().build.version).startswith("PostgreSQL 15.")


@pytest.mark.long
def test_over_tcp_with_a_password(plan: Path, folder: Path, home_env: Path) -> None:
    out = folder / "run.sqlite"

    pgdyno("run", plan, "--set", "target.transport=tcp", "--out", out,
           "--set", "protocol.rounds=1", "--set", "protocol.window_s=2.0",
           "--set", "workload.terminals=10")  # fmt: skip

    with RunFile.read(out) as run:
        assert len(run.finished()) == 2


def test_dry_run_touches_nothing(plan: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDYNO_HOME", str(folder / "home"))
    monkeypatch.chdir(folder)
    plan.write_text(PLAN + TUNED)

    done = pgdyno("run", plan, "--dry-run")

    for word in ("initdb", "tuned", "async", "shared_buffers", "synchronous_commit"):
        assert word in done.stdout
    assert "\\n" not in done.stdout
    assert not (folder / "runs").exists()
    assert not (folder / "home" / "fixtures").exists()
    assert not (folder / "home" / "work").exists()


def test_bad_plans_are_refused_before_anything_is_touched(
    plan: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGDYNO_HOME", str(folder / "home"))
    monkeypatch.chdir(folder)
    plan.write_text(PLAN.replace("synchronous_commit", "synchronous_comit"))

    done = pgdyno("run", plan, code=2)

    text = " ".join(done.stderr.split())
    assert "synchronous_comit" in text
    assert "small.toml" in text
    assert "hint:" in text
    assert not (folder / "runs").exists()
    assert not (folder / "home" / "fixtures").exists()


@pytest.mark.long
def test_aa_measures_the_noise(plan: Path, folder: Path, home_env: Path) -> None:
    out = folder / "run.sqlite"

    pgdyno("run", plan, "--aa", "--out", out, "--set", "protocol.window_s=2.0")

    with RunFile.read(out) as run:
        assert len(run.finished()) == 6
    facts = json.loads(pgdyno("report", out, "--format", "json", "--out", "-").stdout)
    assert facts["noise_floor"] is not None
