"""Anchors and their invalid cases, and what vacuum took of a span, on made-up numbers."""

from __future__ import annotations

import numpy as np
import pytest

from pgdyno.model.cycle import Spacing
from pgdyno.model.errors import PgdynoError
from pgdyno.stats.anchor import Anchor, anchor
from pgdyno.stats.cycle_checks import (
    Ended,
    backends_write,
    drifting,
    falling_behind,
    late_vacuum,
    saturated,
    unequal_cycles,
)
from pgdyno.stats.interval import FloatArray
from pgdyno.stats.vacuum import Episode, late_tables, taken, together, unlike

CYCLE_S = 100


def two_curves(second: float, slope: float = 0.0) -> FloatArray:
    """A first cycle of 1000 a second, and the start of a second one that has a share of it."""
    after = second * np.exp(slope * np.linspace(-0.5, 0.5, 30))
    return np.concatenate([np.full(CYCLE_S, 1000.0), 1000.0 * after])


def found(per_s: FloatArray, target: float = 0.9) -> Anchor:
    return anchor(per_s, CYCLE_S, writing_share=target, short_s=(10.0, 40.0))


def test_a_whole_cycle_is_lessened_while_the_checkpoint_writes_only() -> None:
    one = found(two_curves(0.8))
    assert one.whole == pytest.approx(0.9 * 800 + 0.1 * 1000)
    assert one.ratio == pytest.approx(0.8)
    assert one.short == pytest.approx(1000.0)
    assert found(two_curves(0.8), target=0.5).whole == pytest.approx(0.5 * 800 + 0.5 * 1000)
    assert len(one.curve) == 20
    assert one.curve == pytest.approx([1000.0] * 20)


def test_a_cold_begin_is_taken_from_the_second_cycle() -> None:
    cold = two_curves(0.8)
    cold[:10] = 100.0
    assert found(cold).whole == pytest.approx(found(two_curves(0.8)).whole)


@pytest.mark.parametrize(
    ("seconds", "cycle_s", "fact"),
    [
        (130, 10.0, "a cycle lasted 10.0 s, an anchor needs 20 s or more"),
        (120, 100.0, "the load lasted 120 s, an anchor of cycles of 100 s needs 130 s"),
    ],
)
def test_what_is_too_short_is_no_anchor(seconds: int, cycle_s: float, fact: str) -> None:
    with pytest.raises(PgdynoError, match=fact):
        anchor(np.full(seconds, 5.0), cycle_s, writing_share=0.9, short_s=(1.0, 5.0))


def test_a_server_that_stood_still_is_no_anchor() -> None:
    with pytest.raises(PgdynoError, match="nothing was completed"):
        anchor(np.zeros(140), 100.0, writing_share=0.9, short_s=(1.0, 5.0))


def test_what_the_writes_cost_may_not_drift() -> None:
    assert drifting([found(two_curves(0.8))]) is None
    reason = drifting([found(two_curves(0.8)), found(two_curves(0.8, slope=-0.4))])
    assert reason is not None
    assert "drifts by -" in reason


def test_sessions_that_write_pages_themselves_are_told() -> None:
    assert backends_write(5, 90, 5) is None
    assert backends_write(0, 0, 0) is None
    reason = backends_write(6, 90, 4)
    assert reason is not None
    assert "sessions wrote 6% of the pages" in reason


def test_checkpoints_that_take_too_long_are_told() -> None:
    assert saturated([Ended(99.0, 9.0, 100.0)], 0.9) is None
    assert "took 100 s, 99 s" in str(saturated([Ended(100.0, 1.0, 100.0)], 0.9))
    assert "11% of its time in flushes" in str(saturated([Ended(90.0, 9.9, 100.0)], 0.9))


def test_cycles_of_one_stage_must_be_alike() -> None:
    assert unequal_cycles([300.0]) is None
    assert unequal_cycles([300.0, 345.0]) is None
    assert "300 to 346 s" in str(unequal_cycles([300.0, 346.0]))


def test_vacuum_that_begins_after_the_first_cycle_is_told() -> None:
    early = Episode("stock", 1050.0, 1060.0, None, None)
    small = Episode("district", 1120.0, 1121.0, None, None)
    late = Episode("order_line", 1110.0, 1128.0, None, None)
    again = Episode("stock", 1115.0, 1130.0, None, None)
    load = (1000.0, 1130.0)
    assert late_tables([early, small, again], load, 100.0) == ()
    assert late_tables([early, late, again], load, 100.0) == ("order_line",)
    assert late_vacuum(()) is None
    assert "order_line began only after the first cycle" in str(late_vacuum(("order_line",)))


def test_what_follows_the_wal_may_not_fall_behind() -> None:
    assert falling_behind("archiving", 16 << 20, 20 << 20) is None  # the segment under way
    assert falling_behind("archiving", 100 << 20, 1000 << 20) is None
    assert falling_behind("archiving", -5.0, 1000 << 20) is None  # it caught up
    reason = str(falling_behind("a standby", 200 << 20, 1000 << 20))
    assert "a standby fell behind by 200 MiB of the 1000 MiB of WAL" in reason


def test_a_cycle_ends_by_time_or_by_wal() -> None:
    spacing = Spacing(300.0, float(1 << 30), 0.9)
    assert spacing.cycle_s(20e6) == pytest.approx((1 << 30) / 1.9 / 20e6)
    assert spacing.cycle_s(1e6) == 300.0
    assert spacing.cycle_s(0.0) == 300.0


def test_vacuum_is_charged_by_the_part_that_lies_in_a_span() -> None:
    listed = [Episode("a", 0.0, 10.0, 100.0, 1.0), Episode("b", 5.0, 15.0, 50.0, 2.0)]
    run, window = taken(listed, (0.0, 20.0)), taken(listed, (8.0, 12.0))
    assert (run.busy_s, run.wal_bytes, run.cpu_s) == (15.0, 150.0, 3.0)
    assert (window.busy_s, window.wal_bytes, window.cpu_s) == pytest.approx((4.0, 40.0, 1.0))
    both = together([run, window])
    assert (both.span_s, both.busy_s, both.wal_bytes) == pytest.approx((24.0, 19.0, 190.0))


def test_what_is_not_logged_is_not_known() -> None:
    assert taken([Episode("a", 0.0, 1.0, None, 1.0)], (0.0, 2.0)).wal_bytes is None


def test_windows_that_miss_vacuum_are_unlike_the_load() -> None:
    listed = [Episode("order_line", 50.0, 90.0, 1e9, 10.0)]
    run, missed = taken(listed, (0.0, 100.0)), taken(listed, (0.0, 40.0))
    assert unlike(0.3, 0.0, run, missed)
    assert not unlike(0.3, 0.27, run, missed)
    assert unlike(None, None, run, missed)  # 40 % of the time, and none
    assert not unlike(None, None, run, run)
