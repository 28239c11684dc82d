"""Whether the samplers' role may read what the server tells of others, and what would let it."""

from __future__ import annotations

from typing import Any

import psycopg

from pgdyno.sample.sampler import Missing

_READS_ALL = "SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')"


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


def major_of(session: psycopg.Connection[Any]) -> int:
    """Major version of its server."""
    return session.info.server_version // 10_000
