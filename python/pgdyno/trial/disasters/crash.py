"""The server is killed under its load, and starts again: how long does recovery take?"""

from __future__ import annotations

from dataclasses import replace

from pgdyno.model.run import TrialResult
from pgdyno.sample.server_log import LogSummary
from pgdyno.trial.step import After, Learned, Step


def step(after: After) -> Step | None:
    """Kill it, where the protocol says so."""

    def act() -> Learned:
        after.target.crash()
        return _with_recovery

    return Step("recover", act) if after.protocol.crash_recovery else None


def _with_recovery(result: TrialResult, log: LogSummary | None) -> TrialResult:
    return result if log is None else replace(result, recovery=log.recovery)
