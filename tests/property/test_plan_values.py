"""Units: what is read is what was written, however it was written."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from pgdyno.model.settings import ServerKnob
from pgdyno.plan.settings.values import BadValue, canonical, same_value, show
from tests.data.servers import running

NUMBERS = [knob for knob in running(18).knobs.values() if knob.vartype in ("integer", "real")]
INTEGERS = [knob for knob in NUMBERS if knob.vartype == "integer" and knob.context != "internal"]
BYTES = {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
SIZED = [knob for knob in INTEGERS if knob.unit in ("kB", "8kB", "MB")]
UNIT_BYTES = {"kB": 1 << 10, "8kB": 8 << 10, "MB": 1 << 20}


@given(st.sampled_from(INTEGERS), st.data())
def test_showing_and_reading_gives_the_same_number(knob: ServerKnob, data: st.DataObject) -> None:
    low, high = int(knob.minimum or 0), int(knob.maximum or 0)
    number = data.draw(st.integers(low, high))

    shown = show(knob, str(number))

    assert canonical(knob, shown) == str(number)
    assert same_value(knob, shown, str(number))


@given(st.sampled_from(SIZED), st.integers(1, 1 << 50), st.sampled_from(sorted(BYTES)))
def test_a_size_is_kept_exactly_or_refused(knob: ServerKnob, count: int, unit: str) -> None:
    assert knob.unit is not None
    assert knob.minimum is not None
    assert knob.maximum is not None
    wanted = Fraction(count * BYTES[unit], UNIT_BYTES[knob.unit])
    try:
        read = canonical(knob, f"{count}{unit}")
    except BadValue:
        in_range = knob.minimum <= wanted <= knob.maximum
        assert wanted.denominator != 1 or not in_range
    else:
        assert Fraction(read) == wanted
        assert knob.minimum <= wanted <= knob.maximum


@given(st.sampled_from(NUMBERS), st.text(max_size=12))
def test_any_text_is_read_or_refused(knob: ServerKnob, text: str) -> None:
    try:
        read = canonical(knob, text)
    except BadValue:
        return
    assert canonical(knob, read) == read
