"""The sessions that some samplers share: with limits of their own, opened anew when one is lost.

A lock is not waited for, and no statement lasts: nobody holds a snapshot, or stands in a queue, for
a figure. What a stopped server or a broken network leaves waiting is freed by `cut`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Self, TypeAlias

import psycopg

from pgdyno.model.run import Missing
from pgdyno.sample.sampler import Sampler, Snapshot, Tally
from pgdyno.sample.table_query import be_quiet

_LOCK_WAIT_MS = 100
_STATEMENT_MS = 20_000  # also for tables of all relations, on a busy machine
_LIMITS = f"""
SELECT set_config('lock_timeout', '{_LOCK_WAIT_MS}', false),
       set_config('statement_timeout', '{_STATEMENT_MS}', false)"""

Session: TypeAlias = psycopg.Connection[Any]
Found: TypeAlias = Sequence[Sampler | Tally | Snapshot | Missing]


class Link:
    """Sessions and what is read in them; use it as a context, which closes them.

    Args:
        opened: Each opens a session in autocommit mode; one, unless servers are compared.
        samplers: What can be read in the sessions, which it is given in their order.
        quiet: Whether the server is ours, and no pooler stands before it.
        limited: Whether sessions can be told limits; the console of a pooler cannot.

    Raises:
        psycopg.Error: A server does not let it in.
    """

    def __init__(
        self,
        *opened: Callable[[], Session],
        samplers: Callable[..., Found],
        quiet: bool = False,
        limited: bool = True,
    ) -> None:
        self._opened, self._samplers = opened, samplers
        self._quiet, self._limited = quiet, limited
        self.sessions: list[Session] = []
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    @property
    def is_lost(self) -> bool:
        """Whether not all can be asked any more."""
        return len(self.sessions) < len(self._opened) or any(one.closed for one in self.sessions)

    def found(self) -> Found:
        """What can be read, before anything is measured: until then they wait for locks.

        Raises:
            psycopg.Error: The server does not answer.
        """
        found = self._samplers(*self.sessions)
        self._limit()
        return found

    def again(self) -> Found:
        """What can be read in sessions that are opened anew, in the midst of a window.

        Raises:
            psycopg.Error: A server does not let it in.
        """
        self._close()
        self._open()
        self._limit()
        return self._samplers(*self.sessions)

    def cut(self) -> None:
        """Whoever waits for an answer, in another thread, gets an error instead."""
        for one in tuple(self.sessions):
            with suppress(OSError, psycopg.Error):
                copy = socket.socket(fileno=os.dup(one.pgconn.socket))
                with copy:
                    copy.shutdown(socket.SHUT_RDWR)

    def _open(self) -> None:
        try:
            for opened in self._opened:
                self.sessions.append(opened())
        except BaseException:
            self._close()
            raise

    def _close(self) -> None:
        while self.sessions:
            self.sessions.pop().close()

    def _limit(self) -> None:
        for one in self.sessions if self._limited else ():
            one.execute(_LIMITS.encode())
            if self._quiet:  # an error in the log of a server of ours would be the load's
                be_quiet(one, for_transaction=False)
