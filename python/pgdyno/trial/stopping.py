"""Whether a plan goes on: the looks at its stages while it is measured."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.analysis import words
from pgdyno.analysis.stages import comparison_facts
from pgdyno.analysis.stopping import at_looks, last_rounds, so_far
from pgdyno.model.plan import Plan, Trial
from pgdyno.model.progress import LookTaken
from pgdyno.model.run import TrialRecord, TrialState
from pgdyno.stats.verdict import Comparison, Verdict
from pgdyno.store.run_file import RunFile
from pgdyno.trial.progress import Listener

_ENDED = (TrialState.FINISHED, TrialState.FAILED, TrialState.INVALID, TrialState.DEGRADED)


class Stopping:
    """Takes the looks of a plan when they are due; a plan without looks needs all its trials.

    Before, or where there are none, a ratio is told as soon as both of its trials have ended, and
    nothing is decided: whoever watches has a first result after two trials. Rounds 1, 2, 4, 8 and
    so on tell it, as what later ones add is ever less.

    Args:
        plan: The plan.
        run: Its run file, asked for what was measured.
        listener: Told what each look says.
    """

    def __init__(self, plan: Plan, run: RunFile, listener: Listener) -> None:
        self._plan, self._run, self._listener = plan, run, listener
        self._judge, self._host = at_looks if plan.protocol.looks else so_far, run.info().host
        self._compared = self._look(run.trials())

    def needs(self, trial: Trial | TrialRecord) -> bool:
        """Whether the looks so far leave this trial to be measured."""
        if not self._plan.protocol.looks:
            return True
        return trial.round <= last_rounds(self._compared).get(trial.stage, trial.round)

    def after(self, trial: Trial) -> None:
        """Look, if this trial was the last of a round with a look; before, tell what it adds."""
        looks = self._plan.protocol.looks
        is_early = not looks or trial.round < looks[0]
        if is_early and trial.round.bit_count() != 1:
            return
        trials, before = self._run.trials(), self._compared
        same_round = [one for one in trials if one.round == trial.round and self.needs(one)]
        if not is_early and any(one.state not in _ENDED for one in same_round):
            return
        self._compared = self._look(trials)
        if is_early:  # what this trial adds, not what rounds added that were not told of
            without = self._look([one for one in trials if one.number != trial.number])
            known = {one.stage: one.n for one in without}
            fresh = [one for one in self._compared if one.n > known.get(one.stage, 0)]
        else:
            fresh = [one for one in self._compared if one.look == trial.round]
        left = sum(self.needs(one) for one in trials if one.state is TrialState.PLANNED)
        if not looks and not left:
            return  # the answer follows at once
        if fresh and trial.round not in {one.look for one in before}:
            until = f"before round {looks[0]}" if looks else "before the end"
            judged = [one for one in fresh if one.verdict is not Verdict.NOT_JUDGED]
            said = tuple(_line(one, until) for one in judged)
            self._listener(LookTaken(trial.round, said, left, decides=not is_early))

    def _look(self, trials: Sequence[TrialRecord]) -> tuple[Comparison, ...]:
        return self._judge(self._plan, self._host, trials, self._run.replaced())


def _line(one: Comparison, until: str) -> str:
    facts = comparison_facts(one)
    if one.look is None:
        return f"{one.stage} so far {words.ratio(facts)} of {one.base}; nothing is decided {until}"
    share = words.confidence(one.confidence)
    goes_on = "measured no further" if one.stopped else "goes on"
    return (
        f"{one.stage} is {one.verdict} at {words.ratio(facts)} of {one.base}"
        f" ({share} interval {words.interval(facts)}), {goes_on}"
    )
