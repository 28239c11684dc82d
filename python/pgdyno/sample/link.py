"""The session that the samplers of a server share: with limits of its own, opened anew when lost.

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
    """A session and what is read in it; use it as a context, which closes it.

    Args:
        opened: Opens a session in autocommit mode.
        samplers: What can be read of the server in a session.
        quiet: Whether the server is ours, and no pooler stands before it.
        beside: Sessions on other servers that are asked, too; they are not opened anew.
        consoles: Likewise, of poolers, which know no limits.

    Raises:
        psycopg.Error: The server does not let it in.
    """

    def __init__(
        self,
        opened: Callable[[], Session],
        samplers: Callable[[Session], Found],
        *,
        quiet: bool = False,
        beside: Sequence[Session] = (),
        consoles: Sequence[Session] = (),
    ) -> None:
        self._opened, self._samplers, self._quiet = opened, samplers, quiet
        self.session = opened()
        self._beside, self._consoles = beside, consoles

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    @property
    def is_lost(self) -> bool:
        """Whether nothing can be asked any more."""
        return bool(self.session.closed)

    def found(self) -> Found:
        """What can be read, before anything is measured: until then the session waits for locks.

        Raises:
            psycopg.Error: The server does not answer.
        """
        found = self._samplers(self.session)
        self._limit()
        for one in self._beside:
            one.execute(_LIMITS.encode())
        return found

    def again(self) -> Found:
        """What can be read in a session that is opened anew, in the midst of a window.

        Raises:
            psycopg.Error: The server does not let it in.
        """
        self.session.close()
        self.session = self._opened()
        self._limit()
        return self._samplers(self.session)

    def cut(self) -> None:
        """Whoever waits for an answer, in another thread, gets an error instead."""
        for one in (self.session, *self._beside, *self._consoles):
            with suppress(OSError, psycopg.Error):
                copy = socket.socket(fileno=os.dup(one.pgconn.socket))
                with copy:
                    copy.shutdown(socket.SHUT_RDWR)

    def _limit(self) -> None:
        self.session.execute(_LIMITS.encode())
        if self._quiet:  # an error in the log of a server of ours would be the load's
            be_quiet(self.session, for_transaction=False)
