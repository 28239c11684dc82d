"""The server is killed under its load, and starts again: how long does recovery take?"""

from __future__ import annotations

from dataclasses import replace

from pgdyno.model.run import TrialResult
from pgdyno.sample.server_log import LogSummary
from pgdyno.trial.after_window import Action, EndedWindow, Learned


def action(ended: EndedWindow) -> Action | None:
    """Kill it, where the protocol says so."""

    def act() -> Learned:
        ended.target.crash()
        return _with_recovery

    return Action("recover", act, at_once=True) if ended.protocol.crash_recovery else None


def _with_recovery(result: TrialResult, log: LogSummary | None) -> TrialResult:
    return result if log is None else replace(result, recovery=log.recovery)
