"""Guarded stages, and those whose commits wait for the guard's standby."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.analysis.credit import changed_around
from pgdyno.model.errors import PlanError
from pgdyno.model.plan import STAGE_FLAGS
from tests.unit.plan.test_unlogged import resolved

HEAD = """
name = "one"
question = "What does a standby cost?"
[workload]
kind = "tpcb"
scale = 1
"""
STAGES = """
[[stage]]
name = "a"
why = "First."
[[stage]]
name = "b"
why = "A standby has the pages."
guard = true
settings = { full_page_writes = false }
[[stage]]
name = "c"
why = "And the commits."
synchronous = true
[[stage]]
name = "d"
why = "It builds on the one before."
[[stage]]
name = "e"
why = "It does not."
afresh = true
"""


def test_a_stage_takes_it_from_the_one_before_unless_it_starts_afresh(tmp_path: Path) -> None:
    plan = resolved(tmp_path, HEAD + STAGES)

    assert [one.synchronous for one in plan.stages] == [False, False, True, True, False]
    assert changed_around(plan.stages[1], plan.stages[2]) == ["commits that wait for a standby"]


@pytest.mark.parametrize("flag", STAGE_FLAGS)
def test_no_flag_of_a_stage_leaves_its_trials_the_names_they_have_without(
    tmp_path: Path, flag: str
) -> None:
    head = f'{HEAD}[protocol]\nlowest_rung = "D6"\n'
    alone = {
        "guard": "guard = true\nsettings = { full_page_writes = false }",
        "synchronous": "guard = true\nsynchronous = true\nsettings = { full_page_writes = false }",
    }.get(flag, f"{flag} = true")
    stage = f'[[stage]]\nname = "a"\nwhy = "First."\n{alone}\n'
    (asked,), (not_asked,) = (
        {one.ident for one in resolved(tmp_path, head + text).trials if one.round == 1}
        for text in (stage, stage.replace(f"{flag} = true", ""))
    )

    assert asked != not_asked


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("guard = true\n", "", "full_page_writes"),
        ("guard = true\nsettings = { full_page_writes = false }", "",
         "stage c: synchronous = true, and the stage has no guard"),
        ("synchronous = true", 'synchronous = true\nsettings = { synchronous_commit = "local" }',
         "stage c: synchronous = true, and synchronous_commit = local: no commit waits"),
    ],
    ids=["rung", "guard", "local"],
)  # fmt: skip
def test_what_does_not_go_with_it_is_refused(old: str, new: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=said):
        resolved(tmp_path, HEAD + STAGES.replace(old, new, 1))
