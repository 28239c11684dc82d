"""A target whose servers are ours: clusters of the embedded or an installed PostgreSQL.

Fixtures are stopped data directories, kept by hash; a trial runs on a copy that is thrown away.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg

from pgdyno.model.connection import Connection
from pgdyno.model.plan import Stage
from pgdyno.model.plan import Target as TargetPlan
from pgdyno.model.run import Fixture
from pgdyno.model.serial import from_json, to_json
from pgdyno.model.settings import Origin, OriginKind, ServerFacts, Setting
from pgdyno.model.workload import database_names
from pgdyno.shell import OsUser, run
from pgdyno.stage.binaries import Binaries
from pgdyno.stage.cluster import DATABASE, Cluster, initdb, stop_leftover
from pgdyno.stage.home import lock_home, owned_folder, remove_folder, work_place
from pgdyno.stage.readback import read_back, server_words
from pgdyno.stage.rehearse import rehearse
from pgdyno.stage.target import Ready, Restored

_LOAD_MEMORY_SHARE = 1 / 8


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
    ) -> None:
        self._plan = plan
        self._installed: dict[str | None, Installed] = {None: Installed(binaries, facts)}
        self._installed.update(builds or {})
        self._user = user
        self._home = home
        self._memory_bytes = memory_bytes
        owned_folder(home, user, 0o755)
        self._fixtures = owned_folder(home / "fixtures", user)
        self._work = owned_folder(home / "work", user)
        self._lock = lock_home(home)
        self._data = self._work / "data"  # of the trial
        self._places: set[Path] = set()  # of ours, in folders that stages name
        self._cluster: Cluster | None = None
        self._loading: Path | None = None
        self.facts = facts
        self.build: dict[str, str] = binaries.manifest()

    def facts_of(self, build: str | None) -> ServerFacts:
        """See `Target.facts_of`."""
        return self._installed[build].facts

    def rehearse(self, stages: Sequence[Stage]) -> Iterator[tuple[str, str]]:
        """See `Target.rehearse`."""

        def place(folder: str | None) -> Path:
            if folder is None:
                return self._work
            found = work_place(Path(folder), self._user, 0)
            self._places.add(found)
            return found

        return rehearse(
            stages, lambda build: self._installed[build].binaries, self._user, self._plan.initdb,
            place,
        )  # fmt: skip

    # -- fixture ------------------------------------------------------------------------------

    def find_fixture(self, ident: str) -> Fixture | None:
        """See `Target.find_fixture`."""
        return kept_fixture(self._home, ident)

    def begin_fixture(self, ident: str, build: str | None = None) -> Connection:
        """See `Target.begin_fixture`."""
        binaries = self._installed[build].binaries
        self._loading = self._fixtures / f"{ident}.loading"
        data = self._loading / "data"
        if data.exists():
            stop_leftover(binaries, data, self._user)
        remove_folder(self._loading)
        owned_folder(self._loading, self._user)
        initdb(binaries, data, self._user, self._plan.initdb)
        self._cluster = Cluster(binaries, data, self._user, "socket")
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
        (self._loading / "data" / "pgdyno.conf").unlink()
        method = "reflink" if _reflinks(self._loading) else "copy"
        kept = replace(fixture, data_bytes=_folder_bytes(self._loading / "data"), restore=method)
        (self._loading / "fixture.json").write_text(to_json(kept))
        run(["sync", "-f", self._loading])
        self._loading.rename(self._fixtures / fixture.ident)
        self._loading = None
        return kept

    def drop_half_fixture(self) -> None:
        """See `Target.drop_half_fixture`."""
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None
        if self._loading is not None:
            remove_folder(self._loading)
            self._loading = None

    # -- trial --------------------------------------------------------------------------------

    def restore(self, ident: str, databases: int = 1, folder: str | None = None) -> Restored:
        """See `Target.restore`."""
        fixture = kept_fixture(self._home, ident)
        assert fixture is not None, f"fixture {ident} vanished"
        source, copy = self._fixtures / ident / "data", self._work / "data"
        method = fixture.restore
        if folder is not None:
            place = work_place(Path(folder), self._user, fixture.data_bytes)
            self._places.add(place)
            copy, method = place / "data", "copy"
        self._data = copy
        stop_leftover(self._installed[None].binaries, copy, self._user)
        began = time.monotonic()
        remove_folder(copy)
        run(["cp", "-a", "--reflink=auto", source, copy], timeout_s=36_000)
        # Else the kernel would still be writing the copy back during the window.
        run(["sync", "-f", copy], timeout_s=36_000)
        return Restored(method, time.monotonic() - began)

    def apply(self, settings: Sequence[Setting], build: str | None = None) -> Ready:
        """See `Target.apply`."""
        binaries = self._installed[build].binaries
        self._cluster = Cluster(binaries, self._data, self._user, self._plan.transport)
        seconds = self._cluster.start(settings)
        wanted = (*self._cluster.own_settings(), *settings)
        effective = read_back(self._cluster.connection(), wanted)
        words = server_words(self._cluster.connection())
        connection = self._cluster.measured_connection()
        return Ready(
            connection,
            effective,
            self._cluster.pid,
            self._data,
            seconds,
            words,
            binaries.bindir,
        )

    def crash(self) -> None:
        """See `Target.crash`."""
        assert self._cluster is not None
        self._cluster.crash()

    def log_text(self) -> str | None:
        """See `Target.log_text`."""
        return self._cluster.log.read_text(errors="replace") if self._cluster else None

    def stop(self) -> None:
        """See `Target.stop`."""
        if self._cluster is not None:
            self._cluster.stop(clean=False)
            self._cluster.close()
            self._cluster = None
        remove_folder(self._data)

    def close(self) -> None:
        """See `Target.close`."""
        self.drop_half_fixture()
        remove_folder(self._data)
        for place in self._places:
            remove_folder(place)
        os.close(self._lock)


def kept_fixture(home: Path, ident: str) -> Fixture | None:
    """The fixture of this hash below a home, if it was loaded before and is whole."""
    record = home / "fixtures" / ident / "fixture.json"
    if not record.is_file():
        return None
    return replace(from_json(Fixture, record.read_text()), reused=True)


def _reflinks(folder: Path) -> bool:
    """Whether the file system shares blocks between copies, by trying."""
    source, copy = folder / "reflink.source", folder / "reflink.copy"
    try:
        source.write_bytes(b"x" * 8192)
        return run(["cp", "--reflink=always", source, copy], check=False).code == 0
    finally:
        for path in (source, copy):
            path.unlink(missing_ok=True)


def _folder_bytes(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if not path.is_symlink())
