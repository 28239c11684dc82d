"""How far a replica is behind: where its primary's WAL ends, and by one clock."""

from __future__ import annotations

import pytest

from pgdyno.sample.samplers.server_replica import Positions, end_of_wal

PAGE, SEGMENT = 8192, 16 * 1024 * 1024


def test_lag_is_how_long_ago_the_primary_was_there() -> None:
    positions = Positions()
    for at_s, written in ((10.0, 1_000), (11.0, 3_000), (12.0, 3_000), (13.0, 4_000)):
        positions.add(at_s, written)

    assert positions.lag_s(13.5, 4_000) == 0.0, "as far as it was last seen, however long ago"
    assert positions.lag_s(13.5, 5_000) == 0.0, "further than it was seen"
    assert positions.lag_s(13.5, 2_000) == pytest.approx(3.0), "between two looks, evenly"
    assert positions.lag_s(13.5, 3_000) == pytest.approx(1.5), "when it was last there"
    assert positions.lag_s(13.5, 500) == pytest.approx(3.5), "at least"


def test_no_lag_is_told_of_when_nobody_looked_at_the_primary() -> None:
    positions = Positions()
    for at_s, written in ((10.0, 1_000), (40.0, 3_000), (41.0, 4_000)):
        positions.add(at_s, written)

    assert positions.lag_s(41.5, 2_000) is None, "some time within half a minute"
    assert positions.lag_s(41.5, 3_500) == pytest.approx(1.0)


def test_a_primary_that_lost_wal_is_followed_anew() -> None:
    positions = Positions()
    for at_s, written in ((10.0, 1_000), (11.0, 9_000), (12.0, 5_000), (13.0, 7_000)):
        positions.add(at_s, written)

    assert positions.lag_s(13.5, 6_000) == pytest.approx(1.0), "on the new way, not on the old"


@pytest.mark.parametrize(
    ("inserted", "end"),
    [
        (3 * SEGMENT + 40, 3 * SEGMENT),  # the first page of a segment, with its longer header
        (3 * SEGMENT + 24 + 40, 3 * SEGMENT + 64),
        (3 * SEGMENT + PAGE + 24, 3 * SEGMENT + PAGE),
        (3 * SEGMENT + PAGE + 40, 3 * SEGMENT + PAGE + 40),  # 16 bytes of a record stand there
        (3 * SEGMENT + PAGE + 1000, 3 * SEGMENT + PAGE + 1000),
    ],
)
def test_the_header_of_an_empty_page_is_nothing_to_be_replayed(inserted: int, end: int) -> None:
    assert end_of_wal(inserted, PAGE, SEGMENT) == end
