"""What `resume` measures of a run that was broken off, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.analysis.facts import TrialFacts
from pgdyno.model.wording import listed, plural


@dataclass(frozen=True, slots=True)
class Left:
    """What `resume` measures of a run."""

    trials: tuple[str, ...]  # in words; (): nothing
    rounds: int  # that there will be then; 0: nothing is left


def left_of(trials: Sequence[TrialFacts], looks: Sequence[int]) -> Left:
    """What is left.

    Args:
        trials: All of them, finished or not.
        looks: Rounds after which is looked; none: all rounds are measured.
    """
    begun = {one.round for one in trials if one.state != "planned"}
    left = sum(one.round not in begun for one in trials)
    rest = [f"the {plural(left, 'trial that is left', 'trials that are left')}"] if left else []
    found = (*rest, *_measured_again(trials, looks))
    return Left(found, max((one.round for one in trials), default=0) if found else 0)


def _measured_again(trials: Sequence[TrialFacts], looks: Sequence[int]) -> list[str]:
    """Which rounds `resume` measures once more, see `plan.remaining`; none: of none it is known.

    Of failures in a plan with looks it depends on what the last look saw.
    """
    failed = {one.round for one in trials
              if not looks and one.state in ("failed", "invalid") and one.attempt == 1}  # fmt: skip
    unended = {one.round for one in trials if one.state in ("planned", "running")}
    torn = unended & {one.round for one in trials if one.state != "planned"} - failed
    again = []
    for rounds, one, many in (
        (failed, "a trial of it failed or was invalid", "trials of them failed or were invalid"),
        (torn, "it was interrupted", "they were interrupted"),
    ):
        names = listed([str(each) for each in sorted(rounds)])
        if len(rounds) == 1:
            again.append(f"round {names} again ({one})")
        elif rounds:
            again.append(f"rounds {names} again ({many})")
    return again
