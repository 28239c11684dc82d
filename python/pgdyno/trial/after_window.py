"""What is done between a trial's window and its server's stop: a disaster, or a check.

Each is a module with a function `action`: what strikes lies in `trial/disasters`, what looks
whether the data survived in `trial/checks`. `actions_after_window` finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pgdyno.model.connection import Connection
from pgdyno.model.description import Description
from pgdyno.model.plan import Protocol
from pgdyno.model.run import TrialResult
from pgdyno.sample.server_log import LogSummary
from pgdyno.target.interface import Target

Learned = Callable[[TrialResult, LogSummary | None], TrialResult]
"""Adds what was learned to the trial's result; the server's log was read after all actions."""


@dataclass(frozen=True, slots=True)
class EndedWindow:
    """A server whose window has ended."""

    target: Target
    databases: Sequence[Connection]  # that were driven
    description: Description  # of what was driven
    protocol: Protocol
    round_number: int
    servers: Sequence[str] = ()  # of the databases, where each has one of its own


@dataclass(frozen=True, slots=True)
class Action:
    """Something that is done to it."""

    phase: str  # what listeners are told
    act: Callable[[], Learned]
    at_once: bool = False  # it has to find the server as the load left it: no WAL is read before
