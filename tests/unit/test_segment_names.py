"""Names of segments of WAL: which bytes they hold, whatever their size."""

from __future__ import annotations

import pytest

from pgdyno.pages.segment_names import (
    begin_of,
    history_name,
    is_history,
    is_segment,
    place_name,
    without_timeline,
)

MIB = 1 << 20


@pytest.mark.parametrize("segment_bytes", [MIB, 16 * MIB, 64 * MIB, 1024 * MIB])
def test_the_name_of_a_place_is_that_of_the_segment_that_begins_before_it(
    segment_bytes: int,
) -> None:
    for place in (0, segment_bytes - 1, segment_bytes, (1 << 32) - 1, 1 << 32, 0x16_B374_D848):
        name = f"00000003{place_name(place, segment_bytes)}"
        assert is_segment(name)
        assert begin_of(name, segment_bytes) == place - place % segment_bytes
    places = [place_name(at * segment_bytes, segment_bytes) for at in range(5000)]
    assert places == sorted(places), "names are ordered as what they hold"


def test_names_as_postgresql_has_them() -> None:
    assert place_name(0x16_B374_D848, 16 * MIB) == "00000016000000B3"
    assert without_timeline("0000000200000016000000B3") == "00000016000000B3"
    assert is_history(history_name(18))
    assert history_name(18) == "00000012.history"
    for other in ("00000012.histories", "0000000200000016000000B3.partial", "archive_status"):
        assert not is_segment(other)
        assert not is_history(other)
