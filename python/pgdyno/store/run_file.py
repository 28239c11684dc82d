"""Reading and writing a run file.

A run file is a SQLite database: `head` (as JSON), `trial` (record as JSON), what telemetry left
(packed columns, see `telemetry_rows`), `log` (texts). Trials are written when they end, in one
transaction each, so that a crash keeps all the finished ones. A trial that is measured again takes
its place, and what was there before moves to a number after the plan's, with its telemetry and its
log: nothing is thrown away.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from pydantic import ValidationError

from pgdyno.core import CoreError
from pgdyno.model.errors import StoreError
from pgdyno.model.imported import Imported
from pgdyno.model.record_json import from_json, to_json
from pgdyno.model.run import (
    Fixture,
    RunInfo,
    Series,
    SnapshotRows,
    TallySeries,
    TrialRecord,
    TrialState,
)
from pgdyno.model.system_errors import told
from pgdyno.model.text import path_typed
from pgdyno.model.wording import small
from pgdyno.plan.schema.files import BadFile, did_you_mean, open_regular, require_regular
from pgdyno.store import telemetry_rows, views
from pgdyno.store.earlier_formats import head_of
from pgdyno.store.named_runs import meant
from pgdyno.store.output_file import publish, require_closed

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")

FORMAT = 7
"""1: TPC-C only, see `earlier_formats`; 2: no round measured again; 3: no looks, no knees; 4: a run
without a workload described an empty one; 5: see there; 6: see `telemetry_rows`."""
_FIXTURE = "fixture"  # start of the key of each in the head
_IMPORTED = "imported"  # likewise, and of the names of their texts
NOT_AS_WRITTEN = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError,
                  AssertionError, CoreError)  # fmt: skip
"""How a reader notices that a record is not what was written: of another type, shape or size."""
SQLITE_FAILS = (sqlite3.Error, UnicodeDecodeError)
"""What it raises: the latter where it tells words of a damaged file, which are no text."""
_SAID_MAX = 200  # bytes of that
_DAMAGED = "Copy it anew from where it was written."
APPLICATION_ID = 0x70676479  # "pgdy"
_ID_AT = 68  # of it in a database's head (SQLite, "Database File Format", section 1.3)

_SCHEMA = """
CREATE TABLE head (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE trial (
  number INTEGER PRIMARY KEY, round INTEGER NOT NULL, stage TEXT NOT NULL, state TEXT NOT NULL,
  record TEXT NOT NULL
) STRICT;
CREATE TABLE log (
  trial INTEGER, name TEXT NOT NULL, content TEXT NOT NULL
) STRICT;
"""


def resume_command(path: Path) -> str:
    """What goes on with a run, as it is typed."""
    return f"pgdyno resume {path_typed(path)}"


def require_new(path: Path) -> None:
    """Refuse a run file that would be written over another, or where its own page goes.

    Raises:
        StoreError: There is something of that name, or it is that of a page.
    """
    if path.suffix == ".html":
        raise StoreError(
            f"run file {path} has the name of a page",
            f"Name it {path.with_suffix('.sqlite')}: its page goes beside it, as {path}.",
        )
    if not os.path.lexists(path):
        return
    hint = "Name another one with --out."
    with suppress(StoreError):
        if is_run_file(path):  # perhaps of a run that Ctrl-C stopped, and typed once more
            rest = f"If its run was stopped, `{resume_command(path)}` measures the rest"
            hint = f"{rest}; else {small(hint)}"
    raise StoreError(f"run file {path} exists", hint)


def is_run_file(path: Path) -> bool:
    """Whether a file says of itself that it is a run file, of any format.

    Raises:
        StoreError: It cannot be read, or is none.
    """
    try:
        with open_regular(path) as raw:
            head = raw.read(_ID_AT + 4)
    except BadFile as error:
        raise StoreError(f"file {path} {error}", meant(path) or did_you_mean(path)) from error
    return int.from_bytes(head[_ID_AT:], "big") == APPLICATION_ID


class RunFile:
    """One execution of a plan. Open it with `create`, `append` or `read`."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._db = connection

    @classmethod
    def create(cls, path: Path, info: RunInfo, trials: Iterable[TrialRecord]) -> Self:
        """A new file that knows its plan and all its trials, before the first action.

        Raises:
            StoreError: The file exists, or cannot be written.
        """
        require_new(path)
        require_closed(path)
        # Whoever looks meanwhile, or a kill, must never meet half a file under its name.
        nascent = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_plan(nascent, info, trials)
            publish(nascent, path)
        except (OSError, ValueError, sqlite3.Error) as error:  # ValueError: NUL in the path
            raise StoreError(f"run file {path} cannot be written: {told(error)}") from error
        finally:
            with suppress(OSError, ValueError):  # what could not be made need not be removed
                nascent.unlink(missing_ok=True)
        return cls.append(path)

    @classmethod
    def append(cls, path: Path) -> Self:
        """An existing file of today's format, to go on with."""
        require_closed(path)
        file = cls(path, _open(path, "rw", oldest=FORMAT))
        with file._transaction() as db:
            for one in views.VIEWS:  # the file may be from before they were
                db.execute(one.sql)
        return file

    @classmethod
    def read(cls, path: Path) -> Self:
        """An existing file, to be read only."""
        return cls(path, _open(path, "ro"))

    def close(self) -> None:
        """Release the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- writing ------------------------------------------------------------------------------

    def put_fixture(self, fixture: Fixture) -> None:
        """Keep what trials share; when the run goes on, the same one replaces it."""
        row = (f"{_FIXTURE} {fixture.ident}", to_json(fixture))
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO head VALUES (?, ?)", row)

    def put_found(self, experiment: str, found: DataclassInstance) -> None:
        """Keep what an experiment without trials learned; more of the same replaces it."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO head VALUES (?, ?)", (experiment, to_json(found)))

    def put_trial(
        self,
        trial: TrialRecord,
        series: Iterable[Series] = (),
        tallies: Iterable[TallySeries] = (),
        snapshots: Iterable[SnapshotRows] = (),
    ) -> None:
        """Replace a trial's record, and all that was sampled in it."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO trial VALUES (?, ?, ?, ?, ?)", _trial_row(trial))
            for table in telemetry_rows.TABLES:
                db.execute(f"DELETE FROM {table} WHERE trial = ?", (trial.number,))  # noqa: S608
            telemetry_rows.put_series(db, trial.number, series)
            telemetry_rows.put_tallies(db, trial.number, tallies)
            telemetry_rows.put_snapshots(db, trial.number, snapshots)

    def begin_again(self, numbers: Iterable[int]) -> None:
        """Have trials of the plan measured once more; what was measured stays in the file."""
        with self._transaction() as db:
            for number in numbers:
                old = self.trial(number)
                if old.state is not TrialState.PLANNED:
                    (last,) = db.execute("SELECT max(number) FROM trial").fetchone()
                    kept = replace(old, number=last + 1, replaced_by=number)
                    db.execute("INSERT INTO trial VALUES (?, ?, ?, ?, ?)", _trial_row(kept))
                    for table in (*telemetry_rows.TABLES, "log"):
                        text = f"UPDATE {table} SET trial = ? WHERE trial = ?"  # noqa: S608
                        db.execute(text, (last + 1, number))
                fresh = TrialRecord(
                    number, old.round, old.stage, old.ident, TrialState.PLANNED,
                    attempt=old.attempt + 1,
                )  # fmt: skip
                db.execute("INSERT OR REPLACE INTO trial VALUES (?, ?, ?, ?, ?)", _trial_row(fresh))

    def put_log(self, name: str, content: str, trial: int | None = None) -> None:
        """Keep a text, e.g. the server's log of a trial. Secrets must not be in it."""
        with self._transaction() as db:
            db.execute("INSERT INTO log VALUES (?, ?, ?)", (trial, name, content))

    def put_imported(self, results: Iterable[Imported]) -> None:
        """Keep results of other tools, after those that are there."""
        with self._transaction() as db:
            (first,) = db.execute(
                "SELECT count(*) FROM head WHERE key LIKE ?", (f"{_IMPORTED} %",)
            ).fetchone()
            _put_imported(db, results, first + 1)

    def put_imported_text(self, sha256: str, parts: Iterable[str]) -> None:
        """Keep the text of a file by its hash, unless it is there; its secrets are gone already."""
        with self._transaction() as db:
            name = f"{_IMPORTED} {sha256}"
            if db.execute("SELECT 1 FROM log WHERE name LIKE ?", (f"{name}%",)).fetchone() is None:
                db.executemany(
                    "INSERT INTO log VALUES (NULL, ?, ?)",
                    ((f"{name} {n}", part) for n, part in enumerate(parts, 1)),
                )

    # -- reading ------------------------------------------------------------------------------

    def imported(self) -> tuple[Imported, ...]:
        """The results of other tools, in the order in which they came."""
        with self._reading("imported results"):
            return tuple(from_json(Imported, text) for text in self._values(f"{_IMPORTED} %"))

    def info(self) -> RunInfo:
        """The head of the file."""
        with self._reading("head"):
            return from_json(RunInfo, head_of(self._version(), self._head("info") or "{}"))

    def fixtures(self) -> tuple[Fixture, ...]:
        """The fixtures, as far as the run came: one, unless builds of stages need their own."""
        with self._reading("fixtures"):
            found = [from_json(Fixture, text) for text in self._values(f"{_FIXTURE}%")]
        # Earlier run files have one, under a name without its ident.
        return tuple({fixture.ident: fixture for fixture in found}.values())

    def found(self, experiment: str, kind: type[T]) -> T | None:
        """What an experiment without trials learned so far; None: nothing, or it is another one."""
        with self._reading(experiment):
            text = self._head(experiment)
            return from_json(kind, text) if text else None

    def trial(self, number: int) -> TrialRecord:
        """The trial of this number.

        Raises:
            StoreError: There is none.
        """
        text = "SELECT record FROM trial WHERE number = ?"
        with self._reading(f"trial {number}"):
            row = self._db.execute(text, (number,)).fetchone()
            found = from_json(TrialRecord, row[0]) if row is not None else None
        if found is None:
            raise StoreError(f"run file {self.path} has no trial {number}, its plan has one")
        return found

    def trials(self) -> list[TrialRecord]:
        """All trials that count, in the order of the plan."""
        return [trial for trial in self._all() if trial.replaced_by is None]

    def replaced(self) -> list[TrialRecord]:
        """Trials of rounds that were measured again, in the order in which those were begun."""
        return [trial for trial in self._all() if trial.replaced_by is not None]

    def finished(self) -> list[TrialRecord]:
        """The trials whose numbers may be used."""
        return [trial for trial in self.trials() if trial.state is TrialState.FINISHED]

    def series(self, trial: int) -> dict[str, Series]:
        """The series of a trial, by name."""
        with self._reading(f"series of trial {trial}"):
            return telemetry_rows.series_of(self._db, self._version(), trial)

    def tallies(self, trial: int) -> dict[str, TallySeries]:
        """The tallies of a trial, by name; none before format 7."""
        with self._reading(f"tallies of trial {trial}"):
            return telemetry_rows.tallies_of(self._db, self._version(), trial)

    def snapshots(self, trial: int) -> list[SnapshotRows]:
        """The snapshots of a trial by name, begin before end; none before format 7."""
        with self._reading(f"snapshots of trial {trial}"):
            return telemetry_rows.snapshots_of(self._db, self._version(), trial)

    def logs(self, trial: int | None = None) -> dict[str, str]:
        """The texts kept for a trial, or for the run as a whole."""
        with self._reading("logs"):
            rows = self._db.execute("SELECT name, content FROM log WHERE trial IS ?", (trial,))
            return dict(rows.fetchall())

    def laid_out(self) -> dict[str, list[tuple[str | float | None, ...]]]:
        """The rows of all views, by name; files of all formats have them here."""
        info, trials, imported = self.info(), self._all(), self.imported()
        with self._reading("records"), closing(sqlite3.connect(":memory:")) as db:
            db.executescript(f"{_SCHEMA} {views.SCHEMA}")
            _put_plan(db, info, trials)
            _put_imported(db, imported, 1)
            return {
                one.name: db.execute(f"SELECT * FROM {one.name}").fetchall()  # noqa: S608
                for one in views.VIEWS
            }

    def _all(self) -> list[TrialRecord]:
        with self._reading("trials"):
            rows = self._db.execute("SELECT record FROM trial ORDER BY number").fetchall()
            return [from_json(TrialRecord, record) for (record,) in rows]

    def _values(self, like: str) -> list[str]:
        # All at once, as everywhere here: a query that stops at a damaged row keeps the file
        # locked until its cursor is collected, also when the connection was closed.
        query = "SELECT value FROM head WHERE key LIKE ? ORDER BY rowid"
        return [text for (text,) in self._db.execute(query, (like,)).fetchall()]

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _head(self, key: str) -> str | None:
        row = self._db.execute("SELECT value FROM head WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """What a damaged file holds is told as such, whichever layer notices it."""
        try:
            yield
        except (*SQLITE_FAILS, zlib.error, *NOT_AS_WRITTEN) as error:
            text = f"{what}: {noticed(error)}"
            raise StoreError(f"run file {self.path} is damaged: {text}", _DAMAGED) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._db:
                yield self._db
        except SQLITE_FAILS as error:
            raise StoreError(
                f"run file {self.path} cannot be written: {noticed(error)}",
                hint="Is the disk full? Finished trials are kept; `pgdyno resume` resumes the run.",
            ) from error


def noticed(error: Exception) -> str:
    """What is wrong, in a line."""
    if isinstance(error, UnicodeDecodeError):
        return error.object[:_SAID_MAX].decode(errors="backslashreplace")
    if isinstance(error, CoreError):
        return str(error.args[1])
    if not isinstance(error, ValidationError):
        return str(error) or type(error).__name__
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"])) or "its JSON"
    return f"{where}: {first['msg'].lower()}"


@contextmanager
def as_written(path: Path) -> Iterator[None]:
    """For what is made of a run file: where its records contradict each other, the file is wrong.

    `PGDYNO_DEBUG` lets the error through, so that a defect of ours can be told from it.

    Raises:
        StoreError: What was read cannot be what a run wrote.
    """
    try:
        yield
    except (NotImplementedError, RecursionError):
        raise
    except NOT_AS_WRITTEN as error:
        if os.environ.get("PGDYNO_DEBUG"):
            raise
        raise StoreError(
            f"run file {path} is damaged, or pgdyno cannot understand it: {noticed(error)}",
            f"{_DAMAGED} If a run wrote it so, report it with what PGDYNO_DEBUG=1 shows.",
        ) from error


def _write_plan(path: Path, info: RunInfo, trials: Iterable[TrialRecord]) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT};"
            f" {_SCHEMA} {telemetry_rows.SCHEMA} {views.SCHEMA}"
        )
        with db:
            _put_plan(db, info, trials)


def _put_plan(db: sqlite3.Connection, info: RunInfo, trials: Iterable[TrialRecord]) -> None:
    db.execute("INSERT INTO head VALUES ('info', ?)", (to_json(info),))
    db.executemany(
        "INSERT INTO trial VALUES (?, ?, ?, ?, ?)", [_trial_row(trial) for trial in trials]
    )


def _put_imported(db: sqlite3.Connection, results: Iterable[Imported], first: int) -> None:
    db.executemany(
        "INSERT INTO head VALUES (?, ?)",
        [(f"{_IMPORTED} {n}", to_json(one)) for n, one in enumerate(results, first)],
    )


def _trial_row(trial: TrialRecord) -> tuple[int, int, str, str, str]:
    return trial.number, trial.round, trial.stage, trial.state.value, to_json(trial)


def _open(path: Path, mode: str, oldest: int = 1) -> sqlite3.Connection:
    try:
        require_regular(path)
    except BadFile as error:
        hint = meant(path) or "Run files lie in `runs`, unless --out named another."
        raise StoreError(f"run file {path} {error}", hint) from error
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True)
    except SQLITE_FAILS as error:
        raise StoreError(f"run file {path} cannot be read: {noticed(error)}") from error
    require_known(path, connection, oldest)
    return connection


def require_known(path: Path, connection: sqlite3.Connection, oldest: int = 1) -> None:
    """A database must be a run file that this pgdyno can read; otherwise it is closed.

    Raises:
        StoreError: It is none, or of another format.
    """
    try:
        found = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        strange = _what_computes(connection)
    except SQLITE_FAILS as error:
        connection.close()
        hint = meant(path) or "Run files lie in `runs`; a plan is run by `pgdyno run`."
        raise StoreError(f"run file {path} cannot be read: {noticed(error)}", hint) from error
    if found == APPLICATION_ID and strange:
        connection.close()
        raise StoreError(f"run file {path} is damaged: it has {strange}", _DAMAGED)
    if found != APPLICATION_ID or not oldest <= version <= FORMAT:
        connection.close()
        raise StoreError(
            f"{path} has application id {found:#x} and format {version},"
            f" expected {APPLICATION_ID:#x} and {oldest} to {FORMAT}",
            hint="Run files are written by `pgdyno run`. Those of an earlier pgdyno can be read and"
            " reported, but not resumed: what was measured since would not be comparable.",
        )


def _what_computes(db: sqlite3.Connection) -> str | None:
    """What would run when rows are read or written: a run file's tables hold what was put there.

    Files are handed on. A view that stands in a table's place need never end.
    """
    db.execute("PRAGMA trusted_schema = OFF")
    names = ", ".join(f"'{name}'" for name in ("head", "trial", "log", *telemetry_rows.TABLES))
    # By what SQLite made of the schema, whatever its rows say of themselves.
    kinds = (
        f"SELECT type, name FROM pragma_table_list WHERE lower(name) IN ({names})"  # noqa: S608
        " AND schema = 'main'"
    )
    for kind, name in db.execute(kinds).fetchall():
        if kind != "table":
            return f"a {kind} in the place of table {name}"
        hidden = f"SELECT name FROM pragma_table_xinfo('{name}') WHERE hidden > 0"  # noqa: S608
        for (column,) in db.execute(hidden).fetchall():
            return f"a column {column} of {name} that is computed"
    triggers = "SELECT name FROM sqlite_schema WHERE type = 'trigger' OR sql LIKE 'CREATE%TRIGGER%'"
    for (name,) in db.execute(triggers).fetchall():
        return f"trigger {name}"
    return None
