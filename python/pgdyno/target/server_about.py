"""What a running server that is not ours says of itself beside its settings; reads only.

What cannot be seen is said to be unknown: a report must not look as if it had been looked at.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from pgdyno.model.connection import Connection
from pgdyno.model.server_host import BY_SOCKET, HOST_HERE, ServerHost
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import plural
from pgdyno.target.file_systems import file_system
from pgdyno.target.server_host import server_host_of

_HOST = "CPUs, memory, disks, file system, kernel and its settings"
_STORAGE = "disk and file system of its data"
_UNTOLD = "hidden from this role"
_HIDDEN = "which file and line set a value, which libraries are loaded, where the data lie"
_QUERY = """
SELECT to_char(pg_postmaster_start_time() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'),
       (SELECT count(*) FROM pg_stat_replication),
       (SELECT count(*) FROM pg_database WHERE NOT datistemplate),
       (SELECT coalesce(sum(pg_database_size(oid)), 0)::bigint FROM pg_database
        WHERE NOT datistemplate AND (has_database_privilege(oid, 'CONNECT')
           OR pg_has_role('pg_read_all_stats', 'USAGE'))),
       (SELECT count(*) FROM pg_database
        WHERE NOT datistemplate AND NOT has_database_privilege(oid, 'CONNECT')
          AND NOT pg_has_role('pg_read_all_stats', 'USAGE')),
       (SELECT setting FROM pg_settings WHERE name = 'config_file')
"""


def about(session: psycopg.Connection[Any], connection: Connection) -> dict[str, str]:
    """Lines for people, by what they are of: since when, size, use, files, and its host.

    Raises:
        TargetError: It does not answer.
    """
    row = session.execute(_QUERY).fetchone()
    assert row is not None
    since, standbys, databases, size, hidden, config = row
    host = server_host_of(connection)
    sizes = bytes_text(int(size))
    if hidden:
        sizes += f" without {plural(hidden, 'database')} that this role may not enter"
    return {
        "reached by": _transport(session),
        "up since": f"{since} UTC",
        "databases": f"{databases}, {sizes}",
        "sessions of others": str(host.sessions_of_others),
        "standbys": str(standbys),
        "configuration file": config or _UNTOLD,
        **({} if config else {_UNTOLD: _HIDDEN}),
        **_host_lines(host),
    }


def _transport(session: psycopg.Connection[Any]) -> str:
    if session.info.host.startswith(("/", "@")):
        return BY_SOCKET
    return "TCP with TLS" if session.pgconn.ssl_in_use else "TCP without TLS"


def _host_lines(host: ServerHost) -> dict[str, str]:
    if host.memory_bytes is None:
        return {"host": "another one, or out of sight", "not known of its host": _HOST}
    lines = {"host": f"{HOST_HERE}; it may use {bytes_text(host.memory_bytes)} of memory"}
    if host.data is None:
        return lines | {"data": _UNTOLD, "not known of its host": _STORAGE}
    found = file_system(Path(host.data.path))
    free = bytes_text(host.data.free_bytes)
    where = f"{found['type']} on {found['device']} ({found['options']}), {free} free"
    return lines | {"data": f"{host.data.path}, {where}"}
