"""PgBouncer in front of a cluster of ours: its configuration, its process, its end.

Its files and its socket lie in folders that only the user who runs the server may enter; over TCP
it wants the password that the server's superuser has. It reaches the server over the server's
socket, and ends with whoever started it.

Source: PgBouncer, doc/config.md.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import psycopg

from pgdyno.folders import Folder, owner_of
from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.model.plan import Stage
from pgdyno.model.pooler import Pooler
from pgdyno.shell import CLOSE_IT, OsUser, Process, left_out, search_path, start
from pgdyno.target.cluster import free_port, make_sockets, remove_sockets
from pgdyno.target.conninfo import through
from pgdyno.target.interface import Pooled
from pgdyno.target.server_log import last_words

POOLER = "pooler"
"""The name of the folder of its files, and what that of its socket begins with."""
CONSOLE = "pgbouncer"
"""The database in which it tells of itself."""
_PROGRAM = "pgbouncer"
_ABSENT = f"program {_PROGRAM} is not on PATH"
_CONFIG, _USERS, _LOG = "pgbouncer.ini", "users.txt", f"{POOLER}.log"
_SOCKET_PORT = 6432
_START_S, _END_S, _PAUSE_S = 60.0, 10.0, 0.02


def pooler_problems(stages: Sequence[Stage], user: OsUser) -> Iterator[tuple[str, str]]:
    """The first stage that wants a pooler where there is none: name and problem."""
    asking = next((one.name for one in stages if one.pooler is not None), None)
    if asking is not None and _program(user) is None:
        why = left_out(_PROGRAM, user)
        found = f"{_ABSENT}; install it, e.g. `apt-get install pgbouncer`"
        yield asking, f"pooler: {why or found}, or leave `pooler` out"


def _program(user: OsUser) -> Path | None:
    found = shutil.which(_PROGRAM, path=search_path(user))
    return None if found is None else Path(found).absolute()


class OwnPooler:
    """A pooler of ours, from its start to its end."""

    def __init__(
        self, pooler: Pooler, clients: int, server: Connection, load: Connection, user: OsUser,
        parent: Folder,
    ) -> None:  # fmt: skip
        """Start it, and wait until it answers.

        Args:
            pooler: What it does.
            clients: How many connect to it, at most.
            server: How it reaches the server: over its socket.
            load: How the load would reach the server: by a socket, or by TCP with a password.
            user: Who runs the server, and it.
            parent: The folder of ours that its files are made in.

        Raises:
            TargetError: It is not installed, does not start, or does not answer.
        """
        self._parent = parent.again()
        self._log = -1
        self._process: Process | None = None
        try:
            self._log = self._parent.log(_LOG)
            self._start(pooler, clients, server, load, user)
        except BaseException:
            self.close()
            raise

    def _start(
        self, pooler: Pooler, clients: int, server: Connection, load: Connection, user: OsUser
    ) -> None:
        program = _program(user)
        if program is None:
            if why := left_out(_PROGRAM, user):
                raise TargetError(why, CLOSE_IT)
            raise TargetError(_ABSENT, "Install it: `apt-get install pgbouncer`.")
        over_tcp = load.password is not None
        if over_tcp:
            reached = replace(load, port=free_port())
        else:
            sockets = make_sockets(self._parent, POOLER, user)
            reached = replace(load, host=str(sockets), port=_SOCKET_PORT)
        with self._parent.make(POOLER, 0o700, owner_of(user)) as folder:
            text = _config(pooler, clients, server, reached)
            folder.write(_CONFIG, text, 0o600, owner_of(user))
            if over_tcp:
                users = f'"{load.user}" "{load.password}"\n'
                folder.write(_USERS, users, 0o600, owner_of(user))
            self._process = start(
                [program, _CONFIG], user=user, log=self._log,
                folder=folder.handle, dies_with_us=signal.SIGTERM,
            )  # fmt: skip
        self.pooled = self._answers(reached)

    def _answers(self, reached: Connection) -> Pooled:
        """It, once a session of the server is reached through it."""
        assert self._process is not None
        deadline_s = time.monotonic() + _START_S
        while True:
            if (code := self._process.code()) is not None:
                raise TargetError(f"PgBouncer ended with code {code}: {last_words(self._log)}")
            try:
                connection = through(reached)
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline_s:
                    raise TargetError(
                        f"PgBouncer did not answer within {_START_S:.0f} s:"
                        f" {str(error).strip()}; its log ends with: {last_words(self._log)}"
                    ) from error
                time.sleep(_PAUSE_S)
            else:
                console = reached.to(CONSOLE)
                return Pooled(connection, console, self._process.pid, self.require_alive)

    def require_alive(self) -> None:
        """Refuse what was measured through one that has ended meanwhile, or stands still.

        Raises:
            TargetError: It has; its last words are in the message. Or somebody stopped it.
        """
        if self._process is None:
            return
        if (code := self._process.code()) is not None:
            raise TargetError(
                f"PgBouncer ended with code {code} while the load ran: {last_words(self._log)}"
            )
        if self._process.is_stopped():
            raise TargetError(
                f"PgBouncer (process {self._process.pid}) was stopped by a signal while the load"
                " ran: nobody answered its clients",
                "Whoever stopped it (SIGSTOP, a debugger) has to leave it alone.",
            )

    def close(self) -> None:
        """End it, and remove its files."""
        if self._process is not None:
            self._process.signal(signal.SIGTERM)
            if self._process.wait(_END_S) is None:
                self._process.kill()
            self._process = None
        clear_pooler(self._parent)
        if self._log >= 0:
            os.close(self._log)
            self._log = -1
        self._parent.close()


def clear_pooler(parent: Folder) -> None:
    """Remove the files of a pooler that is gone, be it of a run that was killed."""
    remove_sockets(parent, POOLER)
    parent.remove_folder(POOLER)
    parent.remove(_LOG)


def _config(pooler: Pooler, clients: int, server: Connection, reached: Connection) -> str:
    over_tcp = reached.password is not None
    lines = {
        "listen_port": str(reached.port),
        "listen_addr": reached.host if over_tcp else "",
        "unix_socket_dir": "" if over_tcp else reached.host,
        "auth_type": "scram-sha-256" if over_tcp else "any",
        "auth_file": _USERS if over_tcp else "",
        "admin_users": reached.user,
        **pooler.settings(clients),
        "stats_users": reached.user,
        "log_connections": "0",
        "log_disconnections": "0",
    }
    database = f"* = host={server.host} port={server.port} user={server.user}"
    own = "\n".join(f"{name} = {value}" for name, value in lines.items() if value)
    return f"[databases]\n{database}\n\n[pgbouncer]\n{own}\n"
