"""The rate of the trial that is measured, second by second; longer ones are averaged."""

from __future__ import annotations

from pgdyno.live.run_progress import Moment, rates

POINTS_MAX = 240


class Line:
    """Follows the driver's full seconds; begins anew with each trial."""

    def __init__(self) -> None:
        self._trial: tuple[int | None, str | None] = (None, None)
        self._begin()

    def _begin(self) -> None:
        self._told_s = -1
        self._sums: list[tuple[float, int]] = []  # of a step: the rates told in it, how many
        self.step_s = 1
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
        self._take(second, rate)

    def _take(self, second: int, rate: float) -> None:
        while second // self.step_s >= POINTS_MAX:
            pairs = zip(self._sums[::2], [*self._sums[1::2], (0.0, 0)], strict=False)
            self._sums = [(a + b, n + m) for (a, n), (b, m) in pairs]
            self.step_s *= 2
        at = second // self.step_s
        self._sums += [(0.0, 0)] * (at + 1 - len(self._sums))
        total, told = self._sums[at]
        self._sums[at] = (total + rate, told + 1)

    @property
    def values(self) -> list[float | None]:
        """One for each step since the begin; None where the driver told nothing."""
        return [round(total / told, 1) if told else None for total, told in self._sums]
