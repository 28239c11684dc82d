"""What a window holds of the checkpoint cycle."""

from __future__ import annotations

import pytest

from pgdyno.model.errors import PgdynoError
from pgdyno.stats.finding import Clear, Finding, Unknown
from pgdyno.stats.window import Checkpoint, checkpoint_facts, cycles_by_begins

EVERY_MINUTE = [Checkpoint(60.0 * number, 60.0 * number + 45) for number in range(6)]


def test_whole_cycles_are_clear() -> None:
    facts = checkpoint_facts(EVERY_MINUTE, 75, 195)
    assert facts.cycles == pytest.approx(2.0)
    assert facts.phase_start == pytest.approx(0.25)
    assert facts.phase_end == pytest.approx(0.25)
    assert facts.whole is True
    assert (facts.completed, facts.started) == (2, 2)
    assert facts.running_at_start
    assert facts.running_at_end
    assert facts.share == pytest.approx(0.75)
    assert isinstance(facts.answer, Clear)


def test_one_and_a_half_cycles_are_a_finding() -> None:
    facts = checkpoint_facts(EVERY_MINUTE, 60, 150)
    assert facts.cycles == pytest.approx(1.5)
    assert facts.whole is False
    assert isinstance(facts.answer, Finding)
    assert "not in proportion" in facts.answer.fact


@pytest.mark.parametrize("checkpoints", [[], [Checkpoint(0, 5)], [Checkpoint(90, 95)]])
def test_no_checkpoint_means_its_cost_is_not_in_the_number(checkpoints: list[Checkpoint]) -> None:
    facts = checkpoint_facts(checkpoints, 10, 70)
    assert isinstance(facts.answer, Finding)
    expected = "no checkpoint in the window: the cost of checkpoints is not in this number"
    assert facts.answer.fact == expected
    assert facts.whole is False
    assert facts.share == 0


def test_one_checkpoint_alone_does_not_tell_the_cycle() -> None:
    facts = checkpoint_facts([Checkpoint(20, 50)], 10, 70)
    assert (facts.completed, facts.cycles, facts.whole) == (1, None, None)
    assert facts.share == pytest.approx(0.5)
    assert isinstance(facts.answer, Unknown)


def test_a_checkpoint_under_way_at_both_ends_fills_the_window() -> None:
    facts = checkpoint_facts([Checkpoint(0, None)], 10, 70)
    assert facts.running_at_start
    assert facts.running_at_end
    assert facts.share == 1
    assert facts.completed == 0
    assert isinstance(facts.answer, Unknown)


def test_a_lost_end_does_not_outlast_the_next_checkpoint() -> None:
    facts = checkpoint_facts([Checkpoint(0, None), Checkpoint(30, 40)], 0, 60)
    assert facts.share == pytest.approx(40 / 60)
    assert facts.completed == 1


def test_unrecorded_checkpoints_are_unknown() -> None:
    facts = checkpoint_facts(None, 10, 70)
    assert isinstance(facts.answer, Unknown)
    assert facts.whole is None


def test_order_does_not_matter() -> None:
    assert checkpoint_facts(EVERY_MINUTE[::-1], 75, 195) == checkpoint_facts(EVERY_MINUTE, 75, 195)


def test_times_that_run_backwards_are_refused() -> None:
    with pytest.raises(PgdynoError, match="window from 70 to 10 s"):
        checkpoint_facts([], 70, 10)
    with pytest.raises(PgdynoError, match="checkpoint from 5 to 3"):
        checkpoint_facts([Checkpoint(5, 3)], 10, 70)


def test_a_sliver_of_a_cycle_is_no_whole_one() -> None:
    facts = checkpoint_facts(EVERY_MINUTE, 62, 65)
    assert facts.cycles == pytest.approx(0.05)
    assert facts.whole is False
    assert isinstance(facts.answer, Finding)


def test_begins_alone_tell_whole_cycles_and_that_those_before_have_ended() -> None:
    completed, answer = cycles_by_begins([30.0, 60.0, 90.0, 120.0], 60.1, 120.1)
    assert completed == 2
    assert isinstance(answer, Clear)
    assert "2.0 checkpoint cycles, by begins that the server's counters tell" in answer.fact


def test_begins_that_leave_a_part_of_a_cycle_over_are_found() -> None:
    completed, answer = cycles_by_begins([0.0, 60.0, 120.0, 180.0], 60.0, 150.0)
    assert completed is None, "whether the last one has ended is not known"
    assert isinstance(answer, Finding)


@pytest.mark.parametrize("begins", [[], [70.0], [10.0, 40.0]])
def test_a_window_beyond_the_known_begins_is_not_known(begins: list[float]) -> None:
    completed, answer = cycles_by_begins(begins, 60.0, 150.0)
    assert completed is None
    assert isinstance(answer, Unknown)


def test_what_was_not_recorded_says_why() -> None:
    answer = checkpoint_facts(None, 0, 60).answer
    assert isinstance(answer, Unknown)
    assert "no log of the server" in answer.fact
