"""A stage whose disk acknowledges flushes it has not made: measured, and drilled."""

from __future__ import annotations

from pathlib import Path

import pytest

import pgdyno
from pgdyno.model.durability import Rung
from tests.cluster.test_drill import mounts
from tests.cluster.test_drill import plan as drilled
from tests.cluster.test_run import assert_nothing_left
from tests.cluster.test_run import pgdyno as command
from tests.cluster.test_run_workloads import HEAD, measured

pytestmark = [pytest.mark.cluster, pytest.mark.wide]

LYING = """kind = "tpcb"
scale = 1

[[stage]]
name = "honest"
why = "As the disk is."

[[stage]]
name = "lying"
why = "It acknowledges what it has not made."
lying_disk = true
"""


def test_a_disk_that_lies_is_the_stages_own_and_is_told(folder: Path, home_env: Path) -> None:
    plan = folder / "lying.toml"
    plan.write_text(HEAD.replace("[protocol]", '[protocol]\nlowest_rung = "D5"') + LYING)
    out = folder / "run.sqlite"

    command("run", plan, "--out", out)

    found = {trial.stage: result for trial, result in measured(out)}
    durability = {name: one.durability for name, one in found.items()}
    assert durability["honest"] is not None
    assert durability["lying"] is not None
    assert (durability["honest"].lowest, durability["lying"].lowest) == (Rung.D0, Rung.D5)
    assert "the library that the server had" in [one.source for one in durability["lying"].losses]
    command("report", out, "--format", "conf", "--stage", "lying", "--rung", "D5")
    text = out.with_suffix(".conf").read_text().replace("\n# ", " ")
    assert "Its disk acknowledged flushes that it had not made" in text
    assert_nothing_left(home_env)


def test_a_stage_whose_disk_lies_loses_commits_in_an_ordinary_power_cut(
    folder: Path, home_env: Path
) -> None:
    design = pgdyno.DrillDesign(("crash", "power"), cuts=4, load_s=3)
    run = pgdyno.drill(drilled({"name": "lying", "lying_disk": True}), design=design,
                       out=folder / "run.sqlite")  # fmt: skip

    crash, power = run.drill.rows
    assert (crash.rung, crash.harmed.of) == ("D5", 0), run.drill.cuts
    assert power.harmed.of > 0, run.drill.cuts
    assert not [text for text in run.drill.doubts if "rung" in text]
    assert "Stage lying has a disk that lies" in run.report("md")
    assert mounts(home_env) == []
    assert_nothing_left(home_env)
