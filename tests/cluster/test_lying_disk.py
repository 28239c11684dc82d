"""A stage whose disk acknowledges flushes it has not made: measured, and drilled."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import pgdyno
from pgdyno.disk.record import make_disk, record_span
from pgdyno.disk.recording import recording
from pgdyno.folders import Folder
from pgdyno.intervention.shim import DATA, preloadable
from pgdyno.model.durability import Rung
from pgdyno.shell import postgres_user, run
from tests.cluster.test_drill import mounts
from tests.cluster.test_drill import plan as drilled
from tests.cluster.test_run import assert_nothing_left
from tests.cluster.test_run import pgdyno as command
from tests.cluster.test_run_workloads import HEAD, measured

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.wide,
    pytest.mark.xdist_group("drill"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount"),
]

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


_FLUSHED = """
import os, sys
at = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
os.fsync(os.open(os.path.dirname(sys.argv[1]), os.O_RDONLY))
os.write(at, b"a" * 65536)
os.fdatasync(at)
os.fsync(at)
"""


@pytest.mark.parametrize("lies", [False, True])
def test_its_flushes_ask_nothing_of_the_disk(*, lies: bool, folder: Path) -> None:
    """What was flushed before the power went is there; where the disk lies, chance has it."""
    (folder / "data").mkdir()
    with Folder.hold(folder) as held, preloadable(postgres_user()) as shim:
        if lies:
            shim.lie()
        with recording(held, "data", "record", 64 << 20):
            (folder / "data" / "first").touch()
            run([sys.executable, "-c", _FLUSHED, folder / "data" / "a"], env=shim.environment)
        made = make_disk(held, "record", "disk", record_span(held, "record").until_ns, 1)
        assert shim.dose(DATA).units == 3

    assert (made.names_open + made.sectors_open > 0) == lies, made


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
