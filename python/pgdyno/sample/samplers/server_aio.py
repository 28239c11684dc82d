"""Reads and writes that are under way at once: pg_aios. Version 18.

Tally `aio`, one key for each that a sample meets: operation, its state, what it goes to. Its count
a sample is the depth of the server's own queue. Source: PostgreSQL, "pg_aios".
"""

from __future__ import annotations

from pgdyno.sample.rights import major_of, not_granted, reads_all_statistics
from pgdyno.sample.sampler import Found, Missing, Subject, Tally

FIRST_MAJOR = 18
_QUERY = """
SELECT coalesce(operation, ''), coalesce(state, ''), coalesce(target, '') FROM pg_aios
WHERE operation IS DISTINCT FROM 'invalid'"""
_INTERVAL_S = 0.5


def sampler(subject: Subject) -> Found:
    """The tally, or why there is none; None without a session to ask."""
    if (session := subject.session) is None:
        return None
    if (major := major_of(session)) < FIRST_MAJOR:
        return Missing("aio", f"PostgreSQL {major} has no pg_aios, {FIRST_MAJOR} has")
    if not reads_all_statistics(session):
        return not_granted(session, "aio", "which reads and writes are under way")

    def take() -> list[tuple[str, ...]]:
        return session.execute(_QUERY, prepare=True).fetchall()

    return Tally("aio", ("operation", "state", "target"), take, interval_s=_INTERVAL_S)
