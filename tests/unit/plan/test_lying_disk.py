"""Stages whose disk lies: what they are keyed by, what they lose, what refuses them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno import preload
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.settings import Rung
from pgdyno.target import open_target
from tests.unit.plan.test_unlogged import HEAD as UNLOGGED_HEAD
from tests.unit.plan.test_unlogged import STAGES as UNLOGGED_STAGES
from tests.unit.plan.test_unlogged import resolved

HEAD = UNLOGGED_HEAD.replace("D6", "D5")
STAGES = UNLOGGED_STAGES.replace("unlogged", "lying_disk")


def test_a_stage_takes_it_from_the_one_before_unless_it_starts_afresh(tmp_path: Path) -> None:
    plan = resolved(tmp_path, HEAD + STAGES)

    assert [one.lying_disk for one in plan.stages] == [False, True, True, False]
    assert [one.rung for one in plan.stages] == [Rung.D0, Rung.D5, Rung.D5, Rung.D0]
    assert plan.stages[1].rung_reason == "a disk that acknowledges flushes it has not made"


def test_its_trials_have_names_of_their_own(tmp_path: Path) -> None:
    idents = [
        {one.stage: one.ident for one in resolved(tmp_path, HEAD + stages).trials}
        for stages in (STAGES, STAGES.replace("lying_disk = true", ""))
    ]

    assert idents[0]["a"] == idents[1]["a"]
    assert idents[0]["b"] != idents[1]["b"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('lowest_rung = "D5"', 'lowest_rung = "D4"', "lying_disk = true puts it on rung D5, below"),
        ("lying_disk = true",
         "lying_disk = true\nguard = true\nsettings = { full_page_writes = false }",
         "which repairs pages and no WAL that a disk forgot"),
        ("lying_disk = true", "lying_disk = true\nsettings = { fsync = false }",
         "nothing is flushed that a disk could acknowledge"),
        ("lying_disk = true",
         'lying_disk = true\nsettings = { wal_sync_method = "open_datasync" }',
         "wal_sync_method = open_datasync: each write flushes"),
    ],
    ids=["rung", "guard", "fsync", "method"],
)  # fmt: skip
def test_what_does_not_go_with_it_is_refused(old: str, new: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=said):
        resolved(tmp_path, HEAD.replace(old, new) + STAGES.replace(old, new))


def test_a_running_server_gets_no_library(tmp_path: Path) -> None:
    target = '[target]\nkind = "running"\nconninfo = "host=db"\n'
    with pytest.raises(PlanError, match="pgdyno preloads nothing into it"):
        resolved(tmp_path, HEAD.replace("[protocol]", f"{target}[protocol]") + STAGES)


def test_without_a_compiler_it_is_refused_beforehand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = resolved(tmp_path, HEAD + STAGES)
    open_target.require_compilers(plan)

    def none() -> str:
        raise TargetError("there is no C compiler", "Install one, e.g. the package gcc.")

    monkeypatch.setattr(open_target, "require_compiler", none)
    with pytest.raises(PlanError, match="stage b: lying_disk = true, and there is no C compiler"):
        open_target.require_compilers(plan)
    assert preload.require_compiler() is not None
