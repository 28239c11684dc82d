"""How one sampler fares: how often it was read, what that cost, and how long it told nothing."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.sampler_gaps import GAP_S

RETRY_S = 1.0  # after a failure that may pass
_SLOW = "the answers took so long"


@dataclass(slots=True)
class Account:
    """What one sampler did so far; times are of one steady clock, in seconds."""

    interval_s: float = 0.0
    takes: int = 0
    late: int = 0  # times that went by, since others were still being read
    untold: int = 0  # times that it was due, and could not be read
    cpu_ns: int = 0
    failure: str | None = None  # it was given up for
    gap_s: float = 0.0  # all gaps together
    gap_reason: str = ""  # of the last failure
    _told_s: float | None = None  # when it last told something, or was first asked
    _failing: str = ""  # why it tells nothing now

    @property
    def lost(self) -> int:
        """Times that it was due, and told nothing."""
        return self.late + self.untold

    def told(self, now_s: float) -> None:
        """It was read."""
        self.takes += 1
        self._close(now_s)

    def failed(self, now_s: float, why: str) -> None:
        """It could not be read, and is asked again."""
        self._failing = self._failing or why
        if self._told_s is None:
            self._told_s = now_s

    def ended(self, now_s: float) -> None:
        """It is not read any more: what it still owes is a gap."""
        if self._failing:
            self._close(now_s)

    def _close(self, now_s: float) -> None:
        if self._told_s is not None:
            silent_s = now_s - self._told_s
            if self._failing or silent_s > self.interval_s + GAP_S:
                self.gap_s += silent_s
                self.gap_reason = self._failing or self.gap_reason or _SLOW
        self._told_s, self._failing = now_s, ""
