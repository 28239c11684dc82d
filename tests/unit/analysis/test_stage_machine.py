"""What is said of stages that had settings of the machine: as of any setting, and put back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.analysis.compared_stages import aspects
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.judged import plan_in
from pgdyno.analysis.recommended import recommended
from pgdyno.analysis.run import analyse
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.store import RunFile
from tests.data.miniature import CHARACTERS, write_miniature

ORIGIN = Origin(OriginKind.PLAN, "plan.toml: stage tuned")


def asking(name: str, value: str, now: str) -> tuple[Setting, ...]:
    return (Setting(name, value, ORIGIN, default=now),)


@pytest.fixture
def run(tmp_path: Path, request: pytest.FixtureRequest) -> RunFile:
    first, tuned, *others = CHARACTERS
    stage = replace(tuned.stage, host=asking(*request.param), settings=first.stage.settings)
    path = write_miniature(
        tmp_path / "run.sqlite", invalid=(),
        characters=(first, replace(tuned, stage=stage), *others),
    )  # fmt: skip
    return RunFile.read(path)


def of(run: RunFile) -> Facts:
    with run:
        return analyse(run)


@pytest.mark.parametrize("run", [("vm.swappiness", "1", "60")], indirect=True)
def test_it_is_a_change_like_others_and_a_part_of_what_is_recommended(run: RunFile) -> None:
    with run:
        facts = analyse(run)
        stage = facts.stages[1]
        (line,) = (one for one in stage.changes if one.name == "vm.swappiness")
        assert (line.before, line.after, line.effective) == ("60", "1", "1")
        assert (line.origin, line.origin_detail) == ("plan", ORIGIN.detail)
        (back,) = (one for one in facts.stages[2].changes if one.name == "vm.swappiness")
        assert (back.before, back.after, back.effective) == ("1", None, "60")
        found = recommended(run, facts, stage=stage.name)
        assert found.sysctl["vm.swappiness"] == "1"
        assert "the machine had vm.swappiness = 1, put back" in " ".join(found.sentences)
        plan = plan_in(run.info())
        told = aspects(run.info(), plan, plan.stages[1], run.trials())
        assert told["settings"]["vm.swappiness"] == "1"


@pytest.mark.parametrize(
    ("run", "judged"),
    [
        (("vm.dirty_background_bytes", "67108864", "0"), False),
        (("vm.dirty_background_bytes", "0", "0"), True),
        (("vm.swappiness", "1", "60"), True),
    ],
    indirect=["run"],
)
def test_what_puts_writing_off_is_judged_over_whole_cycles_only(run: RunFile, judged: bool) -> None:
    compared = of(run).stages[1].to_first
    assert compared is not None
    assert (compared.verdict != "not judged") is judged
    if not judged:
        assert "vm.dirty_background_bytes differ" in compared.reason
