"""What is done between a trial's window and its server's stop, found by where it lies."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.model.by_location import modules_of
from pgdyno.trial import checks, disasters
from pgdyno.trial.after_window import Action, EndedWindow


def actions_after_window(ended: EndedWindow) -> Iterator[Action]:
    """What the protocol asks for: what strikes first, then what is looked at."""
    for package in (disasters, checks):
        for module in modules_of(package.__name__):
            action: Action | None = module.action(ended)
            if action is not None:
                yield action
