"""Who is told how an experiment goes, and how long each of its phases took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

from pgdyno.model.glance import Glance
from pgdyno.model.progress import Event, PhaseBegun
from pgdyno.model.run import TrialRecord

Listener: TypeAlias = Callable[[Event], None]


@runtime_checkable
class Onlooker(Protocol):
    """A listener that also has a use for what is sampled while it is sampled."""

    def glance(self, seen: Glance) -> None:
        """Be shown; it is called by a thread of its own, about once a second."""


@dataclass(slots=True)
class Phases:
    """Seconds that each phase of a trial, or of making a fixture, took."""

    listener: Listener
    trial: TrialRecord | None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Tell that a phase begins, and count its seconds; the same name adds up."""
        self.listener(PhaseBegun(self.trial, name))
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began
