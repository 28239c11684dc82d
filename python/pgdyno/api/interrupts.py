"""Ctrl-C in a call that keeps nothing: an error of ours, as everything else that ends a call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pgdyno.model.errors import Interrupted


@contextmanager
def interruptible(fact: str, hint: str) -> Iterator[None]:
    """Raise what Ctrl-C raises as an error of ours.

    Args:
        fact: What was stopped.
        hint: What is left of it, as a sentence.

    Raises:
        Interrupted: Ctrl-C.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(fact, hint) from None
