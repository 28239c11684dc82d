"""A session of the samplers that knows how many transactions it has ended."""

from __future__ import annotations

from typing import Any

import psycopg


class CountingSession(psycopg.Connection[Any]):
    """Counts what is asked through `Prepared` and `undisturbed`: all that is, in a window."""

    committed = 0
    rolled_back = 0
    unsure = ""
    """Why it cannot tell what was ended: a fact, in lower case; empty: it can."""


def ended(session: psycopg.Connection[Any], *, committed: bool) -> None:
    """A transaction of a session ended; those of other kinds of session are not counted."""
    if isinstance(session, CountingSession):
        session.committed += committed
        session.rolled_back += not committed
