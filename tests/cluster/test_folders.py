"""Stages whose clusters lie elsewhere, and stages that drive fewer databases than are loaded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgdyno.model.run import TrialState
from pgdyno.store.run_file import RunFile
from pgdyno.target.home import take_stage_folder
from tests.cluster.test_run import assert_nothing_left, pgdyno
from tests.reachable import reachable_folder

pytestmark = pytest.mark.cluster

HEAD = """
name = "places"
question = "Does the place matter?"

[protocol]
rounds = 1
warmup_s = 0.0
window_s = 2.0

[workload]
kind = "tpcb"
scale = 1
connections = 2
databases = 2

[[stage]]
name = "here"
why = "Where pgdyno keeps its clusters; both databases."

"""
THERE = """
[[stage]]
name = "there"
why = "In a folder that the stage names; one of the databases."
folder = "{}"
client = {{ databases = 1 }}
"""


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    yield from reachable_folder("elsewhere")


@pytest.mark.wide
def test_a_stage_runs_in_its_folder_and_leaves_nothing_there(
    folder: Path, elsewhere: Path, home_env: Path
) -> None:
    plan, out = folder / "places.toml", folder / "run.sqlite"
    plan.write_text(HEAD + THERE.format(elsewhere))

    pgdyno("run", plan, "--out", out)

    with RunFile.read(out) as run:
        here, there = sorted(run.trials(), key=lambda trial: trial.stage)
        assert here.state is there.state is TrialState.FINISHED
        assert here.result is not None
        assert there.result is not None
        assert len(here.result.parts) == 2
        assert len(there.result.parts) <= 1
    pgdyno("report", out, "--format", "json")
    told = json.loads(out.with_suffix(".json").read_text())
    assert [stage["folder"] for stage in told["stages"]] == [None, str(elsewhere)]
    in_use = told["storage"]
    assert (in_use["folders"], in_use["own"]) == ([str(elsewhere)], True)
    assert [disk["wait_flush"] is not None for disk in in_use["disks"]] == [True, True]
    printed = pgdyno("report", out, "--format", "md", "--out", "-").stdout
    *_, last = printed.split("\n## ")
    assert last.startswith("What follows for storage")
    assert f"`pgdyno storage {elsewhere}`" in last
    assert list(elsewhere.iterdir()) == []
    assert_nothing_left(home_env)


def test_what_is_not_ours_in_a_folder_is_left_alone(
    folder: Path, elsewhere: Path, home_env: Path
) -> None:
    foreign = elsewhere / "pgdyno-work" / "data"
    foreign.mkdir(parents=True)
    (foreign / "precious").write_text("kept")
    plan, out = folder / "places.toml", folder / "run.sqlite"
    plan.write_text(HEAD + THERE.format(elsewhere))

    done = pgdyno("run", plan, "--out", out, code=3)

    assert (foreign / "precious").read_text() == "kept"
    assert "is not marked as pgdyno's" in " ".join(done.stderr.split())
    assert not out.exists()


def test_a_folder_has_one_owner_at_a_time(folder: Path, elsewhere: Path, home_env: Path) -> None:
    plan, out = folder / "places.toml", folder / "run.sqlite"
    plan.write_text(HEAD + THERE.format(elsewhere))
    place = take_stage_folder(elsewhere, folder)
    try:
        before = sorted(elsewhere.rglob("*"))
        done = pgdyno("run", plan, "--out", out, code=3)
        assert sorted(elsewhere.rglob("*")) == before
    finally:
        place.leave()

    assert "another pgdyno works in" in " ".join(done.stderr.split())
    assert list(elsewhere.iterdir()) == []
