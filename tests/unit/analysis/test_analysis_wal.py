"""The WAL of a stage's windows: all that were read, together, by commit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.wal import stage_wal
from pgdyno.model.run import TrialRecord, TrialState
from pgdyno.model.wal import WalKind, WindowWal, WrittenTo
from pgdyno.report.sections import wal
from tests.data.miniature import a_result


def window(commits: int, share: float = 1.0) -> WindowWal:
    return WindowWal(
        share, 1_000 * commits, 6 * commits, 900 * commits, commits // 2, 450 * commits, commits,
        (WalKind("Heap", "UPDATE", commits, 600 * commits, commits // 2, 450 * commits),
         WalKind("Transaction", "COMMIT", commits, 300 * commits, 0, 0)),
        (WrittenTo("accounts", commits, 600 * commits, commits // 2, 450 * commits),),
    )  # fmt: skip


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
