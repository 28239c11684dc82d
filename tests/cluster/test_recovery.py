"""A server is killed after its load, comes back, and its recovery is timed and its data checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pgdyno.model.run import TrialState
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
