"""Counters of pg_stat_slru under one name, whatever the version calls the caches."""

from __future__ import annotations

import pytest

from pgdyno.sample.sampler import Subject
from pgdyno.sample.samplers.server_slru import row_of, sampler

SAVED_15 = [
    ("CommitTs", 0, 0, 0, 0, 0, 0, 0),
    ("Subtrans", 3, 41, 2, 11, 0, 4, 1),
    ("Xact", 7, 90_125, 5, 6, 1, 4, 0),
    ("other", 0, 0, 0, 0, 0, 0, 0),
]
SAVED_18 = [
    ("other", 0, 0, 0, 0, 0, 0, 0),
    ("subtransaction", 3, 41, 2, 11, 0, 4, 1),
    ("transaction", 7, 90_125, 5, 6, 1, 4, 0),
    ("commit_timestamp", 0, 0, 0, 0, 0, 0, 0),
]


@pytest.mark.parametrize("saved", [SAVED_15, SAVED_18], ids=["15", "18"])
def test_caches_have_the_names_of_17_in_every_version(
    saved: list[tuple[str | int, ...]],
) -> None:
    row = row_of(saved)
    assert len(row) == 28
    assert row["slru.transaction.reads"] == 7
    assert row["slru.transaction.hits"] == 90_125
    assert row["slru.subtransaction.writes"] == 2
    assert (row["slru.subtransaction.zeroed"], row["slru.transaction.exists"]) == (11, 1)
    assert (row["slru.subtransaction.flushes"], row["slru.subtransaction.truncates"]) == (4, 1)
    assert row["slru.commit_timestamp.reads"] == row["slru.other.hits"] == 0


def test_without_a_session_there_is_nothing_to_read() -> None:
    assert sampler(Subject()) is None
