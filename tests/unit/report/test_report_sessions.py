"""What sessions did, in the report: averages beside seconds that add up, and who blocks whom."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.session_facts import Blocking, Queue
from pgdyno.report.document import Table
from pgdyno.report.sections.sessions import SHOWN_MAX, section

WAITS = Blocking(
    "payment", "pay_district", "transactionid", "ShareLock", "district", "new_order",
    "no_district", "idle in transaction", {"client": 0.75, "cpu": 0.25}, 0.5, 0.4, 0.7, 12.3, 4,
)  # fmt: skip


def tables(facts: Facts) -> dict[str, Table]:
    """By how their captions begin."""
    found = section(facts)
    assert found is not None
    return {one.caption.split(",")[0]: one for one in found.blocks if isinstance(one, Table)}


def blocked(facts: Facts) -> list[Table]:
    return [one for name, one in tables(facts).items() if name.startswith("Who blocks whom")]


def test_each_table_ends_with_the_total_that_its_seconds_add_up_to(facts: Facts) -> None:
    for name in ("By kind of transaction.", "By statement.", "By wait event; what runs has none."):
        table = tables(facts)[name]
        assert table.rows[-1][0].text == "all active"
        seconds = [float((row[1].note or "").split(" s")[0].replace(",", "")) for row in table.rows]
        assert abs(sum(seconds[:-1]) - seconds[-1]) <= 0.05 * len(seconds), "each is rounded"
        assert seconds[-1] > 0


def test_what_only_another_stage_tells_apart_is_said_to_be_in_the_others(facts: Facts) -> None:
    """A dash says that none was met."""
    first, second, *others = facts.sessions
    name = first.by["statement"][0].name
    without = tuple(one for one in second.by["statement"] if one.name != name)

    def cell(rest: dict[str, dict[str, float]]) -> tuple[str, str | None]:
        told = replace(second, by={**second.by, "statement": without}, rest=rest, seconds=10)
        rows = tables(replace(facts, sessions=(first, told, *others)))["By statement."].rows
        found = next(row for row in rows if row[0].text == name)[2]
        return found.text, found.note

    assert cell({"statement": {name: 0.25}}) == ("0.25", "2.5 s · in others")
    assert cell({"statement": {"another": 0.25}}) == ("–", None)


def test_who_blocks_whom_is_told_with_its_interval_and_its_deepest_queue(facts: Facts) -> None:
    first, *others = facts.sessions
    other = replace(WAITS, blocker_does={"": 1.0}, blocker_state="", blocker_kind="",
                    blocker_statement="", relation="", low=None, high=None)  # fmt: skip
    queue = Queue(7, 2, 14.2, ("client", "cpu_wait"))
    told = replace(first, blocking=(WAITS, other), deepest=queue)
    (table,) = blocked(replace(facts, sessions=(told, *others)))

    assert table.folded
    deepest = table.rows[-1][3]
    assert deepest.text == "≥ 7 sessions"
    assert deepest.note == "second 14 of round 2; its head waits (client) or wants a CPU"
    waiter, lock, holder, cell, nothing = table.rows[0][:5]
    assert waiter.text == "Payment · pay_district"
    assert (lock.text, lock.note) == ("district", "transactionid, ShareLock")
    assert holder.text == "New-Order · no_district"
    assert holder.note == "idle in transaction, waits (client) 75%, runs 25%"
    assert (cell.text, cell.note) == ("12.3 s", "9.8 to 17.2 · ≥ 4 at once")
    assert nothing.tone == "quiet"
    assert table.rows[1][1].text == "no relation told"
    assert (table.rows[1][2].text, table.rows[1][2].note) == (
        "not known, or none of the load",
        "was not met",
    )
    assert table.rows[1][3].note == "≥ 4 at once"


def test_who_was_met_waiting_behind_another_is_a_queue_of_one_at_least(facts: Facts) -> None:
    first, *others = facts.sessions
    told = (replace(first, blocking=(WAITS,), deepest=None), *others)
    (table,) = blocked(replace(facts, sessions=told))
    assert table.rows[-1][3].text == "≥ 1 session"


@pytest.mark.parametrize(("left", "told_of"), [(3, "3 rows more are"), (1, "1 row more is")])
def test_of_many_pairs_the_longest_waits_are_shown_and_the_others_counted(
    facts: Facts, left: int, told_of: str
) -> None:
    many = tuple(
        replace(WAITS, relation=f"t{number}", waited_s=100.0 - number)
        for number in range(SHOWN_MAX + left)
    )
    told = (replace(facts.sessions[0], blocking=many), *facts.sessions[1:])
    (table,) = blocked(replace(facts, sessions=told))
    assert len(table.rows) == SHOWN_MAX + 1, "and the deepest queue"
    assert table.caption.endswith(f"{told_of} in the JSON.")
