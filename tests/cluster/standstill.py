"""A server that stands still: its sessions are stopped by a signal, and go on afterwards."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

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
            with suppress(ProcessLookupError):  # a session that has ended stands still, too
                os.kill(pid, signal.SIGSTOP)
                going_on.callback(_go_on, pid)
        yield


def _go_on(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
