"""A PostgreSQL server process of ours: initdb, start, wait, stop; one data directory each.

The data directory belongs to the user who runs the server, and lies in a folder of ours; its
sockets lie beside it, and its log, which the server gets as an open file and nobody else can touch.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psycopg

from pgdyno.folders import Folder, owner_of, scratch
from pgdyno.model.connection import Connection
from pgdyno.model.errors import RefusedError, TargetError
from pgdyno.model.settings import Origin, OriginKind, ServerFacts, Setting
from pgdyno.model.system_errors import little_room
from pgdyno.plan.settings.server import FORMAT_QUERY, SETTINGS_QUERY, facts_of_rows
from pgdyno.shell import OsUser, Process, forget_postgres_variables, run, start
from pgdyno.target.binaries import Binaries
from pgdyno.target.home import require_reachable
from pgdyno.target.interface import NO_ENVIRONMENT
from pgdyno.target.server_log import LogTail, last_words, log_lines, log_text

SUPERUSER = "postgres"
DATABASE = "tpcc"
_TELLING = {"log_lock_waits": "on", "log_temp_files": "0"}  # unless a stage says otherwise
_SOCKET_NAME = ".s.PGSQL.65535.lock"
_SOCKETS, _ELSEWHERE = ".sockets", ".sockets-at"
_SOCKET_PATH_BYTES_MAX = 107  # sun_path of unix(7), less its terminator
_NO_ROOM = os.strerror(errno.ENOSPC)
_START_S = 120.0
_RECOVER_S = 7200.0
_STOP_S = 300.0


def initdb(binaries: Binaries, data: Path, user: OsUser, further: Sequence[str]) -> None:
    """Make a cluster with PostgreSQL's own defaults, and have it read `pgdyno.conf` last.

    Args:
        binaries: The installation.
        data: The data directory, not there yet, in a folder of ours.
        user: Who will run it.
        further: Options.

    Raises:
        TargetError: initdb failed; its last words are in the message.
    """
    args: list[str | Path] = [
        binaries.program("initdb"), "-D", data, "-U", SUPERUSER, "-A", "trust",
        "--no-locale", "-E", "UTF8", *further,
    ]  # fmt: skip
    require_reachable(data.parent, user)
    owner = owner_of(user)
    with Folder.hold(data.parent) as parent, parent.make(data.name, 0o700, owner) as folder:
        run(args, user=user, dies_with_us=signal.SIGKILL)
        conf = folder.read("postgresql.conf", user.uid)
        conf += "\ninclude_if_exists = 'pgdyno.conf'\n"
        folder.write("postgresql.conf", conf, 0o600, owner)
        # The socket lies in a folder that only its owner may enter; TCP wants a password.
        hba = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
        folder.write("pg_hba.conf", hba, 0o600, owner)


class Cluster:
    """A server of ours on one data directory, from start to stop."""

    def __init__(
        self,
        binaries: Binaries,
        data: Path,
        user: OsUser,
        transport: str,
        parent: Folder | None = None,
    ) -> None:
        """Make its folder of sockets and its log; nothing runs yet.

        Args:
            binaries: The installation.
            data: The data directory.
            user: Who runs it.
            transport: How the load gets there: socket or tcp.
            parent: The folder of ours that the data lie in; None: it is opened by its name.

        Raises:
            TargetError: That folder is not ours, or nothing can be made in it.
        """
        forget_postgres_variables()
        self._binaries = binaries
        self._user = user
        self._transport = transport
        self._process: Process | None = None
        self._environment: Mapping[str, str] = NO_ENVIRONMENT
        self.data = data
        self._parent = Folder.hold(data.parent) if parent is None else parent.again()
        try:
            self._parent.require_closed()
            remove_sockets(self._parent, data.name)
            self._sockets = make_sockets(self._parent, data.name, user)
            self._log = self._parent.log(f"{data.name}.log")
        except BaseException:
            self._parent.close()
            raise
        self._port = free_port() if transport == "tcp" else 5432

    @property
    def pid(self) -> int:
        """Process id of the postmaster."""
        assert self._process is not None
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether its postmaster lives."""
        return self._process is not None and self._process.code() is None

    def settings(self, asked: Sequence[Setting]) -> tuple[Setting, ...]:
        """All that `start` writes: what pgdyno needs to run and to watch a cluster, then a stage's.

        Args:
            asked: Of the stage; what of `_TELLING` it sets itself is its own.
        """
        set_by_stage = {one.name for one in asked}
        values = {
            "port": str(self._port),
            "listen_addresses": "127.0.0.1" if self._transport == "tcp" else "",
            "unix_socket_directories": str(self._sockets),
            "logging_collector": "off",
            "log_destination": "stderr",
            "log_line_prefix": "%m [%p] ",
            "log_timezone": "UTC",
            "log_checkpoints": "on",
            "log_autovacuum_min_duration": "0",
            "lc_messages": "C",
        }
        values |= {name: value for name, value in _TELLING.items() if name not in set_by_stage}
        origin = Origin(OriginKind.TARGET, "pgdyno runs and watches the cluster with it")
        own = (Setting(name, value, origin) for name, value in values.items())
        return (*own, *asked)

    def start(
        self,
        settings: Sequence[Setting],
        environment: Mapping[str, str] = NO_ENVIRONMENT,
        *,
        recovers: bool = False,
    ) -> float:
        """Write the settings, start the server, wait until it answers; returns the seconds.

        Args:
            settings: See `settings`.
            environment: Variables that it gets beside its own; after a crash again.
            recovers: Whether it has to recover first, which takes its time.

        Raises:
            RefusedError: It does not start; the last lines of its log are in the message.
            TargetError: It cannot be started.
        """
        self._write(settings)
        os.ftruncate(self._log, 0)
        self._environment = environment
        return self._launch(_RECOVER_S if recovers else _START_S)

    def reconfigure(self, settings: Sequence[Setting]) -> None:
        """Give the running server other settings, of those that need no restart.

        Raises:
            psycopg.Error: It does not answer.
        """
        self._write(settings)
        with psycopg.connect(**self.connection().arguments(), autocommit=True) as session:
            session.execute("SELECT pg_reload_conf()")

    def _write(self, settings: Sequence[Setting]) -> None:
        lines = [f"{one.name} = '{_quoted(one.value)}'\n" for one in self.settings(settings)]
        with self._parent.into(self.data.name) as data:
            data.write("pgdyno.conf", "".join(lines), 0o600, owner_of(self._user))

    def crash(self) -> float:
        """Stop the server as a crash would, start it again as it was; returns the seconds.

        The processes end at once, without a checkpoint; what they wrote stays in the kernel's
        memory, so this is no power cut. The log goes on.

        Raises:
            TargetError: It does not come back; the last lines of its log are in the message.
        """
        self.stop(clean=False)
        return self._launch(_RECOVER_S)

    def _launch(self, patience_s: float) -> float:
        began = time.monotonic()
        self._process = start(
            [self._binaries.program("postgres"), "-D", self.data],
            user=self._user, env=self._environment, log=self._log, dies_with_us=signal.SIGINT,
        )  # fmt: skip
        self._wait_ready(patience_s)
        return time.monotonic() - began

    def connection(self) -> Connection:
        """The maintenance database over the socket."""
        return Connection(str(self._sockets), self._port, SUPERUSER, "postgres")

    def measured_connection(self) -> Connection:
        """The workload's database over the plan's transport; TCP with a fresh password."""
        over_socket = self.connection().to(DATABASE)
        if self._transport != "tcp":
            return over_socket
        password = secrets.token_urlsafe(24)
        with psycopg.connect(**self.connection().arguments(), autocommit=True) as session:
            # Encrypted here, so that the password itself never reaches the server's log.
            verifier = session.pgconn.encrypt_password(
                password.encode(), SUPERUSER.encode(), b"scram-sha-256"
            ).decode()
            session.execute(
                psycopg.sql.SQL("ALTER ROLE {} PASSWORD {}").format(
                    psycopg.sql.Identifier(SUPERUSER), psycopg.sql.Literal(verifier)
                )
            )
        return Connection("127.0.0.1", self._port, SUPERUSER, DATABASE, password)

    def stop(self, *, clean: bool) -> None:
        """Stop the server; `clean` with a checkpoint, else at once (its data are thrown away).

        Raises:
            TargetError: It does not stop in time, or ended by itself.
        """
        if self._process is None:
            return
        process = self._process
        died = process.code() is not None
        process.signal(signal.SIGINT if clean else signal.SIGQUIT)
        code = process.wait(_STOP_S)
        self._process = None  # not before: who is interrupted in the wait must still close it
        if code is None:
            process.kill()
            raise TargetError(f"the server did not stop within {_STOP_S:.0f} s", self.last_words())
        if clean and (died or code != 0):
            raise TargetError(f"the server ended with code {code}: {self.last_words()}")

    def close(self) -> None:
        """Stop without care, and remove the sockets and the log."""
        if self._process is not None:
            self._process.signal(signal.SIGQUIT)
            if self._process.wait(10) is None:
                self._process.kill()
            self._process = None
        if self._log >= 0:
            remove_sockets(self._parent, self.data.name)
            self._parent.remove(f"{self.data.name}.log")
            os.close(self._log)
            self._log = -1
            self._parent.close()

    @property
    def log_path(self) -> Path:
        """Where the server's log lies."""
        return self._parent.path / f"{self.data.name}.log"

    def log_lines(self) -> Iterator[str]:
        """The lines of the server's log since `start`, however long it is."""
        return log_lines(self._log)

    def log_tail(self) -> LogTail:
        """Follows that log from now on."""
        return LogTail(self._log)

    def log_text(self) -> str:
        """The same as a text within a bound: its begin and its end."""
        return log_text(self._log)

    def last_words(self) -> str:
        """The end of the server's log; and how little room it had, where that may be why."""
        room = little_room(self.data, shutil.disk_usage(self._parent.handle).free)
        return f"{last_words(self._log)}{room}"

    def _wait_ready(self, patience_s: float) -> None:
        assert self._process is not None
        deadline = time.monotonic() + patience_s
        reason = "no answer yet"
        while time.monotonic() < deadline:
            if (code := self._process.code()) is not None:
                self._process = None
                raise RefusedError(
                    f"the server ended with code {code} while starting: {self.last_words()}",
                    hint="The stage's settings are in pgdyno.conf; see `--dry-run`.",
                )
            try:
                psycopg.connect(**self.connection().arguments()).close()
            except psycopg.OperationalError as error:
                reason = str(error).strip().splitlines()[-1]
                if _NO_ROOM in reason:  # waiting makes none
                    break
                time.sleep(0.05)
                continue
            return
        waited_s = patience_s - (deadline - time.monotonic())
        raise RefusedError(f"the server does not answer after {waited_s:.0f} s: {reason}")


def make_sockets(parent: Folder, data: str, user: OsUser) -> Path:
    """A folder for sockets beside the data, or elsewhere if its path is too long for one.

    What lies elsewhere is written down before it is made, so that the next run finds it.
    """
    beside = parent.path / f"{data}{_SOCKETS}"
    if len(os.fsencode(beside / _SOCKET_NAME)) <= _SOCKET_PATH_BYTES_MAX:
        parent.make(beside.name, 0o700, owner_of(user)).close()
        return beside
    elsewhere = _short_place() / f"pgdyno-{secrets.token_hex(8)}"
    parent.write(f"{data}{_ELSEWHERE}", str(elsewhere))
    with Folder.hold(elsewhere.parent) as above:
        above.make(elsewhere.name, 0o700, owner_of(user)).close()
    return elsewhere


def remove_sockets(parent: Folder, data: str) -> None:
    """Remove the sockets of a server that is gone, be it of a run that was killed."""
    parent.remove_folder(f"{data}{_SOCKETS}")
    if parent.has(f"{data}{_ELSEWHERE}"):
        elsewhere = Path(parent.read(f"{data}{_ELSEWHERE}"))
        with Folder.hold(elsewhere.parent) as above:
            above.remove_folder(elsewhere.name)
        parent.remove(f"{data}{_ELSEWHERE}")


def _short_place() -> Path:
    """Where only root writes, if we are; else where a user's own short-lived files go."""
    if os.geteuid() == 0 and os.access("/run", os.W_OK):
        return Path("/run")
    return Path("/tmp")  # noqa: S108  a folder of ours is made there, under a name nobody knows


def server_settings(binaries: Binaries, user: OsUser) -> ServerFacts:
    """The settings that this very build has, from a cluster that lives for a second.

    `postgres --describe-config` needs none, but tells neither units, nor enum values, nor what the
    build left out (lz4, io_uring, …).

    Raises:
        TargetError: The installation cannot make or start a cluster.
    """
    with scratch(Path("/tmp"), "pgdyno-server-") as folder:  # noqa: S108  a folder of ours in it
        data = folder.path / "data"
        initdb(binaries, data, user, ("--no-sync",))
        cluster = Cluster(binaries, data, user, "socket")
        try:
            cluster.start([])
            with psycopg.connect(**cluster.connection().arguments()) as session:
                rows = session.execute(SETTINGS_QUERY).fetchall()
                disk_format = session.execute(FORMAT_QUERY).fetchone()
        finally:
            cluster.close()
    return facts_of_rows(rows, binaries.version_num, binaries.version, disk_format)


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "''")


def free_port() -> int:
    """A port of this host that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
