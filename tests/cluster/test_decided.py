"""A plan that stops when it is decided, on a real server, from the first trial to the report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pgdyno as pgdyno_api
from pgdyno.model.looks import LOOKS
from pgdyno.model.run import TrialState
from pgdyno.store.run_file import RunFile
from tests.cluster.test_run import assert_nothing_left, pgdyno

pytestmark = pytest.mark.cluster

PLAN = """
name = "decided"
question = "Does it stop when everything is said?"

[workload]
kind = "script"
file = "nap.sql"

[protocol]
stop = "decided"
rounds = 8
warmup_s = 0.3
window_s = 1.0

[[stage]]
name = "one-session"
why = "One sleeps at a time."
client = { connections = 1, terminals = 1 }

[[stage]]
name = "eight-sessions"
why = "Eight sleep side by side."
client = { connections = 8, terminals = 8 }
"""
# Sleeping takes its time on any disk and beside any other work: eight sessions sleep 8 times as
# often as one, and a look decides that unless single windows are off by half. So short that
# no three windows count the same: rounds without a spread allow no verdict.
NAP = "\\set ms random(1, 9)\nSELECT pg_sleep(:ms / 1000.0);\n"


@pytest.mark.wide
@pytest.mark.same_machine
def test_it_ends_at_the_look_that_decides(folder: Path, home_env: Path) -> None:
    path, out = folder / "decided.toml", folder / "run.sqlite"
    path.write_text(PLAN)
    (folder / "nap.sql").write_text(NAP)

    told = pgdyno("run", path, "--out", out).stderr

    run = pgdyno_api.Run(out)
    assert run.is_whole
    (verdict,) = run.verdicts().rows()
    rounds = verdict["rounds"]
    assert rounds in LOOKS[8]
    assert verdict["verdict"] == "better"
    assert 4 < verdict["ratio"] < 16
    with RunFile.read(out) as file:
        states = [(trial.round, trial.state) for trial in file.trials()]
    assert {one for one, state in states if state is TrialState.FINISHED} == {*range(1, rounds + 1)}
    assert all((state is TrialState.PLANNED) == (one > rounds) for one, state in states)
    assert re.search(r"in round 1: eight-sessions so far ×\d+\.\d+ of one-session; nothing", told)
    assert re.search(
        rf"after round {rounds}: eight-sessions is better at ×\d+\.\d+ of one-session"
        r" \(95% interval [0-9.]+ to [0-9.]+\), measured no further", told,
    )  # fmt: skip
    report = run.report("md")
    assert "Looks after 3, 4, 5, 6 and 8 rounds were fixed before the first trial" in report
    assert f"{2 * rounds} of {2 * rounds} trials finished" in report
    before = run.trials()["started_unix_ns"].tolist()
    assert pgdyno("resume", out).returncode == 0
    assert run.trials()["started_unix_ns"].tolist() == before
    assert_nothing_left(home_env)
