"""How far a run is, from what its listeners are told: trial, phase, rates, and the time left."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pgdyno.model.plan import Plan
from pgdyno.model.progress import (
    DriveProgress,
    Event,
    LoadProgress,
    LookTaken,
    PgbenchProgress,
    PhaseBegun,
    RunBegun,
    StepBegun,
    TrialEnded,
)
from pgdyno.model.run import TrialRecord
from pgdyno.model.units import bytes_text, count_text, seconds_text
from pgdyno.model.wording import plural

PHASES = {
    "prepare": "making the database that each trial gets a copy of",
    "load": "loading the fixture",
    "check": "checking consistency",
    "setup": "running the plan's own SQL",
    "keep": "keeping the fixture",
    "restore": "restoring the fixture",
    "start": "starting the server",
    "standby": "making its standby",
    "synchronous": "waiting for the standby to be synchronous",
    "guard": "waiting for the guard",
    "prewarm": "reading data into memory",
    "replica": "waiting for the replica",
    "checkpoint": "checkpoint",
    "recover": "crash and recovery",
    "drive": "driving",
    "wal": "reading the WAL of the window",
    "profile": "taking a profile",
}
"""What is done in a phase, in a few words."""
DRIVEN = {"warmup": "warm-up"}
"""Of the driver's phases, those whose word is another one."""
STARTING = "starting"
_NAME_MIN = 16  # columns of a stage's name in a line on a trial


@dataclass(frozen=True, slots=True)
class Moment:
    """A run at a moment."""

    phase: str  # a key of `PHASES`, or another word
    done: int  # trials that have ended since it began, or went on
    todo: int  # trials that it was to measure then
    left_s: float  # for the whole plan, about
    share: float = 0.0  # of the trial that is measured, by what trials take; 0 to 1
    number: int | None = None  # of the trial; None: none is measured yet
    trials: int = 0  # of the plan
    round: int | None = None
    stage: str | None = None
    step: str | None = None  # of an experiment without stages
    load: LoadProgress | None = None
    drive: DriveProgress | None = None
    latency_s: float | None = None  # mean of the last second; None: the driver does not tell it
    may_end_early: bool = False  # what the driver does: with a checkpoint, before its time is over
    is_late: bool = False  # the trial takes longer than was expected: what is left is the least

    @property
    def phase_text(self) -> str:
        """The phase in a few words."""
        return PHASES.get(self.phase, self.phase)

    @property
    def left_text(self) -> str:
        """The time left; the others of a plan may take as long as a trial that is late."""
        return f"{'at least ' if self.is_late else ''}{seconds_text(self.left_s)}"


class RunProgress:
    """Follows the events of a run.

    Args:
        clock: Seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.plan: Plan | None = None
        self.todo = 0
        self.done = 0
        self.trial: TrialRecord | None = None
        self.phase = STARTING
        self.step: str | None = None
        self.state: LoadProgress | DriveProgress | None = None
        self._overhead_s: list[float] = []
        self._began = self._trial_began = clock()

    def hear(self, event: Event) -> None:
        """Take in what happened."""
        match event:
            case RunBegun():
                self.plan, self.todo, self.done = event.plan, event.todo, 0
                self.step = None  # what came before it
                self._began = self._clock()
            case PhaseBegun():
                if event.trial is not self.trial:
                    self._trial_began = self._clock()
                self.trial, self.phase, self.state = event.trial, event.name, None
            case LoadProgress() | DriveProgress():
                self.state = event
            case TrialEnded():
                self._trial_ends()
            case LookTaken():
                self.todo = self.done + event.left
            case StepBegun():
                self.step = event.what
            case _:
                pass  # what is said of a run changes nothing of where it is

    def _trial_ends(self) -> None:
        assert self.plan is not None, "a trial ended before its run began"
        self.done += 1
        measuring = self.plan.protocol.warmup_s + self.plan.protocol.window_s
        self._overhead_s.append(max(0.0, self._clock() - self._trial_began - measuring))

    def head_of(self, trial: TrialRecord) -> str:
        """What a line on a trial begins with, as wide as those on the others of its plan."""
        assert self.plan is not None, "a trial ended before its run began"
        count = f"{len(self.plan.trials)}"
        rounds = max(len(f"{one.round}") for one in self.plan.trials)
        names = max(_NAME_MIN, *(len(one.stage) for one in self.plan.trials))
        return (
            f"trial {trial.number:>{max(2, len(count))}} of {count}"
            f"  round {trial.round:>{rounds}}  {trial.stage:<{names}}"
        )

    def left_s(self) -> float:
        """Seconds left for the whole plan, by what the trials so far took besides measuring.

        Before one has ended, by the plan's own estimate, of which the fixture takes its part.
        """
        each = self._each_s()
        if self.plan is None or self._overhead_s:
            return max(0.0, (self.todo - self.done) * each - self._begun_s(each))
        fixture_s = (self._trial_began if self.trial else self._clock()) - self._began
        measuring_s = self.todo * self.plan.estimate.measuring_s / max(1, len(self.plan.trials))
        return max(0.0, max(self.todo * each - fixture_s, measuring_s) - self._begun_s(each))

    def left_text(self) -> str:
        """The same for people; of a plan that stops when it is decided, it is the most."""
        may_stop = self.plan is not None and self.plan.protocol.looks
        until = "if no look decides" if may_stop else "for the plan"
        return f"{self.moment().left_text} left {until}"

    @property
    def place_text(self) -> str:
        """Which trial it is at, by the number that its line has when it has ended."""
        if self.plan is None or self.trial is None:
            return "fixture"
        return f"trial {self.trial.number} of {len(self.plan.trials)}"

    @property
    def may_end_early(self) -> bool:
        """Whether the driver's phase ends with a checkpoint, and its seconds are the most."""
        if self.plan is None or self.trial is None or not isinstance(self.state, DriveProgress):
            return False
        follows = self.plan.stage(self.trial.stage).checkpoints
        whole = follows == "anchors" and self.trial.round <= self.plan.protocol.anchors
        return (follows == "cycles" or whole) and self.state.phase in ("warmup", "window")

    @property
    def is_late(self) -> bool:
        """Whether a trial takes longer than one was expected to."""
        if self.trial is None or self.done >= self.todo:
            return False
        return self._clock() - self._trial_began > self._each_s()

    def _each_s(self) -> float:
        """Seconds that a trial takes, about."""
        if self.plan is None:
            return 0.0
        protocol, spent, planned = self.plan.protocol, self._overhead_s, self.plan.estimate
        if not spent:  # windows of whole checkpoint cycles take longer than the protocol's least
            return (planned.measuring_s + planned.other_s) / max(1, len(self.plan.trials))
        return protocol.warmup_s + protocol.window_s + sum(spent) / len(spent)

    def _begun_s(self, each: float) -> float:
        """Seconds since the trial began that is measured, at most those that it takes."""
        return min(self._clock() - self._trial_began, each) if self.trial else 0.0

    def moment(self) -> Moment:
        """Where it is now."""
        trial, state, each = self.trial, self.state, self._each_s()
        return Moment(
            phase=self.phase, done=self.done, todo=self.todo, left_s=self.left_s(),
            share=self._begun_s(each) / each if each else 0.0,
            number=trial.number if trial else None,
            trials=len(self.plan.trials) if self.plan else 0,
            round=trial.round if trial else None,
            stage=trial.stage if trial else None,
            step=self.step,
            load=state if isinstance(state, LoadProgress) else None,
            drive=state if isinstance(state, DriveProgress) else None,
            latency_s=state.latency_s if isinstance(state, PgbenchProgress) else None,
            may_end_early=self.may_end_early, is_late=self.is_late,
        )  # fmt: skip


def loading_text(state: LoadProgress) -> str:
    """How far a load is, in a line."""
    return (
        f"{state.phase}: {count_text(state.rows)} of"
        f" {plural(state.rows_total, 'row', thousands=True)},"
        f" {bytes_text(state.bytes_per_s)}/s, {seconds_text(state.seconds_left or 0)} left"
    )


def driving_text(state: DriveProgress, *, at_most: bool = False) -> str:
    """How far a driven window is, in a line.

    Args:
        state: What the driver told last.
        at_most: Its phase ends with a checkpoint, which may come sooner.
    """
    name = DRIVEN.get(state.phase, state.phase)
    text = f"{name}: {rates_text(state.last_second)} now, {phase_left_text(state, at_most=at_most)}"
    counts = {"failed": state.failed, "retries": state.retries, "reconnects": state.reconnects}
    return ", ".join([text, *(f"{count} {name}" for name, count in counts.items() if count)])


def phase_left_text(state: DriveProgress, *, at_most: bool) -> str:
    """Of what the driver does, how long it goes on."""
    return f"{state.phase_left_s:.0f} s of it left" + " at most" * at_most


def rates_text(second: Mapping[str, int]) -> str:
    """The same as `rates`, in words."""
    return " and ".join(f"{count_text(value)} {unit}" for unit, value in rates(second).items())


def rates(second: Mapping[str, int]) -> dict[str, float]:
    """What was committed in a second, by kind, as the rates that people ask for, by their names."""
    total = sum(second.values())
    if "new_order" not in second:
        return {"tps": total}
    return {"tpmTotal": 60 * total, "NOPM": 60 * second["new_order"]}
