"""What goes over the pipes between a run and the worker that shows it: lines of JSON.

The token goes this way too, so that it stands on no command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pgdyno.live.address import Address
from pgdyno.live.run_progress import Moment
from pgdyno.model.glance import Glance

Outcome = Literal["ended", "stopped", "failed", "lost"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the worker is to serve: its first line."""

    token: str
    page: Address | None
    metrics: Address | None


@dataclass(frozen=True, slots=True)
class Serving:
    """Where it serves, or why it cannot: its first answer."""

    page: Address | None = None
    metrics: Address | None = None
    fact: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Began:
    """The run begins, or goes on."""

    path: str  # of the run file, absolute


@dataclass(frozen=True, slots=True)
class End:
    """The run is over."""

    outcome: Outcome
    text: str  # a sentence
    report: str | None = None  # its file


@dataclass(frozen=True, slots=True)
class Message:
    """A line to the worker; what is None is not told in it."""

    began: Began | None = None
    moment: Moment | None = None
    stored: bool = False  # a trial has been, since the last time that this was said
    note: str | None = None
    glance: Glance | None = None
    end: End | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What the worker took, its last answer."""

    cpu_s: float
    seconds: float
    viewers: int  # at most at once
