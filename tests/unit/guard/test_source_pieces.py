"""What of a standby is judged without one: how it is reached again, whose WAL its files hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pgdyno.guard.source import Source, StandbyFacts, Wanted, pinned
from pgdyno.guard.timelines import left_at
from pgdyno.model.connection import Connection, Host
from pgdyno.model.errors import TargetError
from pgdyno.model.repair import RedoBegin

SEVERAL = Connection(
    "a", 5432, "guard", "postgres", "of a", None,
    (Host("b", 5433, "of b"), Host("", 5434, "of c", "192.0.2.3"), Host("/run/d", 5435)),
    (("load_balance_hosts", "random"), ("sslmode", "verify-full")),
)  # fmt: skip


def test_a_server_is_reached_again_by_itself_alone() -> None:
    one = pinned(SEVERAL, "b", "192.0.2.2", 5433)
    assert one.hosts == (Host("b", 5433, "of b", "192.0.2.2"),)
    assert one.parameters == (("sslmode", "verify-full"),), "its certificate is still asked for"
    assert (one.user, one.database) == ("guard", "postgres")
    # libpq gives an address where there is no name.
    assert pinned(SEVERAL, "192.0.2.3", "192.0.2.3", 5434).password == "of c"
    assert pinned(SEVERAL, "/run/d", "", 5435).hosts == (Host("/run/d", 5435),)


def test_of_two_addresses_of_a_name_the_one_is_taken_that_answered() -> None:
    two = Connection(
        "a", 5432, "u", "d", "of 1", "192.0.2.1", (Host("a", 5432, "of 2", "192.0.2.2"),)
    )
    for number in ("1", "2"):
        one = pinned(two, "a", f"192.0.2.{number}", 5432)
        assert (one.hostaddr, one.password) == (f"192.0.2.{number}", f"of {number}")


def test_no_more_is_taken_than_was_asked_for() -> None:
    """What is longer would be written beyond the blocks that were judged."""
    source: Any = Source.__new__(Source)
    source.connection = SEVERAL

    def read(*given: bytes | None) -> list[bytes | None]:
        source.session = SimpleNamespace(rows=lambda *_: ((one,) for one in given))
        return list(source.read([Wanted("base/5/1", at, 8 * at, 1) for at in range(2)], 8))

    assert read(b"12345678", None) == [b"12345678", None]
    assert read(b"1234", b"") == [b"1234", b""]
    with pytest.raises(TargetError, match="gave 9 bytes of base/5/1, asked for were 8"):
        read(b"12345678", b"123456789")


# -- held still ----------------------------------------------------------------------------------

CRASHED = RedoBegin(
    18, "7", "in production", False, False, "0/3000000", "0/3000100", 2, True, False, 1, 8192,
    131072, 16 << 20,
)  # fmt: skip
LINES = [(1, "0/2000000")]
HISTORY = b"1\t0/2000000\tno recovery target specified\n"
PAUSED = StandbyFacts(
    180000, True, "7", "0/3000000", 2, 2, "0/3000500", "0/3000500", "0/3000500", True, 8192
)


class Told(Source):
    """A standby that says after each checkpoint what a test lets it say."""

    def __init__(self, *said: StandbyFacts, history: bytes | None = HISTORY) -> None:
        self.connection = SEVERAL
        self.statements: list[str] = []
        self.said = list(said)
        self.history = history
        self.session: Any = SimpleNamespace(
            version=180000, closed=False, do=self._do, row=lambda *_: ("paused",)
        )

    def _do(self, query: str, **_: float) -> None:
        self.statements.append(query)
        if query == "CHECKPOINT" and len(self.said) > 1:
            del self.said[0]

    def facts(self) -> StandbyFacts:
        return self.said[0]

    def read(self, wanted: Sequence[Wanted], block_bytes: int) -> Iterator[bytes | None]:
        assert [(one.path, block_bytes) for one in wanted] == [("pg_wal/00000002.history", 1)]
        yield self.history


def hold(standby: Told, meanwhile: StandbyFacts | None = None) -> None:
    with standby.held(CRASHED, LINES, 1.0):
        if meanwhile is not None:
            standby.said = [meanwhile]


def test_a_standby_of_the_same_history_is_held_and_let_go() -> None:
    for history in (HISTORY, None):  # a copy may lack it
        standby = Told(PAUSED, history=history)
        hold(standby)
        assert "CHECKPOINT" not in standby.statements
        assert standby.statements[-1] == "SELECT pg_wal_replay_resume()"
    # A restartpoint is written down up to its own record; the checkpoint after it has the rest.
    behind = replace(PAUSED, redo_lsn="0/2000000", files_lsn="0/2000100", files_timeline=1)
    late = Told(behind, replace(PAUSED, files_lsn="0/3000100"), PAUSED)
    hold(late)
    assert late.statements.count("CHECKPOINT") == 2


def test_a_standby_whose_session_is_gone_is_let_go_by_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it would stand still for ever, and keep full pages on."""
    standby, other = Told(PAUSED), Told(PAUSED)
    other.session.close = lambda: None
    monkeypatch.setattr(standby, "again", lambda: other)
    with standby.held(CRASHED, LINES, 1.0):
        standby.session.closed = True
        standby.said = [PAUSED]
    assert other.statements == ["SELECT pg_wal_replay_resume()"]
    assert standby.statements[-1] != "SELECT pg_wal_replay_resume()"


OTHER = {
    "has replayed WAL of timeline 3 up to 0/3000500": [
        # It followed a promoted one, and its files said so only once they were flushed.
        replace(PAUSED, redo_lsn="0/2000000", files_lsn="0/2000100", files_timeline=2),
        replace(PAUSED, files_timeline=3),
    ],
    "timeline 1 up to 0/3000500, which the crashed cluster's left at 0/2000000": [
        # It did not follow the promotion of the one that crashed.
        replace(PAUSED, timeline=1, files_timeline=1)
    ],
    "goes on replaying": [replace(PAUSED, replay_lsn="0/4000000")],
    "was promoted": [replace(PAUSED, is_in_recovery=False)],
}


@pytest.mark.parametrize("fact", OTHER)
def test_what_another_primary_wrote_is_refused_before_and_after_it_was_read(fact: str) -> None:
    standby = Told(*OTHER[fact])
    with pytest.raises(TargetError, match=fact):
        hold(standby)
    assert standby.statements[-1] == "SELECT pg_wal_replay_resume()"
    with pytest.raises(TargetError, match=fact):
        hold(Told(PAUSED), meanwhile=OTHER[fact][-1])


def test_two_promotions_to_one_timeline_are_two_histories() -> None:
    other = HISTORY.replace(b"0/2000000", b"0/2000080")
    with pytest.raises(TargetError, match="has another history of timeline 2"):
        hold(Told(PAUSED, history=other))


def test_wal_of_an_older_timeline_is_shared_up_to_its_end() -> None:
    assert left_at(1, "0/2000000", 2, LINES) is None
    assert left_at(1, "0/2000001", 2, LINES) == "0/2000000"
    assert left_at(3, "0/1", 2, LINES) == ""
    assert left_at(2, "F/0", 2, LINES) is None
