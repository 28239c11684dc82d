"""What a server and folders hold, to the last OID and file, told so that two looks compare."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import psycopg

from pgdyno.model.connection import Connection

Facts = dict[str, list[tuple[Any, ...]]]

_SERVER = {
    "databases": "SELECT d.oid, datname, datdba, datconnlimit, datallowconn, datistemplate,"
    " datacl::text, shobj_description(d.oid, 'pg_database') FROM pg_database d",
    "roles": "SELECT oid, rolname, rolsuper, rolcreatedb, rolcanlogin, rolconnlimit FROM pg_roles",
    "settings of databases and roles": "SELECT * FROM pg_db_role_setting",
    "settings": "SELECT name, setting, source FROM pg_settings"
    " WHERE name <> 'application_name' AND source NOT IN ('client', 'session')",
    "tablespaces": "SELECT oid, spcname FROM pg_tablespace",
    "locks": "SELECT locktype, classid, objid FROM pg_locks WHERE locktype = 'advisory'",
}
_USER = (
    "relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace,"
    " 'pg_toast'::regnamespace)"
)
_OURS = """
WITH ours AS (SELECT id FROM pgdyno_load_made WHERE kind = 'relation')
SELECT id::bigint, id::regclass::text FROM ours JOIN pg_class ON pg_class.oid = id
UNION SELECT oid::bigint, '' FROM pg_type WHERE typrelid IN (SELECT id FROM ours)
UNION SELECT typarray::bigint, '' FROM pg_type WHERE typrelid IN (SELECT id FROM ours)
"""
_DATABASE = {
    "schemas": "SELECT oid, nspname FROM pg_namespace WHERE nspname !~ '^pg_(temp|toast_temp)'",
    "relations": "SELECT oid, relname, relnamespace::regnamespace::text, relkind::text, relowner,"
    f" relfilenode, relnatts, reloptions::text FROM pg_class WHERE {_USER}",
    "views": f"SELECT oid, pg_get_viewdef(oid) FROM pg_class WHERE relkind = 'v' AND {_USER}",
    "indexes": "SELECT indexrelid, pg_get_indexdef(indexrelid), indisvalid FROM pg_index"
    f" JOIN pg_class ON pg_class.oid = indexrelid WHERE {_USER}",
    "constraints": "SELECT oid, conname, conrelid, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE connamespace <> 'information_schema'::regnamespace",
    "triggers": "SELECT oid, tgname, tgrelid FROM pg_trigger WHERE NOT tgisinternal",
    "types": "SELECT oid, typname, typnamespace FROM pg_type"
    " WHERE typnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema')",
    "functions": "SELECT oid, proname FROM pg_proc"
    " WHERE pronamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema')",
    "comments": "SELECT objoid, classoid::regclass::text, description FROM pg_description"
    " WHERE objoid >= 16384",
    "sequences": "SELECT seqrelid::bigint, pg_sequence_last_value(seqrelid) FROM pg_sequence",
    "publications": "SELECT prrelid, prpubid FROM pg_publication_rel",
}


def _read(session: psycopg.Connection[Any], queries: dict[str, str]) -> Facts:
    return {
        name: sorted(session.execute(query.encode()).fetchall(), key=repr)
        for name, query in queries.items()
    }


def server_facts(connection: Connection) -> Facts:
    """Databases, roles, settings and advisory locks of a whole server."""
    with psycopg.connect(**connection.arguments(), autocommit=True) as session:
        return _read(session, _SERVER)


def database_facts(connection: Connection) -> Facts:
    """Every object of users in a database, with the number and the hash of each table's rows."""
    with psycopg.connect(**connection.arguments(), autocommit=True) as session:
        facts = _read(session, _DATABASE)
        tables = session.execute(
            "SELECT oid::regclass::text FROM pg_class"
            f" WHERE relkind IN ('r', 'm') AND {_USER}".encode()
        ).fetchall()
        facts["rows"] = sorted(
            (name, *rows[0])
            for (name,) in tables
            if (rows := session.execute(
                f"SELECT count(*), sum(hash_record_extended(t, 0))::text FROM {name} t".encode()
            ).fetchall())
        )  # fmt: skip
    return facts


def strangers_facts(connection: Connection) -> Facts:
    """As `database_facts`, of what the loads of pgdyno in it did not make."""
    facts = database_facts(connection)
    with psycopg.connect(**connection.arguments(), autocommit=True) as session:
        there = session.execute("SELECT to_regclass('pgdyno_load_made') IS NOT NULL").fetchone()
        rows = session.execute(_OURS).fetchall() if there == (True,) else []
    oids, names = {oid for oid, _ in rows}, {name for _, name in rows}
    for kind in ("relations", "indexes", "types", "comments", "sequences"):
        facts[kind] = [row for row in facts[kind] if row[0] not in oids]
    facts["constraints"] = [row for row in facts["constraints"] if row[2] not in oids]
    facts["rows"] = [row for row in facts["rows"] if row[0] not in names]
    return facts


def tree(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Every file below a folder: kind and mode, owner, size, time of change, content of links."""
    found: dict[str, tuple[Any, ...]] = {}
    for place, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(place, name)
            facts = path.lstat()
            link = str(path.readlink()) if path.is_symlink() else None
            size = facts.st_size if stat.S_ISREG(facts.st_mode) else 0  # of a link, not of its end
            found[str(path.relative_to(folder))] = (
                facts.st_mode, facts.st_uid, facts.st_gid, size, facts.st_mtime_ns, link,
            )  # fmt: skip
    return found
