"""How long somebody was silent, counted while we listened.

A process that did not run for a while, because its machine was busy or suspended, heard nothing
meanwhile, and what was said to it waits in its pipes. By the clock alone it would take everybody
else for gone. So of the time between two looks only as much counts as passes for one that runs,
and nobody is silent of whom something waits to be read.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import IO

PASS_MAX_S = 1.0
"""Who listens looks at least so often; what passed beyond it, it did not run."""


class Listening:
    """A clock that runs while we listen: it is told of every look, and read by any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._looked_s = clock, clock()
        self.seconds = 0.0

    def look(self) -> None:
        """Count the time since the last look."""
        now_s = self._clock()
        self.seconds += min(now_s - self._looked_s, PASS_MAX_S)
        self._looked_s = now_s


def waits(pipe: IO[str]) -> bool:
    """Whether a pipe that a thread of ours reads holds something it did not get to, or its end."""
    try:
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        return bool(poll.poll(0))
    except ValueError:  # we have closed it
        return False
