"""Reads and writes that are under way at once: pg_aios. Version 18.

Tally `aio`, one key for each that a sample meets: operation, its state, what it goes to. Its count
a sample is the depth of the server's own queue. It is looked once a second, with full telemetry ten
times. Source: PostgreSQL, "pg_aios".
"""

from __future__ import annotations

from pgdyno.model.server_views import AIO
from pgdyno.sample.lacking import major_of, not_before, not_granted, reads_all_statistics
from pgdyno.sample.prepared import Prepared
from pgdyno.sample.sampler import Found, Subject, Tally

FIRST_MAJOR = 18
_QUERY = """
SELECT coalesce(operation, ''), coalesce(state, ''), coalesce(target, '') FROM pg_aios
WHERE operation IS DISTINCT FROM 'invalid'"""
_INTERVAL_S = {"default": 1.0, "full": 0.1}


def sampler(subject: Subject) -> Found:
    """The tally, or why there is none; None without a session to ask."""
    if (session := subject.session) is None:
        return None
    if (major := major_of(session)) < FIRST_MAJOR:
        return not_before(AIO, major, FIRST_MAJOR)
    if not reads_all_statistics(session):
        return not_granted(session, AIO, "which reads and writes are under way")
    interval_s = _INTERVAL_S["full" if subject.telemetry == "full" else "default"]
    prepared = Prepared(session, _QUERY)
    return Tally("aio", ("operation", "state", "target"), prepared.rows, interval_s)
