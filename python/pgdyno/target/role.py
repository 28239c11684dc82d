"""Asks a running server what our role may do there; reads only."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import psycopg

from pgdyno.model.connection import Connection
from pgdyno.model.rights import Role

# Providers' administrators: no superusers by name, but they may make checkpoints and extensions.
_PROVIDERS = ("rds_superuser", "cloudsqlsuperuser", "azure_pg_admin", "alloydbsuperuser")
_PARAMETER_RIGHTS = 15  # major version; since then, settings of superusers can be granted
_ROLE = """
SELECT quote_ident(rolname), rolsuper, rolcreatedb,
       EXISTS (SELECT FROM pg_roles g WHERE g.rolname = ANY(%s)
               AND pg_has_role(g.oid, 'USAGE')),
       EXISTS (SELECT FROM pg_roles g WHERE g.rolname = 'pg_checkpoint'
               AND pg_has_role(g.oid, 'USAGE')),
       EXISTS (SELECT FROM pg_roles g WHERE g.rolname = 'pg_read_all_settings'
               AND pg_has_role(g.oid, 'USAGE')),
       EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_prewarm')
FROM pg_roles WHERE rolname = current_user
"""
_SETTABLE = """
SELECT name FROM pg_settings
WHERE context IN ('superuser', 'superuser-backend') AND has_parameter_privilege(name, 'SET')
"""
_EXTENSION = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_prewarm')"


def role_of(session: psycopg.Connection[Any], connection: Connection) -> Role:
    """What the role of a session may do, as far as pgdyno makes use of it.

    What a provider lets its administrators do is not told by any view: members of its
    administrators' role are taken to be able to checkpoint, and to create extensions.
    """
    row = session.execute(_ROLE, (list(_PROVIDERS),)).fetchone()
    assert row is not None, "a session has a role"
    name, superuser, creates, provider, checkpoints, reads, files = row
    settable: frozenset[str] = frozenset()
    if session.info.server_version >= _PARAMETER_RIGHTS * 10_000:
        settable = frozenset(one for (one,) in session.execute(_SETTABLE))
    administrates = superuser or provider
    return Role(
        name=name,
        is_superuser=superuser,
        can_create_databases=superuser or creates,
        can_checkpoint=administrates or checkpoints,
        can_prewarm=administrates or _template_has_prewarm(connection),
        has_prewarm_files=files,
        can_read_settings=superuser or reads,
        can_set=settable,
    )


def _template_has_prewarm(connection: Connection) -> bool:
    """Whether databases are made with it. Nobody can make one while we look, for a moment."""
    with (
        suppress(psycopg.Error),
        psycopg.connect(**connection.to("template1").arguments(), autocommit=True) as session,
    ):
        row = session.execute(_EXTENSION).fetchone()
        return bool(row and row[0])
    return False
