"""When warm-up and window of a driven run end, where the server's checkpoints decide it.

A pace is asked ten times a second and answers by the count of checkpoints that have begun. It knows
neither server nor process: who counts is given to it, who is told is its caller.

* Whole cycles: the window begins with a checkpoint after the warm-up, and ends with another one.
  The first two cycles of a trial lie in the warm-up: nothing was dirty when the first began, so
  that it writes nothing, runs faster for that, and leaves more to write to the second.
* An anchor: the window begins by the clock, and lasts until a share of the second cycle has passed;
  both cycles begin within the load, at its begin and at the first checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from pgdyno.model.cycle import ANCHOR_CYCLES, WARM_CYCLES, Checkpoints, Followed, Spacing
from pgdyno.model.plan import Protocol
from pgdyno.model.steady_clock import steady_unix_ns

Turn = Literal["open", "stop"]
OPEN: Turn = "open"
STOP: Turn = "stop"

_LATE_SHARE = 1.1  # of checkpoint_timeout: a checkpoint by time begins no later
_LATE_S = 5.0


@dataclass(slots=True)
class Pace:
    """Follows one run; `turn` changes it."""

    begun: Callable[[], int]  # checkpoints that have begun since somebody began to count
    warmup_s: float  # at least
    window_s: float  # at least
    cycles: int | None  # whole ones in the window, at least; None: an anchor
    spacing: Spacing  # of the server's checkpoints
    unix_ns: Callable[[], int] = field(default_factory=steady_unix_ns)
    begins_ns: list[int] = field(default_factory=list)  # when each was noticed
    has_opened: bool = False
    has_stopped: bool = False
    _known: int | None = None
    _phase: str = ""
    _phase_s: float = 0.0  # when it was first heard of
    _load_s: float = 0.0  # start of the load
    _load_ns: int | None = None
    _seen_s: list[float] = field(default_factory=list)
    _opened_after: int = 0

    @property
    def longest_s(self) -> float:
        """How long a cycle can last where anything is written at all."""
        return self.spacing.timeout_s * _LATE_SHARE + _LATE_S

    @property
    def warmup_max_s(self) -> float:
        """When the window begins at the latest."""
        if self.cycles is None:
            return self.warmup_s
        return self.warmup_s + WARM_CYCLES * self.longest_s

    @property
    def window_max_s(self) -> float:
        """How long it lasts at most; by that time nothing is left to wait for."""
        cycles = ANCHOR_CYCLES if self.cycles is None else self.cycles + 1
        return self.window_s + cycles * self.longest_s

    def followed(self, window_ns: tuple[int, int]) -> Followed:
        """What it saw, once the run has ended with this window."""
        begin_ns = window_ns[0] if self._load_ns is None else self._load_ns
        load_ns = (begin_ns, window_ns[1])
        return Followed(self.cycles, tuple(self.begins_ns), load_ns, self.spacing)

    def turn(self, phase: str, now_s: float) -> Turn | None:
        """What the driver is to do now.

        Args:
            phase: Of the driver, as it told last: connect, warmup, window, drain.
            now_s: Any clock that goes evenly.
        """
        self._count(now_s)
        if phase != self._phase:
            self._phase, self._phase_s = phase, now_s
            if phase in ("warmup", "window") and self._load_ns is None:
                self._load_s, self._load_ns = now_s, self.unix_ns()
                self._seen_s.clear()  # what began before the load is no cycle of it
                self.begins_ns.clear()
        if phase == "warmup" and self._may_open(now_s):
            self.has_opened, self._opened_after = True, len(self._seen_s)
            return OPEN
        if phase == "window" and not self.has_stopped and self._may_stop(now_s):
            self.has_stopped = True
            return STOP
        return None

    def _count(self, now_s: float) -> None:
        count = self.begun()
        if self._known is not None and count > self._known:
            self._seen_s.append(now_s)
            self.begins_ns.append(self.unix_ns())
        self._known = count

    def _may_open(self, now_s: float) -> bool:
        if self.cycles is None or self.has_opened:
            return False
        fresh = len(self._seen_s) >= WARM_CYCLES and self._seen_s[-1] == now_s
        return fresh and now_s - self._load_s >= self.warmup_s

    def _may_stop(self, now_s: float) -> bool:
        lasted_s = now_s - self._phase_s
        if lasted_s < self.window_s:
            return False
        if self.cycles is None:
            return self._has_anchored(now_s)
        if not self.has_opened:  # none began within the longest time there is: none will
            return True
        fresh = bool(self._seen_s) and self._seen_s[-1] == now_s
        return fresh and len(self._seen_s) - self._opened_after >= self.cycles

    def _has_anchored(self, now_s: float) -> bool:
        if not self._seen_s:
            return now_s - self._load_s > self.longest_s
        first_s = self._seen_s[0] - self._load_s
        return now_s - self._load_s >= ANCHOR_CYCLES * first_s


def pace_of(
    protocol: Protocol,
    checkpoints: Checkpoints,
    round_number: int,
    begun: Callable[[], int],
    spacing: Spacing,
) -> Pace | None:
    """The pace of a trial whose stage follows checkpoints so; None: the clock's alone."""
    if checkpoints == "cycles":
        cycles: int | None = protocol.cycles
    elif checkpoints == "anchors" and round_number <= protocol.anchors:
        cycles = None
    else:
        return None
    return Pace(begun, protocol.warmup_s, protocol.window_s, cycles, spacing)
