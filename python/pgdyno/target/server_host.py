"""Where a server runs: on this host, with how much memory and disk, or elsewhere.

Nothing is assumed: a server counts as local only if its backend is a process of this host that
began when the server says so, and its disk as known only if the server may tell its folders and
we may look at them.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import psycopg

from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.model.server_host import Area, ServerHost
from pgdyno.target.host_facts import memory_of, parent_of, process_started_s
from pgdyno.target.role import OTHER_CLIENTS

_QUERY: Final = f"""
SELECT pg_backend_pid(), current_user,
       (SELECT extract(epoch FROM backend_start)::float8 FROM pg_stat_activity
        WHERE pid = pg_backend_pid()),
       (SELECT setting FROM pg_settings WHERE name = 'data_directory'),
       (SELECT pg_tablespace_location(coalesce(own.oid, dattablespace)) FROM pg_database
        LEFT JOIN pg_tablespace own ON own.spcname = current_setting('default_tablespace')
        WHERE datname = current_database()),
       (SELECT pg_tablespace_location(oid) FROM pg_tablespace
        WHERE spcname = trim(split_part(current_setting('temp_tablespaces'), ',', 1))),
       (SELECT count(*) FROM {OTHER_CLIENTS}
          AND coalesce(application_name, '') NOT LIKE 'pgdyno%'),
       current_setting('archive_mode') <> 'off' OR EXISTS (SELECT FROM pg_replication_slots),
       pg_size_bytes(current_setting('max_wal_size')),
       pg_size_bytes(coalesce(current_setting('wal_keep_size', true), '0'))
"""  # noqa: S608  a constant

_BACKEND: Final = """
SELECT pid, current_user, extract(epoch FROM backend_start)::float8,
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')
FROM pg_stat_activity WHERE pid = pg_backend_pid()
"""

_START_SLACK_S = 2.0  # a backend takes the time once it runs; the kernel's clock has whole ticks


def server_host_of(connection: Connection) -> ServerHost:
    """What can be seen of a database's server.

    Raises:
        TargetError: It does not answer.
    """
    try:
        with psycopg.connect(**connection.arguments(), autocommit=True) as session:
            row = session.execute(_QUERY).fetchone()
            # The backend must live while its process is looked at.
            pid = int(row[0]) if row else 0
            is_here = row is not None and is_backend(pid, str(row[1]), row[2])
            memory = memory_of(str(pid)) if is_here else None
    except psycopg.Error as error:
        raise TargetError(f"cannot ask the server where it is: {str(error).strip()}") from error
    return ServerHost() if row is None else _host(memory, row[3:])


def postmaster_here(connection: Connection) -> int | None:
    """The postmaster of a server that runs on this host; None: it is elsewhere, or not shown.

    What its processes use is divided among the sessions that the role is shown: one that is not
    shown those of others would be told their CPU time as its own.

    Raises:
        psycopg.Error: The server does not answer.
    """
    with psycopg.connect(**connection.arguments(), autocommit=True) as session:
        row = session.execute(_BACKEND).fetchone()
        assert row is not None, "a session has a backend"
        pid, user, started_s, sees_all = row
        if not sees_all or not is_backend(pid, str(user), started_s):
            return None
        return parent_of(pid)


def _host(memory_bytes: int | None, row: tuple[Any, ...]) -> ServerHost:
    folder, tables, temporary, others, is_kept, wal_size, wal_keep = row
    if memory_bytes is None:
        return ServerHost(sessions_of_others=others)
    seen = ServerHost(
        memory_bytes,
        # An archiver or a slot that does not get on keeps what was written, however much it is.
        wal_limit_bytes=None if is_kept else max(wal_size, wal_keep),
        sessions_of_others=others,
    )
    if not folder:  # only told to superusers and members of pg_read_all_settings
        return seen
    data = area(Path(tables) if tables else Path(folder))
    wal = Path(folder) / "pg_wal"
    return replace(
        seen,
        data=data,
        sort=area(Path(temporary)) if temporary else data,
        wal=area(wal),
        wal_there_bytes=_bytes_in(wal),
    )


def area(path: Path) -> Area | None:
    """A folder's file system, by the folder or, where we may not look, one above that we may.

    A link (`pg_wal` may be one) is followed; None: nothing of it is on this host.
    """
    for folder in (path, *path.parents[:-1]):
        try:
            found, space = folder.stat(), os.statvfs(folder)
        except PermissionError:
            continue
        except OSError:
            return None
        return Area(str(path), found.st_dev, space.f_bavail * space.f_frsize)
    return None


def _bytes_in(folder: Path) -> int | None:
    try:
        return sum(entry.stat().st_size for entry in os.scandir(folder) if entry.is_file())
    except OSError:
        return None


def is_backend(pid: int, user: str, started_s: float | None) -> bool:
    """Whether a process of this host is that backend: its title names the user, its start is that.

    Numbers of processes are few: on a host with a server of its own, a process of that may have
    the number, and the user, of a backend far away.

    Args:
        pid: The number that the server gives the backend.
        user: Who has the session.
        started_s: When the server says that it began, since the epoch; None: it does not say.
    """
    try:
        title = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        began_s = process_started_s(pid)
    except OSError:
        return False
    is_named = title.startswith("postgres: ") and user in title
    return is_named and started_s is not None and abs(began_s - started_s) <= _START_SLACK_S
