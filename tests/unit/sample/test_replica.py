"""How far a replica is behind, by one clock."""

from __future__ import annotations

import pytest

from pgdyno.sample.samplers.server_replica import Positions


def test_lag_is_how_long_ago_the_primary_was_there() -> None:
    positions = Positions()
    for at_s, written in ((10.0, 1_000), (11.0, 3_000), (12.0, 3_000), (13.0, 4_000)):
        positions.add(at_s, written)

    assert positions.lag_s(13.5, 4_000) == 0.0, "as far as it was last seen, however long ago"
    assert positions.lag_s(13.5, 5_000) == 0.0, "further than it was seen"
    assert positions.lag_s(13.5, 2_000) == pytest.approx(3.0), "between two looks, evenly"
    assert positions.lag_s(13.5, 3_000) == pytest.approx(1.5), "when it was last there"
    assert positions.lag_s(13.5, 500) == pytest.approx(3.5), "at least"
