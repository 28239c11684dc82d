"""Databases: filled with a workload's rows, checked, and exported as files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from pgdyno.api.host_names import require_whole
from pgdyno.api.interrupts import interruptible
from pgdyno.api.notebook_line import with_line
from pgdyno.api.table import Table
from pgdyno.catalog.contract import default, require_accepted
from pgdyno.loader import copy, room
from pgdyno.loader import export as exporting
from pgdyno.loader.consistency import check as check_conditions
from pgdyno.loader.consistency import loaded_workload, require
from pgdyno.loader.copy import Intent
from pgdyno.loader.csv_files import load_csv, read_folder
from pgdyno.model.connection import Connection
from pgdyno.model.description import Description
from pgdyno.model.errors import PlanError
from pgdyno.model.fleet import Fleet
from pgdyno.model.loading import ExportReport, HostLoaded, LoadEstimate, LoadReport
from pgdyno.model.progress import ExportProgress, LoadProgress
from pgdyno.model.run import Condition
from pgdyno.model.server_host import ServerHost
from pgdyno.model.workload import Order, Partitions, Pgbench, Schema, Tpcc
from pgdyno.model.workload import Workload as WorkloadRecord
from pgdyno.store.output_file import require_closed
from pgdyno.target.conninfo import reach
from pgdyno.target.database_use import in_use
from pgdyno.target.server_host import server_host_of
from pgdyno.trial.shared_loading import estimate_from_hosts, load_from_hosts
from pgdyno.workload.describe import describe

Database: TypeAlias = Connection | str
"""A database: a conninfo as libpq reads it, or a connection that a `Server` gave."""
LOADED_AT = datetime.fromtimestamp(exporting.LOADED_AT_UNIX_S, UTC)
"""The time that exported rows carry unless told otherwise."""
_WAREHOUSES: int = default("TpccSpec", "warehouses")
_SEED: int = default("TpccSpec", "seed")
_SCHEMA: Schema = default("TpccSpec", "schema")
_ORDER: Order = default("TpccSpec", "order")


@dataclass(frozen=True, slots=True)
class Data:
    """What is to be loaded: a workload's rows are a function of this alone."""

    workload: Literal["tpcc", "tpcb"] = "tpcc"
    scale: int = _WAREHOUSES  # warehouses of about 100 MiB, or branches of 100,000 accounts
    seed: int = _SEED  # tpcc
    schema: Schema = _SCHEMA  # tpcc: names and types of its tables
    foreign_keys: bool = False
    partitions: Partitions | None = None  # tpcc
    order: Order = _ORDER  # tpcc: how orders lie in their tables

    def record(self) -> WorkloadRecord:
        """The workload whose rows these are.

        Raises:
            PlanError: Something is set that only TPC-C has, a number is one that the core does not
                take, or there are too many partitions.
        """
        if self.workload == "tpcc":
            require_accepted("TpccSpec", "warehouses", self.scale, "warehouses")
        else:
            require_accepted("PgbenchSpec", "scale", self.scale, "scale")
        require_accepted("TpccSpec", "seed", self.seed, "seed")
        if self.workload == "tpcc":
            self._require_filled_partitions()
            tpcc = Tpcc(
                self.scale, self.schema, foreign_keys=self.foreign_keys,
                partitions=self.partitions, order=self.order,
            )  # fmt: skip
            return WorkloadRecord("tpcc", self.seed, tpcc=tpcc)
        for name, is_set in (
            ("schema", self.schema != _SCHEMA),
            ("partitions", self.partitions is not None),
            ("order", self.order != _ORDER),
        ):
            if is_set:
                raise PlanError(
                    f"{name} is given, the workload is {self.workload}", f"Only tpcc has {name}."
                )
        return WorkloadRecord(
            self.workload, self.seed, pgbench=Pgbench(self.scale, self.foreign_keys)
        )

    def _require_filled_partitions(self) -> None:
        if self.partitions is not None and not 1 <= self.partitions.count <= self.scale:
            raise PlanError(
                f"partitions are {self.partitions.count}, allowed are 1 to {self.scale},"
                " one for each warehouse",
                "More would stay empty.",
            )


@dataclass(frozen=True, slots=True)
class Needs:
    """What a load needs, and where the server would put it."""

    estimate: LoadEstimate
    host: ServerHost

    def require(self) -> None:
        """Refuse a load that does not fit.

        Raises:
            TargetError: A file system has less free space than goes there.
        """
        room.require_room(self.estimate, self.host)

    def __str__(self) -> str:
        return room.room_text(self.estimate, self.host)


@dataclass(frozen=True, slots=True)
class Checked:
    """Consistency conditions of a database, as checked."""

    conditions: tuple[Condition, ...]

    @property
    def hold(self) -> bool:
        """Whether all of them do."""
        return all(one.ok for one in self.conditions)

    def require(self) -> None:
        """Refuse a database that violates one.

        Raises:
            CheckError: Naming the first, with a row.
        """
        require(self.conditions)

    def table(self) -> Table:
        """A row for each."""
        names = ("number", "title", "violations", "sample", "seconds")
        rows = [{name: getattr(one, name) for name in names} for one in self.conditions]
        return Table.of(rows, names)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


@dataclass(frozen=True, slots=True)
class Loaded:
    """A database that was filled."""

    report: LoadReport
    checked: Checked | None  # None: not asked for
    hosts: tuple[HostLoaded, ...] = ()  # that copied the rows; none: this one alone


def connection_to(database: Database) -> Connection:
    """How the driver gets to a database.

    Raises:
        PlanError: libpq or the driver cannot do what the conninfo asks for.
        TargetError: Nothing answers there, or it refuses.
    """
    return reach(database) if isinstance(database, str) else database


def estimate_load(
    data: Data,
    database: Database,
    *,
    connections: int | None = None,
    intent: Intent | None = None,
    fleet: Fleet | None = None,
) -> Needs:
    """What a load would need of disk and time; nothing is changed.

    Args:
        data: See `load`, as what follows.
        database: To be filled.
        connections: Of the load.
        intent: What would become of an earlier load of ours.
        fleet: Hosts that would copy the rows; how long they take is not known.

    Raises:
        DriveError: The load would be refused, or the server failed.
    """
    connection = connection_to(database)
    return _needs(connection, data.record(), connections, intent, fleet)[0]


def _needs(
    connection: Connection,
    workload: WorkloadRecord,
    connections: int | None,
    intent: Intent | None,
    fleet: Fleet | None,
) -> tuple[Needs, copy.How]:
    require_accepted("LoadSpec", "connections", connections, "connections")
    if fleet is not None:
        require_whole(fleet)
    host = server_host_of(connection)
    # The server is not ours: its memory is not shared out here, see `loader.copy.How`.
    how = copy.How(connections, intent=intent)
    if fleet is None:
        return Needs(copy.estimate(connection, workload, how), host), how
    return Needs(estimate_from_hosts(connection, workload, how), host), how


@with_line
def load(
    data: Data,
    database: Database,
    *,
    connections: int | None = None,
    intent: Intent | None = None,
    fleet: Fleet | None = None,
    check: bool = True,
    on_estimate: Callable[[Needs], None] = lambda _: None,
    on_event: Callable[[LoadProgress], None] = lambda _: None,
) -> Loaded:
    """Fill a database by COPY from several connections, with indexes and vacuum.

    Args:
        data: What is loaded.
        database: An empty one, unless the intent says otherwise.
        connections: How many stream and build at the same time, of all hosts; None: from the cores.
        intent: What becomes of an earlier load of ours: `drop_ours`, `resume`, `top_up`.
        fleet: Hosts that copy the rows, each those of its own warehouses, into the tables that this
            host creates, indexes and vacuums; None: this host copies them as well.
        check: Whether the consistency conditions are checked afterwards.
        on_estimate: Told what it will need, before anything is changed.
        on_event: Told five times a second how far it is.

    Raises:
        TargetError: The server has not enough room, or another pgdyno uses the database.
        DriveError: There is a table already, the server or a host failed, ...
        CheckError: A condition does not hold.
        Interrupted: Ctrl-C; what is left behind is named.
    """
    connection, workload = connection_to(database), data.record()
    needs, how = _needs(connection, workload, connections, intent, fleet)
    on_estimate(needs)
    needs.require()
    with in_use(connection, alone=True):
        hosts: tuple[HostLoaded, ...] = ()
        if fleet is None:
            report = copy.load(connection, workload, how, progress=on_event)
        else:
            report, hosts = load_from_hosts(fleet, connection, workload, how, on_event)
        return Loaded(report, _sound(connection, describe(workload)) if check else None, hosts)


@with_line
def load_files(
    folder: str | Path,
    database: Database,
    *,
    foreign_keys: bool = False,
    check: bool = True,
    on_event: Callable[[LoadProgress], None] = lambda _: None,
) -> Loaded:
    """Fill a database with TPC-C's rows from CSV files, in one transaction.

    Args:
        folder: Files of `export`, or those that BenchmarkSQL 5 writes.
        database: An empty one.
        foreign_keys: Add them at the end.
        check: Whether the consistency conditions are checked afterwards.
        on_event: Told of every MiB.

    Raises:
        PlanError: The folder does not hold the files of one database.
        PgdynoError: See `load`.
    """
    files = read_folder(Path(folder))
    connection = connection_to(database)
    described, _ = files.described(foreign_keys=foreign_keys)
    with in_use(connection, alone=True):
        report = load_csv(connection, files, foreign_keys=foreign_keys, progress=on_event)
        return Loaded(report, _sound(connection, described) if check else None)


def check(database: Database) -> Checked:
    """Run the twelve consistency conditions of TPC-C, clause 3.3.2, on a loaded database.

    Raises:
        CheckError: It holds no data of TPC-C.
        Interrupted: Ctrl-C; the database is as it was.
        TargetError: Nothing answers there, or it refuses.
    """
    connection = connection_to(database)
    return _checked(connection, loaded_workload(connection).described())


def _checked(connection: Connection, described: Description) -> Checked:
    with interruptible(
        "stopped while conditions were checked",
        "Checking changes nothing; `pgdyno check` does it again.",
    ):
        return Checked(check_conditions(connection, described.conditions))


def _sound(connection: Connection, described: Description) -> Checked:
    checked = _checked(connection, described)
    checked.require()
    return checked


@with_line
def export(
    folder: str | Path,
    *,
    warehouses: int = _WAREHOUSES,
    schema: Schema = "bmsql",
    seed: int = _SEED,
    loaded_at: datetime = LOADED_AT,
    on_event: Callable[[ExportProgress], None] = lambda _: None,
) -> ExportReport:
    """Write TPC-C's initial rows into CSV files, one for each table; the same gives the same bytes.

    Args:
        folder: Empty, or not there yet.
        warehouses: How many.
        schema: Files as BenchmarkSQL 5 writes them, or of our own tables.
        seed: Rows are a function of it.
        loaded_at: The time that rows carry; UTC where it names no zone.
        on_event: Told five times a second.

    Raises:
        PlanError: There are no warehouses, or more than the core makes rows of.
        DriveError: The folder is not empty, the disk has not enough room; nothing is left.
        StoreError: As root, others could put links there.
        Interrupted: Ctrl-C; what was written is removed.
    """
    require_accepted("TpccSpec", "warehouses", warehouses, "warehouses")
    require_accepted("TpccSpec", "seed", seed, "seed")
    require_closed(Path(folder))
    workload = WorkloadRecord("tpcc", seed, tpcc=Tpcc(warehouses, schema))
    at = loaded_at if loaded_at.tzinfo is not None else loaded_at.replace(tzinfo=UTC)
    return exporting.export(
        Path(folder), workload, loaded_at_unix_s=int(at.timestamp()), progress=on_event
    )
