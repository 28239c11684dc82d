"""When something is due that is done over and over: once in each interval, and never made up for.

Pure: whoever keeps to it says what time it is.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor


def at_start() -> float:
    """The place in each interval of what is to be evenly spaced."""
    return 0.0


class Timetable:
    """Due once in each interval from a begin on, at a place in it from 0 to below 1.

    With places drawn at random the times keep their mean distance and are in step with nothing.
    What comes too late for a time skips it; what was skipped is counted in `lost`.
    """

    def __init__(
        self, begin_s: float, interval_s: float, place: Callable[[], float] = at_start
    ) -> None:
        self._begin_s = begin_s
        self._interval_s = interval_s
        self._place = place
        self._number = 0  # of the interval
        self.lost = 0
        self.due_s = self._drawn()

    def done(self, now_s: float) -> None:
        """It was done, and that ended now: the next time is the first that is not past."""
        self._number += 1
        current = floor((now_s - self._begin_s) / self._interval_s)
        if current > self._number:
            self.lost += current - self._number
            self._number = current
        self.due_s = self._drawn()
        if self.due_s < now_s:
            self.lost += 1
            self._number += 1
            self.due_s = self._drawn()

    def ended(self, now_s: float) -> None:
        """Nothing is done any more: intervals that passed meanwhile are lost."""
        self.lost += max(0, floor((now_s - self._begin_s) / self._interval_s) - self._number)

    def _drawn(self) -> float:
        return self._begin_s + (self._number + self._place()) * self._interval_s
