"""The rate of the trial that is measured, second by second; longer ones are averaged."""

from __future__ import annotations

from pydantic import JsonValue

from pgdyno.live.over_time import OverTime
from pgdyno.live.run_progress import Moment, rates


class Line:
    """Follows the driver's full seconds; begins anew with each trial."""

    def __init__(self) -> None:
        self._trial: tuple[int | None, str | None] = (None, None)
        self._begin()

    def _begin(self) -> None:
        self._told_s = -1
        self._rates = OverTime()
        self.window_from_s: float | None = None  # None: still warming up
        self.unit = ""

    def hear(self, moment: Moment) -> None:
        """Take in what is new."""
        drive, trial = moment.drive, (moment.number, moment.stage)
        if trial != self._trial or (drive and int(drive.elapsed_s) < self._told_s):
            self._trial = trial
            self._begin()
        if drive is None:
            return
        second = int(drive.elapsed_s)
        if drive.phase == "window" and self.window_from_s is None:
            self.window_from_s = drive.elapsed_s
        if second <= self._told_s or not drive.last_second:
            return
        self._told_s = second
        self.unit, rate = next(iter(rates(drive.last_second).items()))
        self._rates.take(second, {self.unit: rate})

    @property
    def step_s(self) -> int:
        """How long a step is."""
        return self._rates.step_s

    @property
    def values(self) -> list[float | None]:
        """One for each step since the begin; None where the driver told nothing."""
        return self._rates.values(self.unit)

    @property
    def ends(self) -> list[list[JsonValue] | None]:
        """The least and the greatest of each; nothing where each is a second."""
        return self._rates.ends(self.unit)
