"""A server is killed after its load, comes back, and its recovery is timed and its data checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pgdyno.model.run import TrialState
from pgdyno.model.settings import Rung
from pgdyno.store.run_file import RunFile
from tests.cluster.conftest import DEBIAN_BINDIR
from tests.cluster.test_run import assert_nothing_left, pgdyno

pytestmark = pytest.mark.cluster

PLAN = """
name = "crash"
question = "How long does recovery take?"

[workload]
kind = "tpcb"
scale = 1
connections = 2

[protocol]
rounds = 1
warmup_s = 0.0
window_s = 3.0
crash_recovery = true
lowest_rung = "D4"

[[stage]]
name = "full-pages"
why = "As it comes."

[[stage]]
name = "no-full-pages"
why = "Nothing to mend torn pages with."
settings = { full_page_writes = false }
"""

GUARDED = """
[[stage]]
name = "guarded"
why = "A standby has the pages."
guard = true

[[stage]]
name = "waits"
why = "And the commits."
synchronous = true
"""


@pytest.mark.wide
@pytest.mark.parametrize(
    ("replicas", "options"),
    [
        pytest.param(0, [], id="18"),
        pytest.param(
            1, ["--bindir", DEBIAN_BINDIR], id="15-with-a-replica", marks=pytest.mark.long
        ),
    ],
)
def test_guarded_stages_come_back_too(
    folder: Path, home_env: Path, replicas: int, options: list[str]
) -> None:
    plan, out = folder / "guarded.toml", folder / "run.sqlite"
    plan.write_text(PLAN + GUARDED)

    settings = ("stage.full-pages.skip=true", f"target.replicas={replicas}")
    pgdyno("run", plan, "--out", out, *options, *(f"--set={one}" for one in settings))

    with RunFile.read(out) as run:
        by_stage = {trial.stage: trial for trial in run.trials()}
        assert {trial.state for trial in by_stage.values()} == {TrialState.FINISHED}
        results = {name: trial.result for name, trial in by_stage.items() if trial.result}
        snapshots = {name: run.series(trial.number) for name, trial in by_stage.items()}
    assert all(result.recovery for result in results.values())
    rungs = {name: result.durability.lowest for name, result in results.items()
             if result.durability}  # fmt: skip
    assert rungs == {"no-full-pages": Rung.D4, "guarded": Rung.D0, "waits": Rung.D0}
    waiting = {
        name: max(series["replication.synchronous"].values, default=0.0)
        for name, series in snapshots.items()
    }
    assert waiting == {"no-full-pages": 0.0, "guarded": 0.0, "waits": 1.0}
    for name in ("guarded", "waits"):
        assert any("held full pages off" in note for note in results[name].notes)


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="18"),
        pytest.param(["--bindir", DEBIAN_BINDIR], id="15"),
    ],
)
def test_recovery_is_timed_and_checked(folder: Path, home_env: Path, options: list[str]) -> None:
    plan, out = folder / "crash.toml", folder / "run.sqlite"
    plan.write_text(PLAN)

    done = pgdyno("run", plan, "--out", out, *options)

    assert "crash" in done.stdout
    with RunFile.read(out) as run:
        trials = run.trials()
        assert [trial.state for trial in trials] == [TrialState.FINISHED] * 2
        for trial in trials:
            assert trial.result is not None
            assert trial.result.recovery is not None
            assert trial.result.recovery.replayed_bytes > 0
            assert trial.result.recovery.ready_s >= trial.result.recovery.redo_s > 0
            (event,) = [one for one in trial.result.events if one.kind == "recovery"]
            assert event.detail.replayed_bytes == trial.result.recovery.replayed_bytes
            assert event.end_ns is not None
            seconds = (event.end_ns - event.start_ns) / 1e9
            redo_s, ready_s = trial.result.recovery.redo_s, trial.result.recovery.ready_s
            assert redo_s <= seconds <= ready_s
            assert trial.result.conditions
            assert all(condition.ok for condition in trial.result.conditions)
            assert trial.result.phases_s["recover"] > trial.result.recovery.redo_s
    pgdyno("report", out, "--format", "json")
    told = json.loads(out.with_suffix(".json").read_text())
    assert [one["stage"] for one in told["recovery"]] == ["full-pages", "no-full-pages"]
    pgdyno("report", out, "--format", "md")
    assert "## After a crash" in out.with_suffix(".md").read_text()
    assert_nothing_left(home_env)
