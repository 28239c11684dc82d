"""How far a replica is behind: where its primary's WAL ends, and by one clock."""

from __future__ import annotations

import pytest

from pgdyno.sample.positions import Lag, Positions
from pgdyno.sample.samplers.server_replica import end_of_wal

PAGE, SEGMENT = 8192, 16 * 1024 * 1024


def looked(*looks: tuple[float, int]) -> Positions:
    positions = Positions()
    for at_s, written in looks:
        positions.add(at_s, written)
    return positions


def exact(seconds: float) -> Lag:
    return Lag(pytest.approx(seconds), is_exact=True)  # type: ignore[arg-type]


def at_least(seconds: float) -> Lag:
    return Lag(pytest.approx(seconds), is_exact=False)  # type: ignore[arg-type]


def test_lag_is_how_long_ago_the_primary_was_there() -> None:
    positions = looked((10.0, 1_000), (11.0, 3_000), (12.0, 3_000), (13.0, 4_000))

    assert positions.lag(13.5, 4_000) == exact(0.0), "as far as it was last seen"
    assert positions.lag(13.5, 5_000) == exact(0.0), "further than it was seen"
    assert positions.lag(13.5, 2_000) == exact(3.0), "between two looks, evenly"
    assert positions.lag(13.5, 3_000) == exact(1.5), "when it was last there"
    assert positions.lag(13.5, 500) == at_least(3.5), "before anybody looked"


def test_of_when_nobody_looked_at_the_primary_the_least_is_told() -> None:
    positions = looked((10.0, 1_000), (40.0, 3_000), (41.0, 4_000))

    assert positions.lag(41.5, 2_000) == at_least(1.5), "some time within half a minute"
    assert positions.lag(41.5, 3_500) == exact(1.0)


def test_a_primary_that_lost_wal_is_followed_anew() -> None:
    positions = looked((10.0, 1_000), (11.0, 9_000), (12.0, 5_000), (13.0, 7_000))

    assert positions.lag(13.5, 6_000) == exact(1.0), "on the new way, not on the old"
    assert positions.lag(13.5, 3_000) == at_least(1.5), "of the old way nothing is known"


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
