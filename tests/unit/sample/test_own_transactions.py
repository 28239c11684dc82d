"""Transactions of sessions that look on: where they are counted, and where nobody can."""

from __future__ import annotations

from typing import Any, cast
from unittest.mock import MagicMock

import pytest

from pgdyno.sample.own_transactions import OwnTransactions, own_transactions
from pgdyno.sample.sampler import Missing, Subject
from pgdyno.sample.session import CountingSession, ended

DRIVEN = Subject(databases=["driven"])


def session(major: int = 18, unsure: str = "", beside: int = 0, counts: bool = True) -> Any:
    """One that a server answers."""
    found = MagicMock(spec=CountingSession, unsure=unsure, committed=0, rolled_back=0)
    found.info = MagicMock(server_version=major * 10_000, dbname="driven")
    found.prepare_threshold = 5

    def execute(text: str, *_: object) -> MagicMock:
        row = (counts,) if "current_setting" in text else (beside,)
        return MagicMock(fetchone=lambda: row)

    found.execute = execute
    return found


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (session(14), "PostgreSQL 14 does not tell it, 15 and later do"),
        (session(counts=False), "track_counts is off"),
        (session(unsure="a session was lost"), "a session was lost"),
        (session(beside=1),
         "further sessions of pgdyno's own look on in the driven database"),
    ],
)  # fmt: skip
def test_why_commits_of_ours_are_not_told_apart(asked: Any, reason: str) -> None:
    found = own_transactions(DRIVEN, asked)
    assert isinstance(found, Missing)
    assert found.reason == reason


def test_a_session_elsewhere_commits_nothing_in_the_driven_database() -> None:
    elsewhere = own_transactions(Subject(databases=["another"]), session())
    assert isinstance(elsewhere, OwnTransactions)
    assert elsewhere.told() == {"database.own_commits": 0.0, "database.own_rollbacks": 0.0}


def test_what_a_session_ended_is_counted_as_what_it_was() -> None:
    one = session()
    for committed in (True, False, True):
        ended(one, committed=committed)
    ended(cast(Any, MagicMock()), committed=True)
    assert (one.committed, one.rolled_back) == (2, 1)
