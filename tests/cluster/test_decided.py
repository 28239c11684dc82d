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
kind = "tpcb"
scale = 1
connections = 8

[protocol]
stop = "decided"
rounds = 8
warmup_s = 0.3
window_s = 1.0
lowest_rung = "D2"

[[stage]]
name = "one-session"
why = "One waits for the disk at a time."
client = { connections = 1, terminals = 1 }

[[stage]]
name = "eight-sessions"
why = "Eight wait together, and for none."
client = { connections = 8, terminals = 8 }
settings = { synchronous_commit = "off" }
"""


def test_it_ends_at_the_look_that_decides(folder: Path, home_env: Path) -> None:
    path, out = folder / "decided.toml", folder / "run.sqlite"
    path.write_text(PLAN)

    told = pgdyno("run", path, "--out", out).stderr

    run = pgdyno_api.Run(out)
    assert run.is_whole
    (verdict,) = run.verdicts().rows()
    rounds = verdict["rounds"]
    assert rounds in LOOKS[8], "three, unless other work shakes the windows of a second"
    assert verdict["verdict"] == "better" or rounds == 8
    with RunFile.read(out) as file:
        states = [(trial.round, trial.state) for trial in file.trials()]
    assert {one for one, state in states if state is TrialState.FINISHED} == {*range(1, rounds + 1)}
    assert all((state is TrialState.PLANNED) == (one > rounds) for one, state in states)
    assert re.search(
        r"after round 1: eight-sessions so far ×\d+\.\d+ of one-session; nothing", told
    )
    assert re.search(
        rf"after round {rounds}: eight-sessions is {verdict['verdict']} at ×\d+\.\d+ of one-session"
        r" \(95% interval [0-9.]+ to [0-9.]+\), measured no further", told,
    )  # fmt: skip
    report = run.report("md")
    assert "Looks after 3, 4, 5, 6 and 8 rounds were fixed before the first trial" in report
    assert f"{2 * rounds} of {2 * rounds} trials finished" in report
    before = run.trials()["started_unix_ns"].tolist()
    assert pgdyno("resume", out).returncode == 0
    assert run.trials()["started_unix_ns"].tolist() == before
    assert_nothing_left(home_env)
