"""A server that stands still: its sessions are stopped by a signal, and go on afterwards."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psycopg

from pgdyno.model.connection import Connection


@contextmanager
def standstill(connection: Connection) -> Iterator[None]:
    """All client sessions of a server but our own are stopped meanwhile."""
    with psycopg.connect(**connection.arguments()) as session:
        rows = session.execute(
            "SELECT pid FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        ).fetchall()
    with ExitStack() as going_on:
        for (pid,) in rows:
            going_on.callback(os.kill, pid, signal.SIGCONT)
            os.kill(pid, signal.SIGSTOP)
        yield
