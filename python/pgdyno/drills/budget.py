"""The time that a drill has, shared out over the cuts that are left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import TypeVar

T = TypeVar("T")


class Budget:
    """Time until an instant, or without an end."""

    def __init__(self, seconds: float | None, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._ends = None if seconds is None else clock() + seconds

    def share(self, cuts: int, left: int) -> Budget:
        """The part of what is left now that some of all cuts that are left may take.

        Args:
            cuts: That are to be made in it.
            left: They, and all that come after them.
        """
        if self._ends is None:
            return self
        return Budget(max(0.0, self._ends - self._clock()) * cuts / left, self._clock)

    def within(self, cuts: Sequence[T]) -> Iterator[T]:
        """The first, and further ones as long as there is time: a stage of no cut tells nothing."""
        for number, one in enumerate(cuts):
            if number and self._ends is not None and self._clock() >= self._ends:
                return
            yield one
