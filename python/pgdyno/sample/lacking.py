"""What a server does not tell: its version has no such view, a setting is off, a right is lacking.

All of it is said as `Missing`, with what would mend it; nothing is shown as zero instead.
"""

from __future__ import annotations

from typing import Any

import psycopg

from pgdyno.sample.sampler import Missing

_READS_ALL = "SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')"
_REMEDIES = {
    "track_io_timing": "Set track_io_timing = on, which reads the clock twice for each operation.",
    "track_wal_io_timing": "Set track_wal_io_timing = on, which reads the clock twice for each "
    "operation.",
    "data_checksums": "Run pg_checksums --enable while the server is stopped.",
    "track_counts": "Set track_counts = on, without which autovacuum does not run either.",
    "track_activities": "Set track_activities = on.",
}


def major_of(session: psycopg.Connection[Any]) -> int:
    """Major version of its server."""
    return session.info.server_version // 10_000


def reads_all_statistics(session: psycopg.Connection[Any]) -> bool:
    """Whether sessions, statements and standbys of other roles are shown to this one."""
    row = session.execute(_READS_ALL).fetchone()
    return bool(row and row[0])


def not_granted(session: psycopg.Connection[Any], name: str, what: str) -> Missing:
    """That something is shown to members of `pg_monitor` alone, with what makes the role one.

    Args:
        session: The role's.
        name: Of the source that is missing.
        what: Completes "the role may not read".
    """
    row = session.execute("SELECT quote_ident(current_user)").fetchone()
    assert row is not None
    return Missing(name, f"the role {row[0]} may not read {what}", f"GRANT pg_monitor TO {row[0]};")


def not_seen(session: psycopg.Connection[Any], name: str) -> Missing:
    """That what the server's processes use cannot be read, with what would show it."""
    if not reads_all_statistics(session):
        return not_granted(session, name, "what other roles and processes do")
    return Missing(
        name,
        "the server does not run on this host alone, so that its processes are not known",
        "Run pgdyno on the server's host, or measure a copy there:"
        ' `kind = "installed"` and that server\'s `bindir`.',
    )


def not_before(name: str, major: int, first: int) -> Missing:
    """That a later version tells it, and this one does not."""
    return Missing(name, f"PostgreSQL {major} does not tell it, {first} and later do")


def is_on(session: psycopg.Connection[Any], setting: str) -> bool:
    """Whether a setting is on, for a session of ours."""
    row = session.execute("SELECT current_setting(%s)::boolean", (setting,)).fetchone()
    return bool(row and row[0])


def switched_off(name: str, setting: str) -> Missing:
    """That the server would count it, and a setting keeps it from doing so."""
    return Missing(name, f"{setting} is off", _REMEDIES[setting])
