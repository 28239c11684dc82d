"""A PostgreSQL server process of ours: initdb, start, wait, stop; one data directory each."""

from __future__ import annotations

import secrets
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg

from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.model.settings import Origin, OriginKind, ServerFacts, Setting
from pgdyno.plan.server import FORMAT_QUERY, SETTINGS_QUERY, facts_of_rows
from pgdyno.shell import OsUser, Process, run, start
from pgdyno.stage.binaries import Binaries
from pgdyno.stage.home import owned_folder

SUPERUSER = "postgres"
DATABASE = "tpcc"
_SOCKET_NAME = ".s.PGSQL.65535.lock"
_SOCKET_PATH_BYTES_MAX = 107  # sun_path of unix(7), less its terminator
_START_S = 120.0
_RECOVER_S = 7200.0
_STOP_S = 300.0


def initdb(binaries: Binaries, data: Path, user: OsUser, further: Sequence[str]) -> None:
    """Make a cluster with PostgreSQL's own defaults, and have it read `pgdyno.conf` last.

    Raises:
        TargetError: initdb failed; its last words are in the message.
    """
    args: list[str | Path] = [
        binaries.program("initdb"), "-D", data, "-U", SUPERUSER, "-A", "trust",
        "--no-locale", "-E", "UTF8", *further,
    ]  # fmt: skip
    run(args, user=user)
    with (data / "postgresql.conf").open("a") as conf:
        conf.write("\ninclude_if_exists = 'pgdyno.conf'\n")
    # The socket lies in a folder that only its owner may enter; TCP wants a password.
    (data / "pg_hba.conf").write_text(
        "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
    )


class Cluster:
    """A server of ours on one data directory, from start to stop."""

    def __init__(self, binaries: Binaries, data: Path, user: OsUser, transport: str) -> None:
        self._binaries = binaries
        self._user = user
        self._transport = transport
        self._process: Process | None = None
        self.data = data
        # Socket paths may have 107 bytes; PGDYNO_HOME may be longer than that.
        self._sockets = Path(tempfile.mkdtemp(prefix="pgdyno-", dir="/tmp"))
        owned_folder(self._sockets, user)
        self.log = self._sockets / "server.log"
        self.log.touch()
        if user.is_other:
            shutil.chown(self.log, user.uid, user.gid)
        self._port = _free_port() if transport == "tcp" else 5432

    @property
    def pid(self) -> int:
        """Process id of the postmaster."""
        assert self._process is not None
        return self._process.pid

    def own_settings(self) -> tuple[Setting, ...]:
        """What pgdyno needs to run and to watch a cluster; the same in every stage."""
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
        origin = Origin(OriginKind.TARGET, "pgdyno runs and watches the cluster with it")
        return tuple(Setting(name, value, origin) for name, value in values.items())

    def start(self, settings: Sequence[Setting]) -> float:
        """Write the settings, start the server, wait until it answers; returns the seconds.

        Raises:
            TargetError: It does not start; the last lines of its log are in the message.
        """
        lines = [f"{s.name} = '{_quoted(s.value)}'\n" for s in (*self.own_settings(), *settings)]
        conf = self.data / "pgdyno.conf"
        conf.write_text("".join(lines))
        if self._user.is_other:
            shutil.chown(conf, self._user.uid, self._user.gid)
        self.log.write_text("")
        return self._launch(_START_S)

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
            user=self._user, log=self.log, dies_with_us=signal.SIGINT,
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
        process, self._process = self._process, None
        died = process.code() is not None
        process.signal(signal.SIGINT if clean else signal.SIGQUIT)
        code = process.wait(_STOP_S)
        if code is None:
            process.kill()
            raise TargetError(f"the server did not stop within {_STOP_S:.0f} s", self.last_words())
        if clean and (died or code != 0):
            raise TargetError(f"the server ended with code {code}: {self.last_words()}")

    def close(self) -> None:
        """Stop without care, and remove the socket folder."""
        if self._process is not None:
            self._process.signal(signal.SIGQUIT)
            if self._process.wait(10) is None:
                self._process.kill()
            self._process = None
        shutil.rmtree(self._sockets, ignore_errors=True)

    def last_words(self) -> str:
        """The end of the server's log."""
        lines = self.log.read_text(errors="replace").splitlines()
        return " / ".join(line.strip() for line in lines[-4:]) or "its log is empty"

    def _wait_ready(self, patience_s: float) -> None:
        assert self._process is not None
        deadline = time.monotonic() + patience_s
        reason = "no answer yet"
        while time.monotonic() < deadline:
            if (code := self._process.code()) is not None:
                self._process = None
                raise TargetError(
                    f"the server ended with code {code} while starting: {self.last_words()}",
                    hint="The stage's settings are in pgdyno.conf; see `--dry-run`.",
                )
            try:
                psycopg.connect(**self.connection().arguments()).close()
            except psycopg.OperationalError as error:
                reason = str(error).strip().splitlines()[-1]
                time.sleep(0.05)
                continue
            return
        raise TargetError(f"the server does not answer after {patience_s:.0f} s: {reason}")


def _socket_folder(data: Path) -> Path:
    """Beside the data, so that a killed run leaves nothing elsewhere; in /tmp if too long."""
    beside = data.parent / "server"
    if len(str(beside / _SOCKET_NAME)) <= _SOCKET_PATH_BYTES_MAX:
        return beside
    return Path(tempfile.mkdtemp(prefix="pgdyno-", dir="/tmp"))


def server_settings(binaries: Binaries, user: OsUser) -> ServerFacts:
    """The settings that this very build has, from a cluster that lives for a second.

    `postgres --describe-config` needs none, but tells neither units, nor enum values, nor what the
    build left out (lz4, io_uring, …).

    Raises:
        TargetError: The installation cannot make or start a cluster.
    """
    folder = Path(tempfile.mkdtemp(prefix="pgdyno-", dir="/tmp"))
    try:
        data = owned_folder(folder, user) / "data"
        initdb(binaries, data, user, ("--no-sync",))
        cluster = Cluster(binaries, data, user, "socket")
        try:
            cluster.start([])
            with psycopg.connect(**cluster.connection().arguments()) as session:
                rows = session.execute(SETTINGS_QUERY).fetchall()
                disk_format = session.execute(FORMAT_QUERY).fetchone()
        finally:
            cluster.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return facts_of_rows(rows, binaries.version_num, binaries.version, disk_format)


def stop_leftover(binaries: Binaries, data: Path, user: OsUser) -> None:
    """Stop a server that a crashed run of ours left on this data directory."""
    if (data / "postmaster.pid").exists():
        args: list[str | Path] = [
            binaries.program("pg_ctl"),
            "-D",
            data,
            "-m",
            "immediate",
            "-w",
            "stop",
        ]
        run(args, user=user, check=False)


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "''")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
