"""A run played to its listeners: the events of a made-up run file, as a real run would send them.

Nothing is measured, and no time passes but that of the player.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from pgdyno.model.plan import Plan
from pgdyno.model.progress import DriveProgress, Event, PhaseBegun, RunBegun, TrialEnded
from pgdyno.model.run import TrialRecord, TrialState
from pgdyno.store import RunFile
from tests.data.miniature import WARMUP_S, WINDOW_S

BEFORE = ("restore", "start", "prewarm", "checkpoint")


class Played:
    """A run file that grows trial by trial, out of one that is whole.

    Args:
        whole: The run file that it is taken from.
        path: The one that grows.
    """

    def __init__(self, whole: Path, path: Path) -> None:
        self.path = path
        with RunFile.read(whole) as run:
            info, trials, self._fixtures = run.info(), run.trials(), run.fixtures()
            self._series = {one.number: run.series(one.number) for one in trials}
            self._tallies = {one.number: run.tallies(one.number) for one in trials}
        assert info.plan is not None
        self.plan: Plan = info.plan
        self.trials = trials
        planned = [
            TrialRecord(t.number, t.round, t.stage, t.ident, TrialState.PLANNED) for t in trials
        ]
        with RunFile.create(path, info, planned) as run:
            for fixture in self._fixtures:
                run.put_fixture(fixture)

    def begin(self, done: int = 0) -> RunBegun:
        """The event of a run that begins, or goes on after so many trials."""
        return RunBegun(self.path, self.plan, len(self.trials) - done)

    def trial(self, number: int, *, pause: Callable[[], None] = lambda: None) -> Iterator[Event]:
        """The events of a trial; it is stored before the last of them."""
        record = self.trials[number - 1]
        begun = TrialRecord(
            record.number, record.round, record.stage, record.ident, TrialState.RUNNING
        )
        with RunFile.append(self.path) as run:
            run.put_trial(begun)
        for phase in BEFORE:
            yield PhaseBegun(begun, phase)
        yield PhaseBegun(begun, "drive")
        for second in range(1, WARMUP_S + WINDOW_S + 1):
            pause()
            yield self.driving(number, second)
        with RunFile.append(self.path) as run:
            run.put_trial(record, self._series[number].values(), self._tallies[number].values())
        yield PhaseBegun(begun, "check")
        yield TrialEnded(record)

    def driving(self, number: int, second: int) -> DriveProgress:
        """What the driver tells when a trial has been driven for so many seconds."""
        rates = {
            name.removeprefix("driver.committed."): one.values
            for name, one in self._series[number].items()
            if name.startswith("driver.committed.")
        }
        left = WARMUP_S - second if second <= WARMUP_S else WARMUP_S + WINDOW_S - second
        return DriveProgress(
            phase="warmup" if second <= WARMUP_S else "window",
            phase_left_s=float(left),
            elapsed_s=float(second),
            committed={kind: int(values[:second].sum()) for kind, values in rates.items()},
            last_second={kind: int(values[second - 1]) for kind, values in rates.items()},
            rolled_back=second,
            retries=second // 10,
            connected=8,
        )

    def renamed(self, names: dict[str, str]) -> None:
        """Call stages otherwise, in what is told; the run file is not asked any more."""
        self.trials = [replace(one, stage=names.get(one.stage, one.stage)) for one in self.trials]
