"""The driver's ledger: what is owed at an instant, and what a database lacks of it."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.drills.ledger import Key, Ledger, Request, compared
from pgdyno.folders import Folder
from pgdyno.model.errors import DriveError

BEGUN, COMMITTED, NOT_COMMITTED, UNKNOWN = range(4)
SECOND_NS = 1_000_000_000


def key(number: int) -> Key:
    return (0, 0, number, 0, 0, 0)


def request(taken: int, ended: int | None, number: int, *, rows: int = 1) -> Request:
    return Request(taken, ended, True if ended is not None else None, rows, key(number))


def line(taken: int, ended: int, number: int, state: int, rows: int) -> bytes:
    return struct.pack("<QQqqqqHHBBxx", taken, ended, number, 0, 0, 0, 0, 0, state, rows)


def read(folder: Path, content: bytes) -> Ledger:
    (folder / "ledger").write_bytes(content)
    with Folder.hold(folder) as held:
        return Ledger.read(held, "ledger")


def test_lines_become_requests_and_a_begin_without_an_end_is_under_way(tmp_path: Path) -> None:
    ledger = read(
        tmp_path,
        line(10, 0, 1, BEGUN, 10) + line(10, 20, 1, COMMITTED, 7)
        + line(11, 0, 2, BEGUN, 1) + line(11, 21, 2, NOT_COMMITTED, 0)
        + line(12, 0, 3, BEGUN, 1) + line(12, 22, 3, UNKNOWN, 1)
        + line(13, 0, 4, BEGUN, 1),
    )  # fmt: skip

    assert ledger.requests == [
        Request(10, 20, True, 7, key(1)),
        Request(11, 21, False, 0, key(2)),
        Request(12, 22, None, 1, key(3)),
        Request(13, None, None, 1, key(4)),
    ]
    assert ledger.span_ns == (10, 22)
    assert ledger.commits == 1


@pytest.mark.parametrize("content", [b"", line(1, 0, 1, BEGUN, 1)[:-1]])
def test_a_ledger_that_breaks_off_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DriveError, match=f"ledger has {len(content)} bytes, its lines have 56"):
        read(tmp_path, content)


def test_at_an_instant_later_answers_are_under_way_and_later_requests_are_nothing() -> None:
    ledger = Ledger([request(10, 20, 1), request(15, 40, 2), request(35, 45, 3)])

    owed = ledger.at(30)

    assert owed.acknowledged == {key(1): [(20, 1)]}
    assert owed.uncertain == {key(2): 1}
    assert owed.commits == 1


def test_what_is_gone_is_counted_and_dated() -> None:
    owed = Ledger([request(1, SECOND_NS, 1), request(2, 2 * SECOND_NS, 2)]).at(3 * SECOND_NS)

    found = compared(owed, {key(1): 1})

    assert (found.lost, found.torn, found.unasked) == (1, 0, 0)
    assert found.lost_s == 1.0


def test_a_commit_of_which_a_part_is_there_is_torn() -> None:
    owed = Ledger([request(1, 5, 1, rows=10)]).at(9)

    found = compared(owed, {key(1): 9})

    assert (found.lost, found.torn, found.unasked) == (0, 1, 0)


def test_of_commits_with_one_key_those_that_are_missing_are_lost() -> None:
    owed = Ledger([request(1, 5, 1), request(2, 6, 1), request(3, 7, 1)]).at(9)

    assert compared(owed, {key(1): 1}).lost == 2
    assert compared(owed, {key(1): 4}).unasked == 1


def test_what_was_rolled_back_may_not_be_there() -> None:
    owed = Ledger([Request(1, 5, False, 0, key(1))]).at(9)

    assert compared(owed, {key(1): 1}).unasked == 1
    assert compared(owed, {}).unasked == 0


_REQUESTS = st.lists(
    st.builds(
        lambda taken, took, committed, rows, number: Request(
            taken, taken + took if took else None, committed if took else None, rows, key(number)
        ),
        st.integers(0, 50), st.integers(0, 50), st.sampled_from([True, False, None]),
        st.integers(1, 3), st.integers(0, 4),
    ),
    max_size=12,
)  # fmt: skip


@given(_REQUESTS, st.integers(0, 110), st.data())
def test_a_database_with_what_was_acknowledged_and_any_of_the_rest_is_whole(
    requests: list[Request], instant: int, data: st.DataObject
) -> None:
    owed = Ledger(requests).at(instant)
    rows: Counter[Key] = Counter()
    for one, commits in owed.acknowledged.items():
        rows[one] += sum(of_one for _, of_one in commits)
    for one, most in owed.uncertain.items():
        rows[one] += data.draw(st.integers(0, most))

    found = compared(owed, rows)

    assert (found.lost, found.torn, found.unasked) == (0, 0, 0)


@given(_REQUESTS, st.integers(0, 110), st.data())
def test_a_row_less_or_more_is_never_overlooked(
    requests: list[Request], instant: int, data: st.DataObject
) -> None:
    owed = Ledger(requests).at(instant)
    rows = Counter(
        {one: sum(of for _, of in commits) for one, commits in owed.acknowledged.items()}
    )
    if rows:
        one = data.draw(st.sampled_from(sorted(rows)))
        found = compared(owed, {**rows, one: rows[one] - 1})
        assert found.lost + found.torn == 1
    stranger = data.draw(st.integers(0, 6))
    most = rows[key(stranger)] + owed.uncertain.get(key(stranger), 0)
    assert compared(owed, {**rows, key(stranger): most + 1}).unasked == 1


def test_the_longest_time_without_a_commit_begins_with_the_one_before() -> None:
    seconds = [request(0, second * SECOND_NS, second) for second in (1, 2, 6, 7)]
    ledger = Ledger([*seconds, Request(0, 4 * SECOND_NS, False, 0, key(9))])

    assert ledger.longest_gap_s(3 * SECOND_NS, 8 * SECOND_NS) == 4  # 2 to 6: what failed is none
    assert ledger.longest_gap_s(3 * SECOND_NS, 20 * SECOND_NS) == 13  # to the end of the load
    assert ledger.longest_gap_s(6 * SECOND_NS, 8 * SECOND_NS) == 1
    assert Ledger([]).longest_gap_s(3 * SECOND_NS, 8 * SECOND_NS) == 5
