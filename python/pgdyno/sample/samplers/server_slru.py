"""Counters of the server's caches of transaction states, from pg_stat_slru. Versions 13 to 18.

Commit status, subtransactions, multixacts and their like are read in pages through caches of their
own, which a busy server can outgrow: a page read is a wait of a backend that holds a tuple.

Names are those of 17. Source: PostgreSQL, "The Cumulative Statistics System", pg_stat_slru.
"""

from __future__ import annotations

from collections.abc import Iterable

from pgdyno.sample.sampler import Column, Row, Sampler, Subject

FIRST_MAJOR = 13
_COUNTERS = ("reads", "hits", "writes")  # in the order of the query
_NAMES_BEFORE_17 = {
    "CommitTs": "commit_timestamp",
    "MultiXactMember": "multixact_member",
    "MultiXactOffset": "multixact_offset",
    "Notify": "notify",
    "Serial": "serializable",
    "Subtrans": "subtransaction",
    "Xact": "transaction",
}
_QUERY = "SELECT name, blks_read, blks_hit, blks_written FROM pg_stat_slru ORDER BY name"


def row_of(counted: Iterable[tuple[str, int, int, int]]) -> Row:
    """One value for each cache and counter, e.g. `slru.transaction.reads`."""
    return {
        f"slru.{_NAMES_BEFORE_17.get(cache, cache)}.{counter}": float(value)
        for cache, *values in counted
        for counter, value in zip(_COUNTERS, values, strict=True)
    }


def sampler(subject: Subject) -> Sampler | None:
    """Counters of each cache; None before 13, or where there is no session to ask."""
    session = subject.session
    if session is None or session.info.server_version // 10_000 < FIRST_MAJOR:
        return None

    def take() -> Row:
        return row_of(session.execute(_QUERY, prepare=True).fetchall())

    columns = tuple(Column(name, "1") for name in take())
    return Sampler("slru", columns, take)
