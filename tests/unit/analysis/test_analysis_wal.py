"""The WAL of a stage's windows: all that were read, together, by commit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.wal import stage_wal
from pgdyno.model.run import TrialRecord, TrialState
from pgdyno.model.wal import (
    TransactionUse,
    WalKind,
    WindowTransactions,
    WindowWal,
    WorkloadKind,
    WrittenTo,
)
from pgdyno.report.sections import wal
from tests.data.miniature import a_result


def window(commits: int, share: float = 1.0) -> WindowWal:
    return WindowWal(
        share, 1_000 * commits, 6 * commits, 900 * commits, commits // 2, 450 * commits, commits,
        (WalKind("Heap", "UPDATE", commits, 600 * commits, commits // 2, 450 * commits),
         WalKind("Transaction", "COMMIT", commits, 300 * commits, 0, 0)),
        (WrittenTo("accounts", commits, 600 * commits, commits // 2, 450 * commits),),
    )  # fmt: skip


def use(transactions: int, bytes_: int) -> TransactionUse:
    return TransactionUse(transactions, 2 * transactions, bytes_, transactions // 2, bytes_ // 2)


def with_transactions(*kinds: tuple[str | None, str, int, int]) -> WindowWal:
    committed = tuple(
        WorkloadKind((table,), (kind,) if kind else (), use(count, bytes_))
        for kind, table, count, bytes_ in kinds
    )
    sums = WindowTransactions(committed, use(1, 10), use(2, 20), use(0, 30), use(0, 40))
    return replace(window(100), transactions=sums)


def trial(number: int, stage: str, found: WindowWal | None) -> TrialRecord:
    return TrialRecord(number, 1, stage, str(number), TrialState.FINISHED,
                       result=replace(a_result(), wal=found))  # fmt: skip


def test_windows_of_a_stage_are_added_up_and_divided_by_their_commits() -> None:
    trials = [trial(1, "a", window(100)), trial(2, "a", window(300, 0.5)), trial(3, "b", None),
              trial(4, "c", window(0))]  # fmt: skip

    (found,) = stage_wal(("a", "b", "c"), trials)

    assert (found.stage, found.windows, found.commits) == ("a", 2, 400)
    assert (found.bytes, found.records, found.images) == (1_000, 6, 0.5)
    assert found.image_share == pytest.approx(0.5)
    assert found.share == pytest.approx(400 / 700)  # of what the windows wrote
    assert [(one.name, one.bytes) for one in found.kinds] == [
        ("Heap UPDATE", 600), ("Transaction COMMIT", 300),
    ]  # fmt: skip
    assert found.relations[0].image_bytes == 450


def test_a_stage_whose_wal_was_not_read_is_said_to_be_not_known(facts: Facts) -> None:
    assert wal.section(facts) is None
    first, second = (one.name for one in facts.stages[:2])
    (known,) = stage_wal((first,), [trial(1, first, window(100))])

    section = wal.section(replace(facts, wal=(known,)))

    assert section is not None
    stages = section.blocks[0].rows
    assert [cell.text for cell in stages[0][:2]] == [first, "1000 B"]
    assert [cell.text for cell in stages[1][:2]] == [second, "not known"]
    kinds = section.blocks[1].rows
    assert (kinds[0][0].text, kinds[0][1].note) == ("Heap UPDATE", "60%, 75% of it images")
    assert kinds[0][2].text == "not known"


def test_transactions_are_added_up_by_their_tables_and_divided_by_their_own_number() -> None:
    trials = [
        trial(1, "a", with_transactions(("pay", "t", 10, 500), (None, "u", 2, 100))),
        trial(2, "a", with_transactions(("pay", "t", 30, 1_200))),
        trial(3, "a", window(100)),  # of a run that did not tell them
    ]

    (found,) = stage_wal(("a",), trials)

    assert [(one.kinds, one.tables, one.commits) for one in found.transactions] == [
        (("pay",), ("t",), 40), ((), ("u",), 2),
    ]  # fmt: skip
    pay = found.transactions[0]
    assert (pay.bytes, pay.records, pay.images, pay.image_bytes) == (42.5, 2, 0.5, 21.25)
    assert found.others is not None
    others = (found.others.further, found.others.rolled_back, found.others.unfinished,
              found.others.outside)  # fmt: skip
    assert others == tuple(2 * part / 2_000 for part in (10, 20, 30, 40))
    assert sum(one.share for one in found.transactions) + sum(others) == pytest.approx(1)


def test_a_kind_of_transaction_has_its_row_and_what_is_of_none_its_share(facts: Facts) -> None:
    first, second = (one.name for one in facts.stages[:2])
    known = stage_wal((first, second), [
        trial(1, first, with_transactions(("pay", "t", 40, 1_700), (None, "u", 2, 200))),
        trial(2, second, window(100)),
    ])  # fmt: skip

    section = wal.section(replace(facts, wal=known))

    assert section is not None
    rows = section.blocks[1].rows
    names = [(row[0].text, row[0].note) for row in rows]
    assert names[:2] == [("pay", "t"), ("u", None)]
    assert (rows[0][1].text, rows[0][1].note) == ("42 B", "85%, 50% of it images")
    assert rows[0][2].text == "not known"
    outside = dict(zip((name for name, _ in names), rows, strict=True))["of no transaction"]
    assert (outside[1].text, outside[1].note) == ("–", "2.0%")


def test_a_report_of_windows_that_did_not_tell_transactions_has_no_table_of_them(
    facts: Facts,
) -> None:
    known = stage_wal((facts.stages[0].name,), [trial(1, facts.stages[0].name, window(100))])

    section = wal.section(replace(facts, wal=known))

    assert section is not None
    assert [block.columns[0].head for block in section.blocks[:3]] == [
        "stage", "kind of record", "relation",
    ]  # fmt: skip
