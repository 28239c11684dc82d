"""Counters of the server's caches of transaction states, from pg_stat_slru. Versions 13 to 18.

Commit status, subtransactions, multixacts and their like are read in pages through caches of their
own, which a busy server can outgrow: a page read is a wait of a backend that holds a tuple.

`reads`, `hits`, `writes`, `zeroed` (made anew) and `exists` (looked for on disk) count pages,
`flushes` and `truncates` whole caches. What the checkpointer does of it, all flushes among it, it
tells when it ends, so that it stands still in a window (seen of 15 and 18).

Names are those of 17. Source: PostgreSQL, "The Cumulative Statistics System", pg_stat_slru.
"""

from __future__ import annotations

from collections.abc import Iterable

from pgdyno.model.server_views import SLRU
from pgdyno.sample.lacking import major_of, not_before
from pgdyno.sample.prepared import Prepared
from pgdyno.sample.sampler import Column, Found, Row, Sampler, Subject

FIRST_MAJOR = 13
_COUNTERS = {  # by the view's name of each
    "blks_read": "reads",
    "blks_hit": "hits",
    "blks_written": "writes",
    "blks_zeroed": "zeroed",
    "blks_exists": "exists",
    "flushes": "flushes",
    "truncates": "truncates",
}
_NAMES_BEFORE_17 = {
    "CommitTs": "commit_timestamp",
    "MultiXactMember": "multixact_member",
    "MultiXactOffset": "multixact_offset",
    "Notify": "notify",
    "Serial": "serializable",
    "Subtrans": "subtransaction",
    "Xact": "transaction",
}
_QUERY = f"SELECT name, {', '.join(_COUNTERS)} FROM pg_stat_slru ORDER BY name"  # noqa: S608


def row_of(counted: Iterable[tuple[str | int, ...]]) -> Row:
    """One value for each cache and counter, e.g. `slru.transaction.reads`."""
    return {
        f"slru.{_NAMES_BEFORE_17.get(str(cache), cache)}.{counter}": float(value)
        for cache, *values in counted
        for counter, value in zip(_COUNTERS.values(), values, strict=True)
    }


def sampler(subject: Subject) -> Found:
    """Counters of each cache; None where there is no session to ask."""
    if (session := subject.session) is None:
        return None
    if (major := major_of(session)) < FIRST_MAJOR:
        return not_before(SLRU, major, FIRST_MAJOR)
    prepared = Prepared(session, _QUERY)

    def take() -> Row:
        return row_of(prepared.rows())

    columns = tuple(Column(name, "1") for name in take())
    return Sampler("slru", columns, take)
