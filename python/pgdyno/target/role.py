"""Asks a running server what our role may do there; reads only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import psycopg

from pgdyno.model.connection import Connection
from pgdyno.model.rights import NoPlace, Role
from pgdyno.plan.settings.values import list_items

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
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'),
       EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_prewarm'),
       nullif(rolconnlimit, -1)
FROM pg_roles WHERE rolname = current_user
"""
_SETTABLE = """
SELECT name FROM pg_settings
WHERE context IN ('superuser', 'superuser-backend') AND has_parameter_privilege(name, 'SET')
"""
# Of sessions of other roles, a role without rights is told who and where, but not of which type.
OTHER_CLIENTS: Final = """pg_stat_activity
        WHERE datid IS NOT NULL AND usesysid IS NOT NULL AND pid <> pg_backend_pid()
          AND coalesce(backend_type, 'client backend') = 'client backend'
"""
"""Sessions of clients but for the one that asks: no workers of the server's own."""
_LEFT: Final = f"""
SELECT current_setting('max_connections')::int - (SELECT count(*) FROM {OTHER_CLIENTS})::int,
       (SELECT coalesce(sum(setting::int), 0)::int FROM pg_settings
        WHERE name IN ('superuser_reserved_connections', 'reserved_connections'))
"""  # noqa: S608  a constant
_HBA_FILE = "pg_hba.conf"
# Empty, so that none comes from the environment; libpq looks into no file that is not there.
_NO_PASSWORD = {"password": "", "passfile": "/dev/null/none"}
_EXTENSION = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_prewarm')"
_PATH = "SELECT setting, source FROM pg_settings WHERE name = 'search_path'"
_OF_A_DATABASE = ("database", "database user")  # as `source`: new databases do not have it
_PATH_OF_ROLE = """
SELECT substr(one, 13) FROM pg_db_role_setting, unnest(setconfig) AS one
WHERE setdatabase = 0 AND (setrole = 0 OR setrole = current_user::regrole)
  AND starts_with(one, 'search_path=')
ORDER BY setrole = 0 LIMIT 1
"""
_DEFAULT_PATH = '"$user", public'
# Who makes a database owns it, and so, since 14, what belongs to pg_database_owner in it.
_SCHEMAS = """
SELECT nspname, name = 'pg_database_owner' OR has_schema_privilege(n.oid, 'USAGE'),
       name = 'pg_database_owner' OR has_schema_privilege(n.oid, 'CREATE')
FROM pg_namespace n, pg_get_userbyid(nspowner) AS name
WHERE nspname = ANY(%s)
"""

_STRONGER = "SELECT name, setting, source FROM pg_settings WHERE source IN ('user', 'client')"


def role_of(
    session: psycopg.Connection[Any], connection: Connection, databases: Iterable[str] = ()
) -> Role:
    """What the role of a session may do, as far as pgdyno makes use of it.

    What a provider lets its administrators do is not told by any view: members of its
    administrators' role are taken to be able to checkpoint, and to create extensions.

    Args:
        session: Of the role.
        connection: The same.
        databases: Names that it will have to enter. pg_hba.conf is asked by knocking there: whom
            it lets in without a password is then told, also in the log, that there is no such
            database.
    """
    row = session.execute(_ROLE, (list(_PROVIDERS),)).fetchone()
    assert row is not None, "a session has a role"
    name, superuser, creates, provider, checkpoints, reads, looks, files, limit = row
    left = session.execute(_LEFT).fetchone()
    assert left is not None
    free, reserved = left
    settable: frozenset[str] = frozenset()
    if session.info.server_version >= _PARAMETER_RIGHTS * 10_000:
        settable = frozenset(one for (one,) in session.execute(_SETTABLE))
    administrates = superuser or provider
    path, of_client = _path_of_new_databases(session)
    has_prewarm, no_place = _in_the_template(connection, path, of_client)
    return Role(
        name=name,
        is_superuser=superuser,
        can_create_databases=superuser or creates,
        can_checkpoint=administrates or checkpoints,
        can_prewarm=True if administrates else has_prewarm,
        has_prewarm_files=files,
        can_read_settings=superuser or reads,
        can_read_statistics=looks,
        can_set=settable,
        sessions_max=None if superuser else limit,
        sessions_left=free if superuser else free - reserved,
        shut_out_of=tuple(name for name in databases if _is_shut_out(connection.to(name))),
        by_socket=connection.host.startswith(("/", "@")),
        no_place=no_place,
        stronger={name: (setting, source) for name, setting, source in session.execute(_STRONGER)},
    )


def _is_shut_out(connection: Connection) -> bool:
    """Whether pg_hba.conf refuses; its name stands in what the server says, in every language.

    No password is given: who is asked for one was let in, and leaves without a line in the log.
    """
    try:
        psycopg.connect(**{**connection.arguments(), **_NO_PASSWORD}).close()
    except psycopg.Error as error:
        return _HBA_FILE in str(error)
    return False


def _path_of_new_databases(session: psycopg.Connection[Any]) -> tuple[str, bool]:
    """The search_path that the role has in a new database, and whether its connection sets it."""
    row = session.execute(_PATH).fetchone()
    assert row is not None, "every server has it"
    path, source = row
    if source in _OF_A_DATABASE:
        found = session.execute(_PATH_OF_ROLE).fetchone()
        path = found[0] if found else _DEFAULT_PATH
    return str(path), source == "client"


def _in_the_template(
    connection: Connection, path: str, of_client: bool
) -> tuple[bool | None, NoPlace | None]:
    """Whether databases are made with pg_prewarm, and why tables have no place in them, if so.

    Nobody can make one while we look, for a moment. Where we may not look, the first database
    tells: None, and a place is taken to be there.
    """
    try:
        with psycopg.connect(**connection.to("template1").arguments(), autocommit=True) as session:
            row = session.execute(_EXTENSION).fetchone()
            names = [
                session.info.user if one == "$user" else one
                for one in list_items("search_path", path)
            ]
            rows = session.execute(_SCHEMAS, (names,)).fetchall()
    except psycopg.Error:
        return None, None
    there = {name: (uses, uses and creates) for name, uses, creates in rows}
    named = [one for one in names if one in there]
    # As the server: the first that the role may use. One that is closed to it can be opened.
    schema = next((one for one in named if there[one][0]), named[0] if named else None)
    no_place = None if schema and there[schema][1] else NoPlace(path, schema, of_client)
    return bool(row and row[0]), no_place
