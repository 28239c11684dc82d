"""When windows begin and end, with checkpoints and a clock of the test's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pgdyno.drive.checkpoint_pace import OPEN, STOP, Pace, pace_of
from pgdyno.model.cycle import Spacing
from pgdyno.model.plan import Protocol
from pgdyno.model.settings import Rung

STEP_S = 0.1
SPACING = Spacing(30.0, float(1 << 30), 0.9)


def protocol(**changes: object) -> Protocol:
    plain = {"rounds": 3, "warmup_s": 10.0, "window_s": 35.0, "drain_s": 5.0, "prewarm": False,
             "margin": 0.02, "confidence": 0.95, "lowest_rung": Rung.D0}  # fmt: skip
    return Protocol(**(plain | changes))  # type: ignore[arg-type]


def paced(
    checkpoints_s: Sequence[float], cycles: int | None, timeout_s: float = 30.0
) -> tuple[list[tuple[str, float]], Pace]:
    """What a pace says, and when, in a run whose load begins at 0."""
    now = [0.0]

    def begun() -> int:
        return 3 + sum(at <= now[0] for at in checkpoints_s)

    clock = lambda: round(now[0] * 1e9)  # noqa: E731
    pace = Pace(begun, 10.0, 35.0, cycles, replace(SPACING, timeout_s=timeout_s), unix_ns=clock)
    said: list[tuple[str, float]] = []
    pace.turn("connect", -1.0)
    phase, opens_s = "warmup", pace.warmup_max_s
    while phase != "drain":
        if phase == "warmup" and now[0] >= opens_s:
            phase = "window"
        if told := pace.turn(phase, now[0]):
            said.append((told, round(now[0], 1)))
            phase = {OPEN: "window", STOP: "drain"}[told]
        now[0] = round(now[0] + STEP_S, 1)
        assert now[0] < 2 * (pace.warmup_max_s + pace.window_max_s), "it ends"
    return said, pace


def test_a_window_of_whole_cycles_begins_and_ends_with_a_checkpoint() -> None:
    said, pace = paced([28.0, 58.0, 88.0, 118.0, 148.0], cycles=2)
    assert said == [(OPEN, 58.0), (STOP, 118.0)]  # after two that are not as those to come
    assert [at / 1e9 for at in pace.begins_ns] == [28.0, 58.0, 88.0, 118.0]


def test_short_cycles_are_as_many_as_the_window_needs() -> None:
    # The first two checkpoints come before the warm-up is over: the next one begins the window.
    said, _ = paced([4.0 * n for n in range(1, 30)], cycles=2)
    assert said == [(OPEN, 12.0), (STOP, 48.0)]  # 36 s, the first multiple of 4 beyond 35


def test_a_load_that_makes_no_checkpoint_has_its_window_all_the_same() -> None:
    said, pace = paced([], cycles=2)
    assert said == [(STOP, pytest.approx(10 + 2 * (30 * 1.1 + 5) + 35, abs=0.2))]
    assert not pace.has_opened


def test_an_anchor_lasts_one_cycle_and_three_tenths() -> None:
    said, pace = paced([100.0], cycles=None, timeout_s=120.0)
    assert said == [(STOP, 130.0)]
    assert pace.followed((10, 20)).cycles is None


def test_an_anchor_holds_the_short_window_too() -> None:
    said, _ = paced([20.0], cycles=None)
    assert said == [(STOP, 45.0)]  # 1.3 cycles are 26 s, the short window ends at 45 s


def test_an_anchor_without_a_checkpoint_ends() -> None:
    said, _ = paced([], cycles=None)
    assert said[0][0] == STOP


def test_what_began_before_the_load_is_no_cycle_of_it() -> None:
    pace = Pace(iter([1, 2, 2, 2]).__next__, 0.0, 1.0, 1, SPACING)
    assert pace.turn("connect", 0.0) is None
    assert pace.turn("connect", 0.1) is None  # a checkpoint, while sessions are opened
    assert pace.turn("warmup", 0.2) is None
    assert pace.turn("warmup", 0.3) is None
    assert pace.begins_ns == []


def test_the_protocol_says_which_trials_follow_checkpoints() -> None:
    def cycles_of(plan: Protocol, round_number: int) -> object:
        pace = pace_of(plan, plan.checkpoints, round_number, lambda: 0, SPACING)
        return "clock" if pace is None else pace.cycles

    assert cycles_of(protocol(), 1) == "clock"
    assert cycles_of(protocol(checkpoints="cycles", cycles=3), 9) == 3
    anchored = protocol(checkpoints="anchors", anchors=2)
    assert [cycles_of(anchored, number) for number in (1, 2, 3)] == [None, None, "clock"]
