"""Stages with unlogged tables: what they are keyed by, what they lose, what refuses them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan
from pgdyno.model.settings import Rung
from pgdyno.plan import fixture_ident, fixture_shape, read_plan
from pgdyno.plan.resolve.plan import resolve
from tests.data.servers import HOST, installed

HEAD = """
name = "one"
question = "What does WAL cost?"
[protocol]
lowest_rung = "D6"
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
why = "Second."
unlogged = true
[[stage]]
name = "c"
why = "It builds on the one before."
[[stage]]
name = "d"
why = "It does not."
afresh = true
"""


def resolved(folder: Path, text: str) -> Plan:
    path = folder / "plan.toml"
    path.write_text(text)
    return resolve(read_plan(path), installed(18), HOST)


def test_a_stage_takes_it_from_the_one_before_unless_it_starts_afresh(tmp_path: Path) -> None:
    plan = resolved(tmp_path, HEAD + STAGES)

    assert [one.unlogged for one in plan.stages] == [False, True, True, False]
    assert [one.rung for one in plan.stages] == [Rung.D0, Rung.D6, Rung.D6, Rung.D0]
    assert plan.stages[1].rung_reason == "unlogged tables"


def test_its_fixture_and_its_trials_have_names_of_their_own(tmp_path: Path) -> None:
    plan = resolved(tmp_path, HEAD + STAGES)
    logged, unlogged = (
        fixture_ident(fixture_shape(plan.target, plan.workload, installed(18), 1, unlogged=one))
        for one in (False, True)
    )
    without = resolved(tmp_path, HEAD + STAGES.replace("unlogged = true", ""))
    idents = [{one.stage: one.ident for one in of.trials} for of in (plan, without)]

    assert logged == fixture_ident(fixture_shape(plan.target, plan.workload, installed(18), 1))
    assert logged != unlogged
    assert idents[0]["a"] == idents[1]["a"]
    assert idents[0]["b"] != idents[1]["b"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('lowest_rung = "D6"', 'lowest_rung = "D2"', "unlogged = true puts it on rung D6, below"),
        ('lowest_rung = "D6"', 'lowest_rung = "D6"\ncrash_recovery = true', "no rows to check"),
        ("unlogged = true",
         "unlogged = true\nguard = true\nsettings = { full_page_writes = false }",
         "the stage has a guard: a standby gets no row of unlogged tables"),
        ('kind = "tpcb"\nscale = 1',
         'kind = "tpcc"\nwarehouses = 2\nforeign_keys = true\n'
         'partitions = { by = "hash", count = 2 }',
         "foreign keys point to partitioned tables"),
    ],
    ids=["rung", "recovery", "guard", "partitions"],
)  # fmt: skip
def test_what_does_not_go_with_it_is_refused(old: str, new: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=said):
        resolved(tmp_path, HEAD.replace(old, new) + STAGES.replace(old, new))


def test_a_workload_without_tables_of_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.sql").write_text("SELECT 1;\n")
    head = HEAD.replace('kind = "tpcb"\nscale = 1', 'kind = "script"\nfile = "one.sql"')

    with pytest.raises(PlanError, match="pgdyno loads no tables for the workload"):
        resolved(tmp_path, head + STAGES)
