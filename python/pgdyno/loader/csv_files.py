"""Loads TPC-C from CSV files: those of `pgdyno export`, or those that BenchmarkSQL 5 writes.

The files are copied from this machine, in one transaction: it ends complete, or nothing is left.
They are opened in the folder that was named, without links: as root, nothing is read for another
user that only root could read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import Cursor
from psycopg.sql import SQL, Identifier

from pgdyno.folders import Folder
from pgdyno.loader.reports import REPORT_VERSION
from pgdyno.model.connection import Connection
from pgdyno.model.description import CsvFile, Description, TpccDescription
from pgdyno.model.errors import DriveError, Interrupted, TargetError
from pgdyno.model.loading import LoadReport, PhaseSeconds
from pgdyno.model.progress import LoadProgress
from pgdyno.model.system_errors import reason
from pgdyno.model.units import count_text
from pgdyno.model.wording import plural
from pgdyno.model.workload import Schema, Tpcc
from pgdyno.plan.schema.files import BadFile, text_file
from pgdyno.session import COUNT_NOW
from pgdyno.workload.describe import describe_loaded

CONFIG = "config.csv"
_SCHEMAS: dict[Schema, str] = {"bmsql": "cust-hist.csv", "spec": "history.csv"}  # by its own file
_CHUNK_BYTES = 1 << 20
_NAMED = 5
# No table of somebody else's in another schema is ever meant.
_PIN = "SELECT set_config('search_path', quote_ident(current_schema()), true)"
_ROWS_VARY = "order-line.csv", "order_line.csv"  # 5 to 15 for each order


@dataclass(frozen=True, slots=True)
class CsvFolder:
    """Files of an export, and what they say of themselves."""

    path: Path
    schema: Schema
    warehouses: int
    c_last: int  # the load's constant for last names

    def described(self, *, foreign_keys: bool) -> tuple[Description, TpccDescription]:
        """What the core says of a database with these rows."""
        tpcc = Tpcc(self.warehouses, self.schema, foreign_keys=foreign_keys)
        return describe_loaded(tpcc, None, {"c_last": self.c_last})


def read_folder(path: Path) -> CsvFolder:
    """Look at a folder of CSV files.

    Raises:
        DriveError: Files are missing, or `config.csv` does not say what they hold.
    """
    with _held(path) as held:
        there = set(held.names())
        schema = next((name for name, file in _SCHEMAS.items() if file in there), None)
        if schema is None:
            neither = " nor ".join(_SCHEMAS.values())
            raise DriveError(f"folder {path} has neither {neither}", "Was it written by an export?")
        facts = _config(held)
        missing = [name for name in ("warehouses", "nURandCLast") if name not in facts]
        if missing:
            raise DriveError(f"{path / CONFIG} does not say {' and '.join(missing)}")
        folder = CsvFolder(path, schema, facts["warehouses"], facts["nURandCLast"])
        files = [file.name for file in folder.described(foreign_keys=False)[1].csv.files]
        if lost := [name for name in files if name not in there]:
            raise DriveError(f"folder {path} lacks {', '.join(lost)}", "Was the export complete?")
        for name in files:
            os.close(held.open_given(name))
    return folder


@contextmanager
def _held(path: Path) -> Iterator[Folder]:
    """A folder of files, held open; what is refused in it is an error of the import."""
    try:
        with Folder.hold(path) as held:
            yield held
    except TargetError as error:
        raise DriveError(error.fact, error.hint) from error


def _config(held: Folder) -> dict[str, int]:
    path = held.path / CONFIG
    try:
        with os.fdopen(held.open_given(CONFIG), "rb") as file:
            text = text_file(f"/proc/self/fd/{file.fileno()}")
        pairs = [line.split(",") for line in text.splitlines() if line]
        return {name: int(value) for name, value in pairs}
    except BadFile as error:
        raise DriveError(f"{path} {error}", "It says how many warehouses there are.") from error
    except ValueError as error:
        raise DriveError(
            f"{path} is not understood: {error}", "Its lines are a name, a comma and a number."
        ) from error


def load_csv(
    connection: Connection,
    folder: CsvFolder,
    *,
    foreign_keys: bool = False,
    progress: Callable[[LoadProgress], None] = lambda _: None,
) -> LoadReport:
    """Create the tables, copy the files, build keys and indexes, vacuum, record.

    Args:
        connection: A database without these tables.
        folder: From `read_folder`.
        foreign_keys: Whether to add those of clause 1.4.
        progress: Told of every MiB.

    Returns:
        As `copy.load`, without what only the server counts.

    Raises:
        DriveError: A table exists already, a file does not fit, the server failed, ...
        Interrupted: Ctrl-C; nothing is left.
    """
    described, tpcc = folder.described(foreign_keys=foreign_keys)
    with _held(folder.path) as held:
        job = _Job(folder, held, described, tpcc, progress)
        _carry_out(job, connection)
    return job.report()


def _carry_out(job: _Job, connection: Connection) -> None:
    try:
        with psycopg.connect(**connection.arguments()) as session, session.cursor() as cursor:
            job.fill(cursor)
            session.commit()
            session.execute(COUNT_NOW)
        with (
            psycopg.connect(**connection.arguments(), autocommit=True) as session,
            job.phase("vacuum"),
        ):
            for table in job.described.tables:
                session.execute(f"VACUUM (ANALYZE) {table.name}".encode())
    except psycopg.Error as error:
        fact = f"{job.step}: {str(error).strip()}"
        raise DriveError(fact, "Nothing of the import is left in the database.") from error
    except OSError as error:
        raise DriveError(
            f"{job.step}: {reason(error)}", "Nothing of the import is left."
        ) from error
    except KeyboardInterrupt:
        fact = f"the import was stopped: {job.step}"
        raise Interrupted(fact, "Nothing of it is left in the database.") from None


def _size_bytes(held: Folder, name: str) -> int:
    with os.fdopen(held.open_given(name), "rb") as file:
        return os.fstat(file.fileno()).st_size


class _Phase:
    def __init__(self, job: _Job, name: str) -> None:
        self._job, self._name = job, name

    def __enter__(self) -> None:
        self._job.name = self._name
        self._began = time.monotonic()

    def __exit__(self, *_: object) -> None:
        seconds = time.monotonic() - self._began
        self._job.phases.append(PhaseSeconds(self._name, seconds))


class _Job:
    """One import: what it does now, and what it did."""

    def __init__(
        self,
        folder: CsvFolder,
        held: Folder,
        described: Description,
        tpcc: TpccDescription,
        progress: Callable[[LoadProgress], None],
    ) -> None:
        self.folder, self.described, self.tpcc, self._tell = folder, described, tpcc, progress
        self._held = held
        self.files = [file for file in tpcc.csv.files if file.table]
        self.bytes_total = sum(_size_bytes(held, file.name) for file in self.files)
        self.rows_of = {table.name: table.rows for table in described.tables}
        self.began = time.monotonic()
        self.phases: list[PhaseSeconds] = []
        self.rows = self.bytes = 0
        self.name = self.step = "connect"

    def phase(self, name: str) -> _Phase:
        """Times a phase."""
        return _Phase(self, name)

    def fill(self, cursor: Cursor[Any]) -> None:
        """Everything but the vacuum; the caller commits."""
        csv, made, load_table = self.tpcc.csv, self.tpcc.made, self.tpcc.load_table
        tables = [table.ddl for table in self.described.tables]
        with self.phase("prepare"):
            self._require_room(cursor)
            creation = [*csv.before, *tables, load_table.sql, *made.before]
            self._run(cursor, [_PIN, *creation])
        with self.phase("copy"):
            for file in self.files:
                self._copy(cursor, file)
        with self.phase("index"):
            self._run(cursor, [*csv.after, *made.after])
        with self.phase("record"):
            record = SQL("INSERT INTO {} VALUES (%s, %s)").format(Identifier(load_table.name))
            cursor.executemany(record, list(self._record().items()))

    def _require_room(self, cursor: Cursor[Any]) -> None:
        """Nothing may have a name that is needed, in any schema of the search path."""
        self.step = "look for tables"
        found = cursor.execute(self.tpcc.made.in_the_way.encode()).fetchall()
        if found:
            names = [what for what, _ in found]
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            raise DriveError(
                f"database {cursor.connection.info.dbname} has {', '.join(names[:_NAMED])}{more},"
                " the import would create such",
                "Load into another database; nothing was changed.",
            )

    def _run(self, cursor: Cursor[Any], statements: list[str]) -> None:
        for statement in statements:
            self.step = statement
            cursor.execute(statement.encode())
            self._tell(self._progress())

    def _copy(self, cursor: Cursor[Any], file: CsvFile) -> None:
        self.step = f"copy {self.folder.path / file.name}"
        # The tables are new in this transaction: rows can be frozen as they come.
        sql = (
            f"COPY {file.table} ({file.columns}) FROM STDIN"
            f" (FORMAT csv, NULL '{file.null}', FREEZE)"
        )
        with (
            os.fdopen(self._held.open_given(file.name), "rb") as source,
            cursor.copy(sql.encode()) as copy,
        ):
            while chunk := source.read(_CHUNK_BYTES):
                copy.write(chunk)
                self.bytes += len(chunk)
                self._tell(self._progress())
        self.rows += cursor.rowcount
        self._require_rows(file, cursor.rowcount)

    def _require_rows(self, file: CsvFile, rows: int) -> None:
        wanted = self.rows_of[str(file.table)]
        if rows != wanted and file.name not in _ROWS_VARY:
            raise DriveError(
                f"{self.folder.path / file.name} has {plural(rows, 'row', thousands=True)},"
                f" {plural(self.folder.warehouses, 'warehouse has', 'warehouses have')}"
                f" {count_text(wanted)}",
                f"{CONFIG} says how many warehouses there are; nothing was changed.",
            )

    def _record(self) -> dict[str, str]:
        """What `pgdyno_load` remembers. No seed: it is not known of files."""
        return {
            "workload": "tpcc",
            "version": str(self.described.version),
            "schema": self.folder.schema,
            "warehouses": str(self.folder.warehouses),
            "c_last": str(self.folder.c_last),
            "foreign_keys": str(self.described.spec["foreign_keys"]).lower(),
        }

    def _progress(self) -> LoadProgress:
        seconds = time.monotonic() - self.began
        rate = self.bytes / seconds if seconds > 0 else 0.0
        left = (self.bytes_total - self.bytes) / rate if rate else None
        return LoadProgress(
            phase=self.name,
            share=self.bytes / self.bytes_total if self.bytes_total else 0.0,
            rows=self.rows,
            rows_total=sum(self.rows_of.values()),
            bytes=self.bytes,
            bytes_per_s=rate,
            seconds=seconds,
            seconds_left=left if self.name == "copy" else None,
            steps=(self.step,),
        )

    def report(self) -> LoadReport:
        """What was done."""
        return LoadReport(
            version=REPORT_VERSION,
            workload=self.described.spec,
            phases=tuple(self.phases),
            rows=self.rows,
            bytes=self.bytes,
            seconds=time.monotonic() - self.began,
            c_load=self.tpcc.c_load,
        )
