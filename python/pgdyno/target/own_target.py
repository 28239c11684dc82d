"""A target whose servers are ours: clusters of the embedded or an installed PostgreSQL.

Fixtures are stopped data directories, kept by hash; a trial runs on a copy that is thrown away.
Data belong to the user who runs servers, and are copied, synced and removed with that user's
rights; the folders that they lie in, and the records beside them, are ours.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg

from pgdyno.folders import Folder, owner_of
from pgdyno.model.connection import Connection
from pgdyno.model.manifest import Installation
from pgdyno.model.plan import Stage
from pgdyno.model.plan import Target as TargetPlan
from pgdyno.model.pooler import Pooler
from pgdyno.model.record_json import from_json, to_json
from pgdyno.model.run import Fixture
from pgdyno.model.settings import Origin, OriginKind, ServerFacts, Setting
from pgdyno.model.workload import database_names
from pgdyno.mounts import unmount_left
from pgdyno.shell import OsUser, run
from pgdyno.target.binaries import Binaries
from pgdyno.target.cluster import DATABASE, Cluster, initdb, remove_sockets
from pgdyno.target.home import (
    FIXTURES,
    WORK,
    StageFolder,
    locked_home,
    our_folder,
    require_reachable,
    require_room,
    take_stage_folder,
)
from pgdyno.target.interface import NO_ENVIRONMENT, Pooled, Ready, Restored
from pgdyno.target.leftover_server import stop_leftover
from pgdyno.target.pooler import OwnPooler, clear_pooler
from pgdyno.target.readback import read_back, server_words
from pgdyno.target.rehearse import REHEARSAL, rehearse
from pgdyno.target.server_log import LogTail
from pgdyno.target.standby import STANDBY, Standby

DISK, RECORD, LEDGER = "disk", "record", "ledger"
DISK_AGAIN, RECORD_AGAIN = "disk-again", "record-again"
BASE, JOURNALS = "base", "journals"
"""What a drill puts beside the data of a trial."""
_LOAD_MEMORY_SHARE = 1 / 8
DATA = "data"
_DATA_DIRECTORIES = (DATA, DISK, DISK_AGAIN, BASE, STANDBY)
_LOADING = ".loading"
_RECORD = "fixture.json"
_COPY_S = 36_000


@dataclass(frozen=True, slots=True)
class Installed:
    """An installation of PostgreSQL, and what its servers are."""

    binaries: Binaries
    facts: ServerFacts


class OwnTarget:
    """Clusters of ours in a folder of ours."""

    def __init__(
        self,
        plan: TargetPlan,
        binaries: Binaries,
        facts: ServerFacts,
        user: OsUser,
        home: Path,
        memory_bytes: int,
        builds: Mapping[str, Installed] | None = None,
        folders: Sequence[str] = (),
    ) -> None:
        """Take the home and the folders that stages name, and clear what a killed run left there.

        Raises:
            TargetError: Another pgdyno has one of them, or one holds what is not ours.
        """
        self._plan = plan
        self._installed: dict[str | None, Installed] = {None: Installed(binaries, facts)}
        self._installed.update(builds or {})
        self._user = user
        self._memory_bytes = memory_bytes
        self._cluster: Cluster | None = None
        self._standby: Standby | None = None
        self._pooler: OwnPooler | None = None
        self._loading: Folder | None = None
        self._stage_folders: dict[str, StageFolder] = {}
        self.facts = facts
        self.build: Installation = binaries.manifest()
        with ExitStack() as held:
            self._home = held.enter_context(locked_home(home))
            require_reachable(home, user)
            self._fixtures = held.enter_context(our_folder(self._home, FIXTURES))
            self._work = held.enter_context(our_folder(self._home, WORK))
            for folder in dict.fromkeys(folders):
                self._stage_folders[folder] = taken = take_stage_folder(Path(folder), home)
                held.callback(taken.leave)
                require_reachable(taken.folder.path, user)
            self._clear_leftovers()
            self._held = held.pop_all()
        self._trial_folder = self._work  # of the trial

    def _clear_leftovers(self) -> None:
        for folder in (
            self._work,
            *(stage_folder.folder for stage_folder in self._stage_folders.values()),
        ):
            self._clear(folder)
        for name in self._fixtures.names():
            if name.endswith(_LOADING):
                self._remove_loading(name)

    def _clear(self, folder: Folder) -> None:
        """Stop what runs on the data in a place, of trial, rehearsal or drill, and remove them."""
        unmount_left(folder)
        programs = [one.binaries.program("postgres") for one in self._installed.values()]
        rehearsed = [name for name in folder.names() if name.startswith(REHEARSAL)]
        for name in (RECORD, RECORD_AGAIN, LEDGER):
            folder.remove(name)
        folder.remove_folder(JOURNALS)
        clear_pooler(folder)
        for name in {*_DATA_DIRECTORIES, *(name.partition(".")[0] for name in rehearsed)}:
            if folder.has(name):
                with folder.into(name) as data:
                    stop_leftover(data, self._user, programs)
            remove_sockets(folder, name)
            folder.remove(f"{name}.log")
            folder.remove_folder(name)

    def _remove_loading(self, name: str) -> None:
        if self._fixtures.has(name):
            with self._fixtures.into(name) as left:
                self._clear(left)
            self._fixtures.remove_folder(name)

    @property
    def each(self) -> Sequence[OwnTarget]:
        """See `Target.each`."""
        return (self,)

    def configuration(self) -> dict[str, str]:
        """See `Target.configuration`: it begins anew with every trial."""
        return {}

    def facts_of(self, build: str | None) -> ServerFacts:
        """See `Target.facts_of`."""
        return self._installed[build].facts

    def rehearse(self, stages: Sequence[Stage]) -> Iterator[tuple[str, str]]:
        """See `Target.rehearse`."""
        return rehearse(
            stages, lambda build: self._installed[build].binaries, self._user, self._plan.initdb,
            lambda folder: (self._stage_folders[folder].folder if folder else self._work).path,
        )  # fmt: skip

    # -- fixture ------------------------------------------------------------------------------

    def find_fixture(self, ident: str) -> Fixture | None:
        """See `Target.find_fixture`."""
        return kept_fixture(self._home.path, ident)

    def begin_fixture(self, ident: str, build: str | None = None) -> Connection:
        """See `Target.begin_fixture`."""
        binaries = self._installed[build].binaries
        self._remove_loading(f"{ident}{_LOADING}")
        self._loading = self._fixtures.make(f"{ident}{_LOADING}")
        data = self._loading.path / DATA
        # Synced as a whole when it is kept; until then a crash leaves what the next run removes.
        initdb(binaries, data, self._user, ("--no-sync", *self._plan.initdb))
        self._cluster = Cluster(binaries, data, self._user, "socket", self._loading)
        self._cluster.start(self._load_settings())
        with psycopg.connect(**self._cluster.connection().arguments(), autocommit=True) as session:
            session.execute(f"CREATE DATABASE {DATABASE}")
        connection = self._cluster.connection().to(DATABASE)
        with psycopg.connect(**connection.arguments(), autocommit=True) as session:
            session.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
        return connection

    def _load_settings(self) -> tuple[Setting, ...]:
        # Safe ones that only make loading quicker; trials never see them.
        memory = min(int(self._memory_bytes * _LOAD_MEMORY_SHARE), 8 << 30)
        origin = Origin(OriginKind.TARGET, "loading a fixture")
        values = {
            "shared_buffers": f"{memory >> 20}MB",
            "maintenance_work_mem": f"{max(memory >> 22, 64)}MB",
            "max_wal_size": "16GB",
            # Kept for reuse when the fixture is stopped, so that trials begin with WAL segments at
            # hand, as a server does that has run for a while.
            "min_wal_size": "1GB",
            "checkpoint_timeout": "1h",
            "wal_buffers": "64MB",
            "autovacuum": "off",
        }
        return tuple(Setting(name, value, origin) for name, value in values.items())

    def keep_fixture(self, fixture: Fixture, databases: int = 1) -> Fixture:
        """See `Target.keep_fixture`."""
        assert self._cluster is not None
        assert self._loading is not None
        with psycopg.connect(**self._cluster.connection().arguments(), autocommit=True) as session:
            # By files: else each goes into WAL as well, and that into the copy of every trial.
            by_files = " STRATEGY FILE_COPY" if session.info.server_version >= 150000 else ""
            for name in database_names(DATABASE, databases)[1:]:
                session.execute(f"CREATE DATABASE {name} TEMPLATE {DATABASE}{by_files}")
        self._cluster.stop(clean=True)
        self._cluster.close()
        self._cluster = None
        with self._loading.into(DATA) as data:
            data.remove("pgdyno.conf")
            method = "reflink" if _reflinks(self._loading) else "copy"
            kept = replace(fixture, data_bytes=_folder_bytes(data), restore=method)
        self._loading.write(_RECORD, to_json(kept))
        run(["sync", "-f", "."], folder=self._loading.handle, timeout_s=_COPY_S)
        self._fixtures.rename(self._loading.path.name, fixture.ident)
        self._fixtures.sync()
        self._loading.close()
        self._loading = None
        return kept

    def drop_half_fixture(self) -> None:
        """See `Target.drop_half_fixture`."""
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None
        if self._loading is not None:
            self._loading.close()
            self._remove_loading(self._loading.path.name)
            self._loading = None

    # -- trial --------------------------------------------------------------------------------

    def restore(self, ident: str, databases: int = 1, folder: str | None = None) -> Restored:
        """See `Target.restore`."""
        fixture = kept_fixture(self._home.path, ident)
        assert fixture is not None, f"fixture {ident} vanished"
        method = fixture.restore
        self._trial_folder = self._work
        if folder is not None:
            self._trial_folder, method = self._stage_folders[folder].folder, "copy"
        self._clear(self._trial_folder)
        if method == "copy":
            require_room(self._trial_folder.path, fixture.data_bytes)
        began = time.monotonic()
        source = self._fixtures.path / ident / DATA
        # Else the kernel would still be writing the copy back during the window.
        self._copied(source, DATA, then=(["sync", "-f", "."],))
        return Restored(method, time.monotonic() - began)

    def copy(self, source: str, name: str) -> None:
        """Copy a data directory of the trial's folder, in place of what has the copy's name."""
        self._trial_folder.remove_folder(name)
        self._copied(self._trial_folder.path / source, name)

    def _copied(self, source: Path, name: str, then: Sequence[list[str]] = ()) -> None:
        with self._trial_folder.make(name, 0o700, owner_of(self._user)) as copy:
            for words in (["cp", "-a", "--reflink=auto", "-T", str(source), "."], *then):
                run(words, user=self._user, folder=copy.handle, timeout_s=_COPY_S,
                    dies_with_us=signal.SIGKILL)  # fmt: skip

    def apply(
        self,
        settings: Sequence[Setting],
        build: str | None = None,
        environment: Mapping[str, str] = NO_ENVIRONMENT,
    ) -> Ready:
        """See `Target.apply`."""
        self._cluster = self.server_on(DATA, build)
        seconds = self._cluster.start(settings, environment)
        wanted = self._cluster.settings(settings)
        effective = read_back(self._cluster.connection(), wanted)
        words = server_words(self._cluster.connection())
        connection = self._cluster.measured_connection()
        replica = self._replica_of(connection, settings, build) if self._plan.replicas else None
        return Ready(
            connection,
            effective,
            self._cluster.pid,
            self._cluster.data,
            seconds,
            words,
            self.binaries_of(build).bindir,
            self._user,
            self._cluster.log_path,
            replica=replica,
            aside=self._cluster.connection(),
        )

    def _replica_of(
        self, measured: Connection, settings: Sequence[Setting], build: str | None
    ) -> Connection:
        """Make a standby that answers reads, reached as the server is: its database there."""
        self._standby = self.standby(build, self._plan.transport)
        self._standby.start(settings)
        there = self._standby.cluster.connection()
        if self._plan.transport == "socket":
            return there.to(measured.database)
        return replace(measured, port=there.port)  # its roles and passwords are the server's

    def follow(self, settings: Sequence[Setting], build: str | None = None) -> Connection:
        """See `Target.follow`; the standby that the plan asks for anyway is enough."""
        if not self._plan.replicas:
            self._standby = self.standby(build)
            self._standby.start(settings)
        assert self._standby is not None, "apply has made it"
        return self._standby.cluster.connection()

    def standby(self, build: str | None, transport: str = "socket") -> Standby:
        """A standby of the server of the trial, in place of one before; nothing runs yet."""
        self._trial_folder.remove_folder(STANDBY)
        return Standby(
            self.cluster, self.binaries_of(build), self._user, STANDBY, self._trial_folder,
            transport,
        )  # fmt: skip

    def pool(self, pooler: Pooler, clients: int, load: Connection) -> Pooled:
        """See `Target.pool`."""
        server = self.cluster.connection()
        self._pooler = OwnPooler(pooler, clients, server, load, self._user, self._trial_folder)
        return self._pooler.pooled

    @property
    def trial_folder(self) -> Folder:
        """The folder of ours that the data of the trial lie in."""
        return self._trial_folder

    @property
    def user(self) -> OsUser:
        """Who runs servers."""
        return self._user

    def binaries_of(self, build: str | None) -> Binaries:
        """Programs of the server under test."""
        return self._installed[build].binaries

    def server_on(self, disk: str, build: str | None) -> Cluster:
        """A server that does not run yet, on a data directory in the trial's folder."""
        return Cluster(
            self.binaries_of(build), self._trial_folder.path / disk, self._user,
            self._plan.transport, self._trial_folder,
        )  # fmt: skip

    def crash(self) -> None:
        """See `Target.crash`."""
        assert self._cluster is not None
        self._cluster.crash()

    def log_lines(self) -> Iterator[str] | None:
        """See `Target.log_lines`."""
        return self._cluster.log_lines() if self._cluster else None

    def log_tail(self) -> LogTail | None:
        """See `Target.log_tail`."""
        return self._cluster.log_tail() if self._cluster else None

    def log_text(self) -> str | None:
        """See `Target.log_text`."""
        return self._cluster.log_text() if self._cluster else None

    def last_words(self) -> str | None:
        """See `Target.last_words`."""
        return self._cluster.last_words() if self._cluster else None

    @property
    def cluster(self) -> Cluster:
        """The server of the trial, which runs."""
        assert self._cluster is not None
        return self._cluster

    @property
    def is_down(self) -> bool:
        """Whether the server of the trial has ended, so that somebody has to start it."""
        return self._cluster is None or not self._cluster.runs

    def halt(self) -> None:
        """Stop the server of the trial at once, its standby and its pooler; its data stay."""
        if self._pooler is not None:
            self._pooler.close()
            self._pooler = None
        if self._standby is not None:
            self._standby.close()
            self._standby = None
            self._trial_folder.remove_folder(STANDBY)
        if self._cluster is not None:
            self._cluster.stop(clean=False)
            self._cluster.close()
            self._cluster = None

    def stop(self) -> None:
        """See `Target.stop`."""
        self.halt()
        self._trial_folder.remove_folder(DATA)

    def came_back(self, patience_s: float) -> bool:
        """It is ours, and is started anew for each trial: nothing to wait for."""
        return False

    def close(self) -> None:
        """See `Target.close`."""
        with self._held:  # released last, whatever fails
            self.drop_half_fixture()
            self._trial_folder.remove_folder(DATA)


def kept_fixture(home: Path, ident: str) -> Fixture | None:
    """The fixture of this hash below a home, if it was loaded before and is whole.

    Raises:
        TargetError: Its record is a link, or somebody else's.
    """
    path = home / FIXTURES / ident
    if not path.is_dir():
        return None
    with Folder.hold(path) as folder:
        if not folder.has(_RECORD):
            return None
        return replace(from_json(Fixture, folder.read(_RECORD)), reused=True)


def _reflinks(folder: Folder) -> bool:
    """Whether the file system shares blocks between copies, by trying."""
    names = ("reflink.source", "reflink.copy")
    try:
        folder.write(names[0], "x" * 8192)
        done = run(["cp", "--reflink=always", *names], folder=folder.handle, check=False)
        return done.code == 0
    finally:
        for name in names:
            folder.remove(name)


def _folder_bytes(folder: Folder) -> int:
    return sum(
        os.lstat(name, dir_fd=handle).st_blocks * 512
        for _, folders, files, handle in os.fwalk(".", dir_fd=folder.handle)
        for name in (*folders, *files)
    )
