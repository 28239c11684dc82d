"""What is done to a trial's server between its window and its stop: disasters, then checks.

Both are found by where they lie, one module each with a function `step`: what strikes in
`experiment/disasters`, what looks whether the data survived in `experiment/checks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pgdyno.experiment import checks, disasters
from pgdyno.model.by_location import modules_of
from pgdyno.model.connection import Connection
from pgdyno.model.description import Description
from pgdyno.model.plan import Protocol
from pgdyno.model.run import TrialResult
from pgdyno.sample.server_log import LogSummary
from pgdyno.target.interface import Target

Learned = Callable[[TrialResult, LogSummary | None], TrialResult]
"""Adds what a step learned to the trial's result; the server's log was read after all steps."""


@dataclass(frozen=True, slots=True)
class After:
    """A server whose window has ended."""

    target: Target
    databases: Sequence[Connection]  # that were driven
    description: Description  # of what was driven
    protocol: Protocol
    round_number: int


@dataclass(frozen=True, slots=True)
class Step:
    """Something that is done to it."""

    phase: str  # what listeners are told
    act: Callable[[], Learned]


def steps_after(after: After) -> Iterator[Step]:
    """The steps that the protocol asks for, in order."""
    for package in (disasters, checks):
        for module in modules_of(package.__name__):
            step: Step | None = module.step(after)
            if step is not None:
                yield step
