"""What a stage sets, counted and told: what holds already is no difference."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.analysis.changes import changes
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.setting_facts import SettingChange
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.report.document import Table
from pgdyno.report.sections.settings import section
from tests.data.miniature import CHARACTERS

ORIGIN = Origin(OriginKind.PLAN, "plan.toml: stage tuned")


def tables(facts: Facts, *found: SettingChange) -> list[Table]:
    first, tuned, *_ = facts.stages
    stages = (replace(first, changes=()), replace(tuned, changes=found))
    blocks = section(replace(facts, stages=stages)).blocks
    return [one for one in blocks if isinstance(one, Table) and one.caption.startswith("tuned:")]


def test_a_setting_that_holds_already_does_not_count_as_a_difference(facts: Facts) -> None:
    other = SettingChange("wal_buffers", "4MB", "64MB", "64MB", "plan", None)
    same = SettingChange("checkpoint_completion_target", "0.9", "0.9", "0.9", "plan", None)
    (table,) = tables(facts, other, same)
    assert table.caption == ("tuned: 1 setting differs from initdb, 1 is set to what holds there.")
    (table,) = tables(facts, other)
    assert table.caption == "tuned: 1 setting differs from initdb."


def test_what_held_before_is_told_where_the_default_is_known(facts: Facts) -> None:
    first, tuned = (replace(one.stage, settings=()) for one in CHARACTERS[:2])
    one = Setting("work_mem", "8MB", ORIGIN, default="4MB")
    (found,) = changes(first, replace(tuned, settings=(one,)), {}, {"work_mem": "8MB"})
    assert (found.before, found.after) == ("4MB", "8MB")
    (table,) = tables(facts, found)
    assert [cell.text for cell in table.rows[0]][:3] == ["work_mem", "4MB", "8MB"]
