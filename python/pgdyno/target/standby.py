"""A streaming standby of a running cluster of ours: its copy, its physical slot, its server.

It lies beside the primary's data, in a folder of ours, and reaches the primary over the folder of
its sockets, which only the user who runs both may enter.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, LiteralString

import psycopg

from pgdyno.folders import Folder, owner_of
from pgdyno.model.errors import TargetError
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.session import becomes_true, own_session
from pgdyno.shell import OsUser, run
from pgdyno.target.binaries import Binaries
from pgdyno.target.cluster import Cluster
from pgdyno.target.home import made_for
from pgdyno.target.replica import REPLAYED

STANDBY = "standby"
"""The name of its data directory, and what its slot's name begins with."""
_HBA = "local replication all trust"  # the socket's folder is closed to others
_COPY_S = 36_000.0
_STREAM_S = 600.0
_RECEIVING = "SELECT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')"
_IN_SYNC = "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')"
_DROP = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"


def require_in_sync(primary: psycopg.Connection[Any], patience_s: float) -> None:
    """Wait until commits of a primary wait for a standby that is there.

    Raises:
        TargetError: It takes none for synchronous in time.
    """
    if not becomes_true(primary, _IN_SYNC, (), patience_s):
        raise TargetError(f"no standby is synchronous after {patience_s:.0f} s")


class Standby:
    """A standby of ours, from its copy to its end."""

    def __init__(
        self,
        primary: Cluster,
        binaries: Binaries,
        user: OsUser,
        name: str = STANDBY,
        parent: Folder | None = None,
        transport: str = "socket",
    ) -> None:
        """Copy the running primary, with a slot that keeps its WAL; nothing runs yet.

        Args:
            primary: The cluster, started.
            binaries: Its installation.
            user: Who runs both.
            name: Of the data directory, not there yet, beside the primary's; a slot's as well, so
                of lower-case letters, digits and underscores.
            parent: The folder of ours that both lie in; None: it is opened by its name.
            transport: How who reads there gets there: socket or tcp.

        Raises:
            TargetError: pg_basebackup fails: its last words are in the message; or there is a data
                directory or a slot of that name. Then neither a copy nor a slot is left.
        """
        self._primary = primary
        self.slot = name
        _admit_replication(primary, user)
        with Folder.hold(primary.data.parent) if parent is None else parent.again() as above:
            data = made_for(above.path / name, user)
            slotted = False
            try:
                self._make_slot()
                slotted = True
                at = primary.connection()
                run(
                    [
                        binaries.program("pg_basebackup"), "-h", at.host, "-p", str(at.port),
                        "-U", at.user, "-D", data, "-X", "stream", "-S", name, "-c", "fast", "-N",
                    ],
                    user=user, timeout_s=_COPY_S,
                )  # fmt: skip
                with above.into(name) as copy:
                    copy.write("standby.signal", "", 0o600, owner_of(user))
                self.cluster = Cluster(binaries, data, user, transport, above)
            except BaseException:
                if slotted:
                    self._drop_slot()
                above.remove_folder(name)
                raise

    def start(self, settings: Sequence[Setting] = ()) -> float:
        """Start it and wait until it streams; returns the seconds.

        Args:
            settings: The primary's own, where a standby must not have less (max_connections, …),
                and others.

        Raises:
            TargetError: It does not start, or does not stream in time.
        """
        began = time.monotonic()
        at = self._primary.connection()
        origin = Origin(OriginKind.TARGET, "a standby of ours follows its primary")
        values = {
            "primary_conninfo": f"host={at.host} port={at.port} user={at.user}",
            "primary_slot_name": self.slot,
        }
        own = [Setting(name, value, origin) for name, value in values.items()]
        self.cluster.start([*settings, *own], recovers=True)
        self._wait(_RECEIVING, (), _STREAM_S, "it does not stream")
        return time.monotonic() - began

    def wait_replayed(self, lsn: str, patience_s: float = _STREAM_S) -> None:
        """Wait until it has replayed WAL up to an LSN.

        Raises:
            TargetError: It has not after `patience_s`, or does not answer.
        """
        self._wait(REPLAYED, (lsn,), patience_s, f"it has not replayed {lsn}")

    def stop(self, *, clean: bool) -> None:
        """Stop its server; see `Cluster.stop`. The slot goes on keeping WAL."""
        self.cluster.stop(clean=clean)

    def close(self) -> None:
        """Stop it without care and drop its slot, if the primary answers; its data stay."""
        self.cluster.close()
        self._drop_slot()

    def _make_slot(self) -> None:
        with own_session(self._primary.connection()) as session:
            try:
                session.execute("SELECT pg_create_physical_replication_slot(%s, true)", [self.slot])
            except psycopg.Error as error:
                raise TargetError(f"no slot {self.slot} can be made: {str(error).strip()}") from (
                    error
                )

    def _drop_slot(self) -> None:
        with suppress(psycopg.Error), own_session(self._primary.connection()) as session:
            session.execute(_DROP, [self.slot])

    def _wait(
        self, query: LiteralString, arguments: tuple[str, ...], patience_s: float, what: str
    ) -> None:
        try:
            with own_session(self.cluster.connection()) as session:
                if not becomes_true(session, query, arguments, patience_s):
                    raise TargetError(
                        f"the standby runs, but {what} after {patience_s:.0f} s",
                        self.cluster.last_words(),
                    )
        except psycopg.Error as error:
            raise TargetError(
                f"the standby does not answer: {str(error).strip()}", self.cluster.last_words()
            ) from error


def _admit_replication(primary: Cluster, user: OsUser) -> None:
    """Let the primary's pg_hba.conf admit what streams; fixtures of earlier versions do not."""
    owner = owner_of(user)
    with Folder.hold(primary.data) as data:
        hba = data.read("pg_hba.conf", user.uid)
        if _HBA in hba.splitlines():
            return
        data.write("pg_hba.conf", f"{hba.rstrip()}\n{_HBA}\n", 0o600, owner)
    with own_session(primary.connection()) as session:
        session.execute("SELECT pg_reload_conf()")
