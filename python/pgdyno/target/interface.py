"""What a plan's target must be able to do, whoever runs the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import psycopg

from pgdyno.model.connection import Connection
from pgdyno.model.errors import Interrupted, LostError, PgdynoError, TargetError
from pgdyno.model.manifest import Installation
from pgdyno.model.plan import Stage
from pgdyno.model.pooler import Pooler
from pgdyno.model.run import Effective, Fixture
from pgdyno.model.settings import ServerFacts, Setting
from pgdyno.model.system_errors import as_pgdyno_error, told
from pgdyno.model.workload import Workload, database_names
from pgdyno.shell import OsUser
from pgdyno.target.host_facts import memory_of
from pgdyno.target.server_log import LogTail

_ROOMY_BYTES = 256 << 20
_CHECKS_SHARE = 96  # two checks at once, three processes, two hashes of twice work_mem: a quarter
NO_ENVIRONMENT: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Restored:
    """A fresh copy of the fixture, not yet started."""

    method: str  # "reflink", "copy" or "template database"
    seconds: float


@dataclass(frozen=True, slots=True)
class Pooled:
    """A pooler of ours that runs, in front of the server under test."""

    connection: Connection  # the workload's database, through it
    console: Connection  # where it tells of itself
    pid: int
    require_alive: Callable[[], None]  # raises TargetError where it has ended


@dataclass(frozen=True, slots=True)
class Ready:
    """A server with a stage's settings, read back, and a fresh copy of the fixture."""

    connection: Connection
    settings: tuple[Effective, ...]
    postmaster_pid: int | None  # None where the server is not ours
    data_folder: Path | None  # of the cluster; None where the server is not ours
    start_s: float
    server: str  # what it calls itself: version()
    bindir: Path | None = None  # programs of its installation; None: not known
    user: OsUser | None = None  # who runs it, where it is ours
    log: Path | None = None  # of the server; None where it is not ours
    name: str = ""  # among several servers
    others: tuple[Ready, ...] = ()  # further servers, each with a part of the workload
    replica: Connection | None = None  # the same database on a standby that answers reads
    pooled: Pooled | None = None  # the load goes through it; whatever else we do does not
    aside: Connection | None = None  # a database of the same server that is not driven
    seen_pid: int | None = None  # postmaster on this host, not ours, whose processes we may see

    @property
    def each(self) -> tuple[Ready, ...]:
        """All servers."""
        return (self, *self.others)

    @property
    def watched_pid(self) -> int | None:
        """The postmaster whose processes are read; None: not here, or of several servers one."""
        return None if self.others else self.postmaster_pid or self.seen_pid

    @property
    def driven(self) -> Connection:
        """Where the load goes: the server, or the pooler in front of it."""
        return self.connection if self.pooled is None else self.pooled.connection

    @property
    def beside(self) -> Connection:
        """Where sessions of ours look on that need no table: what they do is not the load's."""
        return self.connection if self.aside is None else self.aside

    def databases(self, workload: Workload) -> list[Connection]:
        """Those that are driven: on one server all, on several one each."""
        if self.others:
            return [one.connection for one in self.each]
        names = database_names(self.connection.database, workload.databases)
        return [self.connection.to(name) for name in names]


@contextmanager
def ending(end: Callable[[], None]) -> Iterator[None]:
    """Call `end` afterwards in any case. If it fails as well, the first error stays the error.

    Only that the target is lost comes before everything: it is why the rest failed.
    """
    try:
        yield
    except BaseException as first:
        try:
            end()
        except LostError:
            if not isinstance(first, LostError):
                raise
        except (PgdynoError, psycopg.Error, OSError) as second:
            first.add_note(f"afterwards: {told(second)}")
        raise
    end()


@contextmanager
def on_server(name: str) -> Iterator[None]:
    """What fails on one of several servers says on which.

    Args:
        name: Of the server; empty where there is one, of which nothing else is said.

    Raises:
        PgdynoError: Of the kind that it was; what a session says by itself becomes ours.
    """
    try:
        yield
    except Interrupted:
        raise
    except (PgdynoError, psycopg.Error) as error:
        failure = as_pgdyno_error(error) if name else None
        if failure is None:
            raise
        failure.begin_with(f"server {name}")
        if failure is error:
            raise
        raise failure from error


@contextmanager
def explained(target: Target) -> Iterator[None]:
    """Where a server of ours fails, its log goes with it: its last words are told with the error.

    Raises:
        TargetError: The server failed, and its log is ours to read.
    """
    try:
        yield
    except psycopg.Error as error:
        words, known = target.last_words(), as_pgdyno_error(error)
        if words is None or known is None:
            raise
        raise TargetError(f"{known.fact}; its log ends with: {words}") from error


def own_work_mem(target: Target) -> str | None:
    """What a check may sort and hash in on a server of ours; None: another's gives what it has."""
    if target.facts_of(None).role is not None:
        return None
    return f"{min(_ROOMY_BYTES, memory_of() // _CHECKS_SHARE) >> 10}kB"


class Target(Protocol):
    """The server under test, from loading to stopping; each step needs the one before it.

    A stage that names a build has its ident given; None: the target's own installation.
    """

    @property
    def build(self) -> Installation:
        """What a reader of the run file must know of the target's own installation."""
        ...

    @property
    def each(self) -> Sequence[Target]:
        """The servers that it consists of, each of which has a fixture: itself where it is one."""
        ...

    def configuration(self) -> dict[str, str]:
        """Settings that a server which is not ours has already; of one of ours none."""
        ...

    def facts_of(self, build: str | None) -> ServerFacts:
        """Version and settings of the server."""
        ...

    def rehearse(self, stages: Sequence[Stage]) -> Iterator[tuple[str, str]]:
        """Try the settings of each stage before anything is loaded.

        Yields:
            A stage, and why the server refuses its settings.
        """
        ...

    def find_fixture(self, ident: str) -> Fixture | None:
        """The fixture of this hash, if it was loaded before and is whole."""
        ...

    def begin_fixture(self, ident: str, build: str | None = None) -> Connection:
        """An empty database to load into, on a server with safe settings."""
        ...

    def keep_fixture(self, fixture: Fixture, databases: int = 1) -> Fixture:
        """Make what was loaded the fixture of its hash; returns it with its size on disk.

        Trials will find it so many times, see `model.workload.database_names`.
        """
        ...

    def drop_half_fixture(self) -> None:
        """Remove what a failed load left behind."""
        ...

    def restore(self, ident: str, databases: int = 1, folder: str | None = None) -> Restored:
        """A fresh copy of a fixture; the copy of the trial before is thrown away.

        It lies in a folder of its own below `folder`; None: where the target keeps its clusters.
        """
        ...

    def apply(
        self,
        settings: Sequence[Setting],
        build: str | None = None,
        environment: Mapping[str, str] = NO_ENVIRONMENT,
    ) -> Ready:
        """Start (or reconfigure) the server with a stage's settings, and read them back.

        Args:
            settings: Of the stage.
            build: See `Target`.
            environment: Variables that a server of ours is started with, beside its own.
        """
        ...

    def follow(self, settings: Sequence[Setting], build: str | None = None) -> Connection:
        """Give the server under test a streaming standby; it ends with the trial.

        Args:
            settings: Of the stage.
            build: See `Target`.
        """
        ...

    def pool(self, pooler: Pooler, clients: int, load: Connection) -> Pooled:
        """Put a pooler in front of the server under test; it ends with the trial.

        Args:
            pooler: What it does.
            clients: How many connect to it, at most.
            load: How they would reach the server without it.
        """
        ...

    def crash(self) -> None:
        """Stop the server as a crash would, and start it again; returns when it answers."""
        ...

    def log_lines(self) -> Iterator[str] | None:
        """The lines of the server's log since `apply`, or None where it cannot be read."""
        ...

    def log_tail(self) -> LogTail | None:
        """Follows that log from now on, or None where it cannot be read."""
        ...

    def log_text(self) -> str | None:
        """As much of them as a run file keeps: the start and the end of a long log."""
        ...

    def last_words(self) -> str | None:
        """The end of the server's log, and how little room it had; None: it is not ours to read."""
        ...

    def stop(self) -> None:
        """End the trial: stop the server if it is ours; its data are thrown away."""
        ...

    def came_back(self, patience_s: float) -> bool:
        """Whether a server that went away answers again within so many seconds.

        Raises:
            StoppedError: It never went away: somebody ended our session there.
        """
        ...

    def close(self) -> None:
        """Leave nothing running and nothing behind but fixtures."""
        ...
