"""Advisory locks by which pgdynos claim a server, and who has them.

Two kinds, told apart by their keys: that of a run, which owns the whole server and lies in a
database of its own (`server_owner`), and that of what measures or fills one database, which lies in
that database (`database_use`). Each takes its own first and looks for the other's then, so that of
two who come at the same time at least one goes. `pg_locks` tells of all databases, to every role.
"""

from __future__ import annotations

import os
import socket
import time
from typing import Any

import psycopg

_OURS = 1_346_850_361
RUN = (_OURS, 1_869_379_954)
"""Who has it in database `pgdyno_owner` owns the server."""
USE = (_OURS, 1_970_496_868)
"""Who has it in a database measures or fills that one."""
LOAD = (_OURS, 1_869_374_820)
"""Shared by the sessions of a load that copy rows, which the core opens (`crates/load`)."""
PATIENCE_S = 5.0  # with a session whose client was killed and that is still at work
_PAUSE_S = 0.02

_HOLDERS = """
SELECT datname, application_name, a.pid, usename FROM pg_locks l
JOIN pg_stat_activity a ON a.pid = l.pid
WHERE locktype = 'advisory' AND granted AND l.pid <> pg_backend_pid()
  AND (classid, objid) = (%s, %s) AND l.database = a.datid AND datname = coalesce(%s, datname)
ORDER BY backend_start
"""


def own_name() -> str:
    """What others see in pg_stat_activity, even without rights: process, since when, and where."""
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return f"pgdyno {os.getpid()} {since} {socket.gethostname()}"


def taken(
    session: psycopg.Connection[Any], key: tuple[int, int], *, shared: bool, patience_s: float
) -> bool:
    """Take a lock, if it can be had soon; asked again and again, as waiting in vain is logged."""
    ask = "pg_try_advisory_lock_shared" if shared else "pg_try_advisory_lock"
    deadline = time.monotonic() + patience_s
    while True:
        row = session.execute(f"SELECT {ask}(%s, %s)".encode(), key).fetchone()
        if row is not None and row[0]:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PAUSE_S)


def holder(
    session: psycopg.Connection[Any], key: tuple[int, int], database: str | None = None
) -> tuple[str, str] | None:
    """Another session that has a lock, in one database or in any: the database, and who it is."""
    row = session.execute(_HOLDERS, (*key, database)).fetchone()
    return None if row is None else (row[0], _holder(*row[1:]))


def who_has(session: psycopg.Connection[Any], key: tuple[int, int], database: str) -> str:
    """Who has a lock that could not be had in a database."""
    found = holder(session, key, database)
    return "who has gone this very moment" if found is None else found[1]


def use_of(session: psycopg.Connection[Any], server: str) -> str | None:
    """That something measures or fills a database of a server, as a fact; None: nothing does.

    Args:
        session: On it.
        server: What it is called, e.g. `the server 10.0.0.7:5432`.
    """
    if (found := holder(session, USE)) is None:
        return None
    database, who = found
    return f"another pgdyno uses database {database} of {server}: {who}"


def _holder(application: str, backend: int, role: str) -> str:
    match application.split(" ", 3):
        case ["pgdyno", pid, since, host]:
            at = since.replace("T", " ").replace("Z", " UTC")
            return f"process {pid} on host {host} since {at} (role {role}, backend {backend})"
    return f"application {application!r} (role {role}, backend {backend})"
