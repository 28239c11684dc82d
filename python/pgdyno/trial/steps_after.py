"""The steps between a trial's window and its server's stop, found by where they lie."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.model.by_location import modules_of
from pgdyno.trial import checks, disasters
from pgdyno.trial.step import After, Step


def steps_after(after: After) -> Iterator[Step]:
    """The steps that the protocol asks for: what strikes first, then what is looked at."""
    for package in (disasters, checks):
        for module in modules_of(package.__name__):
            step: Step | None = module.step(after)
            if step is not None:
                yield step
