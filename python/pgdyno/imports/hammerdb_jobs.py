"""HammerDB's job store, a database of SQLite: `hammer.DB`, of any version that has JOBOUTPUT.

It is read as it lies there, without a lock and without its own code: tables only, no views, no
triggers, with a limit on the work of each query.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from pgdyno.imports.format import Draft, Format
from pgdyno.imports.formats import hammerdb
from pgdyno.imports.reading import sha256_of
from pgdyno.imports.recognise import named
from pgdyno.model.errors import PlanError
from pgdyno.model.imported import Imported, Source
from pgdyno.model.numbers import finite
from pgdyno.model.text import one_line

JOBS_MAX = 1000
_LINES_MAX = 20_000  # of one job
_STEPS = 50_000_000  # of SQLite's machine for one file
_TIMES = ("min", "avg", "max", "total", "p99", "p95", "p75", "p50", "p25")
"""Columns of JOBTIMING: older ones have no `_ms` at their end."""


def read(path: Path, tool: str | None) -> tuple[Imported, ...]:
    """The jobs that have a result.

    Raises:
        PlanError: It is no such store, or holds no result.
    """
    if tool is not None and named(tool)[0].tool != hammerdb.FORMAT.tool:
        raise PlanError(
            f"file {path} is a database of SQLite, not output of {named(tool)[0].tool}",
            "HammerDB's job store is one.",
        )
    sha256, size_bytes = sha256_of(path)
    try:
        with _opened(path) as db:
            tables = _tables(db)
            if not {"JOBMAIN", "JOBOUTPUT"} <= tables.keys():
                raise PlanError(
                    f"file {path} is a database of SQLite without JOBMAIN and JOBOUTPUT",
                    "HammerDB's job store has them; a run file of pgdyno is read by `report`.",
                )
            drafts = [draft for job in _jobs(db) for draft in _of_job(db, job, tables)]
    except (sqlite3.Error, UnicodeError) as error:
        raise PlanError(f"file {path} is a damaged database: {error}") from error
    if not drafts:
        raise PlanError(f"file {path} holds no job with a result of HammerDB")
    form = replace(hammerdb.FORMAT, form="job store")
    return tuple(_imported(draft, form, path, sha256, size_bytes) for draft in drafts)


def _imported(draft: Draft, form: Format, path: Path, sha256: str, size_bytes: int) -> Imported:
    source = Source(one_line(path.name), sha256, size_bytes, draft.line, draft.last_line)
    return draft.finished(form, source)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as db:
        left = [_STEPS // 1000]

        def count() -> int:
            left[0] -= 1
            return left[0] < 0

        db.set_progress_handler(count, 1000)
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA cell_size_check = ON")
        db.text_factory = lambda data: data.decode("utf-8", "backslashreplace")
        yield db


def _tables(db: sqlite3.Connection) -> dict[str, set[str]]:
    names = [
        str(name) for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    ]
    known = [name for name in names if name in ("JOBMAIN", "JOBOUTPUT", "JOBTIMING")]
    return {
        name: {str(row[1]) for row in db.execute(f"PRAGMA table_info({name})")} for name in known
    }


def _jobs(db: sqlite3.Connection) -> list[str]:
    found = db.execute("SELECT jobid FROM JOBMAIN LIMIT ?", (JOBS_MAX,))
    return [str(job) for (job,) in found]


def said(path: Path) -> Iterator[str]:
    """The lines that users of all jobs said, behind the name of each job.

    Raises:
        PlanError: The store is damaged.
    """
    try:
        with _opened(path) as db:
            for job in _jobs(db):
                yield f"job {job}"
                for text in _outputs(db, job):
                    yield from text.splitlines()[:_LINES_MAX]
    except (sqlite3.Error, UnicodeError) as error:
        raise PlanError(f"file {path} is a damaged database: {error}") from error


def _outputs(db: sqlite3.Connection, job: str) -> Iterator[str]:
    found = db.execute("SELECT output FROM JOBOUTPUT WHERE jobid = ? LIMIT ?", (job, _LINES_MAX))
    return (str(text) for (text,) in found)


def _of_job(db: sqlite3.Connection, job: str, tables: dict[str, set[str]]) -> list[Draft]:
    """A job's result: what its users said, then its timings."""
    reader = hammerdb.FORMAT.reader()
    number = 0
    for number, text in enumerate(_outputs(db, job), 1):
        for line in text.splitlines()[:_LINES_MAX]:
            try:
                reader.line(number, line)
            except ValueError:
                continue
    drafts = list(reader.finish())
    for draft in drafts:
        draft.line, draft.last_line = 1, max(number, 1)
        draft.conditions["run"] = job[:80]
    if len(drafts) == 1 and "JOBTIMING" in tables:
        _timings(db, job, tables["JOBTIMING"], drafts[0])
    return drafts


def _timings(db: sqlite3.Connection, job: str, columns: set[str], draft: Draft) -> None:
    """The times of each procedure over all users, as the store has them: milliseconds."""
    if not {"jobid", "procname", "summary"} <= columns:
        return
    there = {name: one for name in _TIMES for one in (f"{name}_ms", name) if one in columns}
    chosen = ", ".join(f'"{one}"' for one in there.values())
    if not chosen:
        return
    where = "WHERE jobid = ? AND summary = 1 LIMIT 100"
    rows = db.execute(f"SELECT procname, {chosen} FROM JOBTIMING {where}", (job,))  # noqa: S608
    for kind, *values in rows:
        for name, value in zip(there, values, strict=True):
            try:
                draft.tell(f"latency {name}", finite(value), "ms", draft.line, str(kind)[:80])
            except ValueError:
                continue
