"""What SQL finds in a run file: views on its records, with their columns documented.

A trial is one JSON text, which is how it comes back as it was written. The views lay it out for
SQLite, DuckDB and polars; `run` comes first in each, so that rows of many files can stand together.
They hold no data: a file without them, of an earlier pgdyno, is whole, and gets them where it is
resumed. Samples are packed columns, which no SQL reads: `pgdyno export RUN` unpacks them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

_IDENT = "(SELECT json_extract(value, '$.ident') FROM head WHERE key = 'info')"
_USED = "trial.state = 'finished' AND json_extract(record, '$.replaced_by') IS NULL"
_SUCCEEDED = (
    "(SELECT sum(json_extract(value, '$.window.succeeded'))"
    " FROM json_each(record, '$.result.kinds'))"
)
_TIMES = (
    *((f"p{digits}", f"quantile 0.{digits}") for digits in (50, 90, 95, 99, 999)),
    ("max", "largest"),
    ("mean", "mean"),
)

Type = Literal["integer", "real", "text"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table of run files."""

    name: str
    type: Type
    meaning: str
    source: str = ""  # SQL; empty: no view has it


@dataclass(frozen=True, slots=True)
class View:
    """Rows that a run file holds as records."""

    name: str
    meaning: str  # a sentence: what a row is
    rows: str  # SQL after FROM
    columns: tuple[Column, ...]

    @property
    def sql(self) -> str:
        """Makes the view, unless it is there."""
        columns = ", ".join(f'{one.source} AS "{one.name}"' for one in self.columns)
        rows = f"SELECT {columns} FROM {self.rows}"  # noqa: S608  all of it stands below
        return f"CREATE VIEW IF NOT EXISTS {self.name} AS {rows};"


def _at(path: str, of: str = "record") -> str:
    return f"json_extract({of}, '$.{path}')"


RUN = Column("run", "text", "ident of the run", _IDENT)
TRIAL = (
    RUN,
    Column("trial", "integer", "number of the trial in the run", "trial.number"),
    Column("round", "integer", "round that it stood in", "trial.round"),
    Column("stage", "text", "stage that was measured", "trial.stage"),
)
_COUNTS = (
    ("due", "requests that became due in the window"),
    ("succeeded", "of these, committed within it"),
    ("rolled_back", "rolled back as the workload wants it"),
    ("failed", "failed"),
    ("skipped", "never begun, since the schedule was too far behind"),
    ("unfinished", "not answered when the window ended"),
    ("drained", "of these, answered in the drain"),
    ("unanswered", "of these, never answered"),
    ("retries_40001", "attempts more after serialization failures"),
    ("retries_40p01", "attempts more after deadlocks"),
)


def _times(path: str, of: str, meaning: str) -> tuple[Column, ...]:
    return tuple(
        Column(f"{name}_ns", "integer", f"{shown} of {meaning}", _at(f"{path}.{name}", of))
        for name, shown in _TIMES
    )


def _record(name: str, type: Type, path: str, meaning: str) -> Column:
    return Column(name, type, meaning, _at(path))


_HEAD: tuple[tuple[str, Type, str, str], ...] = (
    ("experiment", "text", "experiment", "what was done: plan, knee, storage, ..."),
    ("plan", "text", "plan.name", "name of the plan"),
    ("started_unix_ns", "integer", "started_ns", "when it began"),
    ("pgdyno", "text", "pgdyno", "version, and commit where known"),
    ("command", "text", "command", "how to repeat it"),
    ("server_version", "text", "build.version", "PostgreSQL of the target"),
    ("cpu_model", "text", "host.cpu_model", "processor of the client's machine"),
    ("cpus", "integer", "host.cpus", "processors of it"),
    ("memory_bytes", "integer", "host.memory_bytes", "memory of it"),
    ("kernel", "text", "host.kernel", "kernel of it"),
    ("operating_system", "text", "host.operating_system", "its distribution"),
    ("file_system", "text", "host.file_system.type", "that clusters are put on"),
)
_KIND = "trial, json_each(record, '$.result.kinds') AS kind"

VIEWS = (
    View(
        "runs", "The run, its machine and its server.", "head WHERE key = 'info'",
        (RUN, *(Column(name, type, meaning, _at(path, "value"))
                for name, type, path, meaning in _HEAD)),
    ),
    View(
        "trials", "A trial, of whatever state; one that was measured again stays, with a number.",
        "trial",
        (
            *TRIAL,
            Column("state", "text", "planned, running, finished, invalid, degraded, failed",
                   "trial.state"),
            _record("reason", "text", "reason", "why it has no numbers that may be used"),
            _record("attempt", "integer", "attempt", "which measurement of its round"),
            _record("replaced_by", "integer", "replaced_by", "trial that took its place"),
            _record("started_unix_ns", "integer", "started_ns", "when it began"),
            _record("window_unix_ns", "integer", "result.window_ns[0]", "when its window began"),
            _record("window_s", "real", "result.window_s", "length of the window"),
            _record("nopm", "real", "result.nopm", "TPC-C: New-Orders committed a minute"),
            Column(
                "tps", "real", "transactions committed a second",
                f"{_SUCCEEDED} / {_at('result.window_s')}",
            ),
            _record("tpm_total", "real", "result.tpm_total", "transactions ended a minute"),
            Column(
                "client_cpu_s", "real", "CPU time of the driver in the window",
                f"{_at('result.client.user_s')} + {_at('result.client.system_s')}",
            ),
            _record("server", "text", "result.server", "what the server calls itself"),
            _record("engine", "text", "result.engine", "who drove: pgdyno, or pgbench"),
        ),
    ),
    View(
        "kinds", "A kind of transaction in a finished trial: outcomes, response times.",
        f"{_KIND} WHERE {_USED}",
        (
            *TRIAL,
            Column("kind", "text", "kind of transaction", _at("kind", "kind.value")),
            *(Column(name, "integer", meaning, _at(f"window.{name}", "kind.value"))
              for name, meaning in _COUNTS),
            *_times("response_ns", "kind.value", "times from due to answered"),
            Column("exact_below_ns", "integer", "from here on times are lower bounds",
                   _at("response_ns.exact_below", "kind.value")),
        ),
    ),
    View(
        "statements", "A statement of a kind of transaction in a finished trial.",
        f"{_KIND}, json_each(kind.value, '$.statements') AS statement WHERE {_USED}",
        (
            *TRIAL,
            Column("kind", "text", "kind of transaction", _at("kind", "kind.value")),
            Column("statement", "text", "its name", _at("name", "statement.value")),
            Column("count", "integer", "round trips", _at("count", "statement.value")),
            *_times("ns", "statement.value", "its round trips"),
        ),
    ),
    View(
        "counters", "What a counter of driver, server or host rose by in a finished window.",
        f"trial, json_each(record, '$.result.deltas') AS delta WHERE {_USED}",
        (
            *TRIAL,
            Column("name", "text", "counter; its unit is the end of its name", "delta.key"),
            Column("value", "real", "by how much it rose", "delta.value"),
        ),
    ),
    View(
        "settings", "A setting of a finished trial's server, as that server had it.",
        f"trial, json_each(record, '$.result.settings') AS setting WHERE {_USED}",
        (
            *TRIAL,
            *(Column(name, "text", meaning, _at(name, "setting.value"))
              for name, meaning in (("name", "setting"), ("value", "its value"),
                                    ("origin", "where that comes from"),
                                    ("detail", "more of where"))),
        ),
    ),
    View(
        "events", "Something that took time in a finished trial: a checkpoint, an autovacuum.",
        f"trial, json_each(record, '$.result.events') AS event WHERE {_USED}",
        (
            *TRIAL,
            Column("kind", "text", "what it was", _at("kind", "event.value")),
            Column("start_unix_ns", "integer", "when it began", _at("start_ns", "event.value")),
            Column("end_unix_ns", "integer", "when it ended", _at("end_ns", "event.value")),
            Column("detail", "text", "what the server's log says of it, JSON",
                   _at("detail", "event.value")),
        ),
    ),
    View(
        "errors", "Requests of a finished trial that failed alike.",
        f"trial, json_each(record, '$.result.errors') AS error WHERE {_USED}",
        (
            *TRIAL,
            Column("sqlstate", "text", "SQLSTATE, or what else", _at("sqlstate", "error.value")),
            Column("count", "integer", "how many", _at("count", "error.value")),
            Column("example", "text", "what one of them said", _at("example", "error.value")),
        ),
    ),
    View(
        "imported",
        "A figure of another tool, told by it or counted of it; one imported again stands again.",
        "head AS one, json_each(json_array(json_extract(one.value, '$.told'),"
        " json_extract(one.value, '$.comparable'))) AS part, json_each(part.value) AS figure"
        " WHERE one.key LIKE 'imported %'",
        (
            RUN,
            Column("result", "integer", "number of the result, as they were imported",
                   "CAST(substr(one.key, 10) AS INTEGER)"),
            *(Column(name, "text", meaning, _at(name, "one.value"))
              for name, meaning in (("tool", "who told it"), ("version", "its version, if told"),
                                    ("form", "which of its outputs"))),
            Column("file", "text", "name of the file", _at("source.file", "one.value")),
            Column("sha256", "text", "of the file", _at("source.sha256", "one.value")),
            Column("line", "integer", "where it was told", _at("line", "figure.value")),
            Column("metric", "text", "its name: the tool's own, or one that tools share",
                   _at("metric", "figure.value")),
            Column("value", "real", "the figure", _at("value", "figure.value")),
            Column("unit", "text", "of what was told", _at("unit", "figure.value")),
            Column("of", "text", "kind of transaction, statement, ...", _at("of", "figure.value")),
            Column("told", "integer", "1: as it was told; 0: in a meaning that tools share",
                   "1 - part.key"),
        ),
    ),
)  # fmt: skip
SCHEMA = " ".join(one.sql for one in VIEWS)
