"""What is asked of the server in each version, and what becomes of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pgdyno.sample.sampler import Missing, Subject
from pgdyno.sample.samplers import (
    server_events,
    server_io,
    server_plans,
    server_progress,
    server_replication,
    server_restartpoints,
    server_statements,
    server_statistics,
    server_tables,
    server_transactions,
)
from pgdyno.sample.statement_names import Known

MAJORS = range(12, 19)


@pytest.mark.parametrize("major", MAJORS)
def test_every_version_has_wal_and_checkpoints_once(major: int) -> None:
    _, columns = server_statistics.query(server_statistics.sources(major))
    names = [column.name for column in columns]

    assert len(names) == len(set(names))
    assert {"wal.bytes", "checkpoints.timed", "checkpoints.sync_s", "database.commits"} <= set(
        names
    )
    assert ("wal.fpi" in names) == ("database.sessions_killed" in names) == (major >= 14)
    assert ("wal.sync_s" in names) == (14 <= major <= 17)


@pytest.mark.parametrize("major", MAJORS)
def test_restartpoints_are_counted_as_each_version_calls_them(major: int) -> None:
    text, columns = server_restartpoints.query(major)
    names = [column.name.removeprefix("restartpoints.") for column in columns]

    assert text.count("::float8") == len(names)
    assert ("done" in names) == (major >= 17) == ("restartpoints_done" in text)
    assert ("FROM pg_stat_bgwriter" in text) == (major <= 16) == ("checkpoints_timed" in text)
    assert {"timed", "requested", "buffers", "write_s", "sync_s"} <= set(names)
    assert server_restartpoints.sampler(Subject()) is None


def test_what_is_not_counted_or_not_shown_is_left_out() -> None:
    told = server_statistics.sources(15, frozenset(), reads_all=False)
    names = {column.name for column in server_statistics.query(told)[1]}

    assert not names & {
        "database.read_s", "wal.sync_s", "replication.behind_bytes", "database.deadlocks",
        "database.blocks_hit", "database.active_s",
    }  # fmt: skip
    assert {"database.commits", "database.session_s"} <= names, "these are counted whatever is set"
    assert "wal.syncs" in names


@pytest.mark.parametrize(
    ("major", "settings", "lacking"),
    [
        (12, {"track_io_timing"}, {
            "checksum failures": "data_checksums is off",
            "blocks, rows, temporary files and deadlocks": "track_counts is off",
            "times of WAL I/O": "PostgreSQL 12 does not tell it, 14 and later do",
            "WAL records, full-page images and syncs":
                "PostgreSQL 12 does not tell it, 14 and later do",
        }),
        (17, {"data_checksums", "track_counts"}, {
            "times of sessions by their state": "track_activities is off",
            "times of data I/O": "track_io_timing is off",
            "times of WAL I/O": "track_wal_io_timing is off",
            "parallel workers that were wanted and launched":
                "PostgreSQL 17 does not tell it, 18 and later do",
        }),
    ],
)  # fmt: skip
def test_what_is_left_out_is_said_with_its_reason(
    major: int, settings: set[str], lacking: dict[str, str]
) -> None:
    told = {one.name: one.reason for one in server_statistics.missing(major, settings)}
    assert told.items() >= lacking.items()


def test_a_server_that_counts_everything_lacks_nothing() -> None:
    on = {"track_io_timing", "data_checksums", "track_counts", "track_activities"}
    assert server_statistics.missing(18, on) == []


IO_ROW = {
    "backend_type": "client backend", "object": "relation", "context": "normal", "reads": 3,
    "writes": 0, "extends": 2, "writebacks": 7, "fsyncs": None, "evictions": 1,
    "read_time": 1500.0, "write_time": 0.0, "writeback_time": 250.0,
    "extend_time": 2.0, "fsync_time": None, "read_bytes": 24576, "write_bytes": 0,
    "extend_bytes": 16384,
}  # fmt: skip
PREFIX = "pg_stat_io.client_backend.relation.normal"


def test_io_has_a_series_for_what_a_process_can_do() -> None:
    row = server_io.row_of([IO_ROW], {False: True, True: False})
    assert row[f"{PREFIX}.reads"] == 3
    assert row[f"{PREFIX}.read_s"] == pytest.approx(1.5)
    assert row[f"{PREFIX}.read_bytes"] == 24576
    assert (row[f"{PREFIX}.writebacks"], row[f"{PREFIX}.writeback_s"]) == (7, 0.25)
    assert f"{PREFIX}.fsyncs" not in row
    assert f"{PREFIX}.fsync_s" not in row


def test_times_that_are_not_taken_are_no_series() -> None:
    row = server_io.row_of([IO_ROW], {False: False, True: True})
    assert not [name for name in row if name.endswith("_s")]
    wal = {**IO_ROW, "object": "wal"}
    assert server_io.row_of([wal], {False: False, True: True})[
        "pg_stat_io.client_backend.wal.normal.read_s"
    ] == pytest.approx(1.5)


def test_a_snapshot_has_no_time_where_none_is_taken() -> None:
    taken = server_io.times_of(IO_ROW, {False: True, True: False})
    assert taken == {"read_s": 1.5, "write_s": 0.0, "writeback_s": 0.25, "extend_s": 0.002,
                     "fsync_s": None}  # fmt: skip
    untimed = server_io.times_of({**IO_ROW, "object": "wal"}, {False: True, True: False})
    assert set(untimed.values()) == {None}


def test_processes_that_a_load_does_not_keep_busy_have_no_series() -> None:
    assert server_io.row_of([{**IO_ROW, "backend_type": "slotsync worker"}], {}) == {}


def test_bytes_are_operations_times_pages_before_18() -> None:
    assert "(reads * op_bytes)::float8 AS read_bytes" in server_io.query(17)
    assert "op_bytes" not in server_io.query(18)


@pytest.mark.parametrize("major", MAJORS)
def test_progress_is_asked_of_the_views_that_there_are(major: int) -> None:
    text = server_progress.query(major)
    assert ("pg_stat_progress_analyze" in text) == (major >= 13)
    assert ("pg_stat_progress_copy" in text) == (major >= 14)
    assert set(server_progress.row_of([], major)) == {
        f"progress.{name}.{what}"
        for name in server_progress.commands(major)
        for what in ("running", "done", "total")
    }


MOVED = "updates that put a row on another page"
TIMES = {"time of vacuums by table": 18, "time of ANALYZE by table": 18}


@pytest.mark.parametrize(
    ("major", "lacking"),
    [
        (12, {"progress of ANALYZE": 13, "progress of base backups": 13, "progress of COPY": 14,
              "rows inserted since a vacuum": 13, MOVED: 16, **TIMES}),
        (13, {"progress of COPY": 14, MOVED: 16, **TIMES}),
        (15, {MOVED: 16, **TIMES}),
        (17, TIMES),
        (18, {}),
    ],
)  # fmt: skip
def test_what_later_versions_tell_of_commands_and_tables_is_said(
    major: int, lacking: dict[str, int]
) -> None:
    told = [*server_progress.missing(major), *server_tables.missing(major)]
    assert {one.name: one.reason for one in told} == {
        name: f"PostgreSQL {major} does not tell it, {first} and later do"
        for name, first in lacking.items()
    }


def test_an_extension_of_before_the_upgrade_is_to_be_updated() -> None:
    wal, planning, all_of_them, single = server_statements.missing(
        frozenset({"calls", "total_time"}), 12
    )
    assert [one.reason[-15:-9] for one in (all_of_them, single)] == [
        f"{first} and" for first in (14, 17)
    ]
    assert (wal.reason, planning.remedy) == ("PostgreSQL 12 does not tell it, 13 and later do", "")
    now = frozenset({"total_plan_time", "toplevel", "stats_since"})
    (old,) = server_statements.missing(now, 18)
    assert (old.name, old.remedy) == (
        "WAL of statements", "ALTER EXTENSION pg_stat_statements UPDATE;"
    )  # fmt: skip
    assert server_statements.missing(now | {"wal_bytes"}, 18) == []


ALL_WRITTEN = {
    "log_checkpoints": "on", "log_autovacuum_min_duration": "0", "log_lock_waits": "on",
    "log_temp_files": "0",
}  # fmt: skip


class Told:
    """A session that answers with one row, or with what is set."""

    def __init__(self, *row: object, settings: Mapping[str, str] = ALL_WRITTEN) -> None:
        self._row, self._settings = row, settings

    def execute(self, *_: object) -> Any:
        return self

    def fetchone(self) -> tuple[object, ...]:
        return self._row

    def fetchall(self) -> list[tuple[str, str]]:
        return list(self._settings.items())


READABLE = ("bench", [], True, True, True, "en_US.utf8", "UTC")
GRANT = (
    "GRANT EXECUTE ON FUNCTION pg_read_binary_file(text, bigint, bigint, boolean) TO bench;"
    " -- in template1; then drop the fixture's database, pgdyno_fixture_…, which the next run"
    " loads anew"
)


@pytest.mark.parametrize(
    ("place", "value", "reason", "remedy"),
    [
        (2, False, "the role bench may not read it by SQL", "GRANT pg_monitor TO bench;"),
        (1, ["pg_read_binary_file(text, bigint, bigint, boolean)"],
         "the role bench may not read it by SQL", GRANT),
        (3, False, "writes no file of its log", "Set logging_collector = on"),
        (4, False, "log_line_prefix does not begin", "Set log_line_prefix = '%m [%p] '"),
        (5, "de_DE.UTF-8", "lc_messages is de_DE.UTF-8", "Set lc_messages = 'C'."),
        (6, "Nowhere/Land", "Nowhere/Land", "Set log_timezone = 'UTC'."),
    ],
)  # fmt: skip
def test_a_log_that_nobody_reads_is_missing_with_what_would_show_it(
    place: int, value: object, reason: str, remedy: str
) -> None:
    row = [*READABLE]
    row[place] = value
    there: Any = Told(*row)
    missing = server_events.sampler(Subject(session=there))
    assert isinstance(missing, Missing)
    assert reason in missing.reason
    assert missing.remedy.startswith(remedy)


def test_a_log_without_a_file_is_said_before_rights_that_would_show_nothing() -> None:
    lacking = ["pg_read_binary_file(text, bigint, bigint, boolean)"]
    there: Any = Told("bench", lacking, False, False, *READABLE[4:])

    missing = server_events.sampler(Subject(session=there))

    assert isinstance(missing, Missing)
    assert "writes no file of its log" in missing.reason
    first, _, then = missing.remedy.partition(" Then: ")
    assert first.startswith("Set logging_collector = on")
    assert then == f"GRANT pg_monitor TO bench; {GRANT}"


def test_a_log_that_is_ours_is_not_asked_for() -> None:
    there: Any = Told(*READABLE)
    assert server_events.sampler(Subject()) is None
    assert server_events.sampler(Subject(session=there, log=Path("data.log"))) == []
    assert server_events.sampler(Subject(session=there, ours=True)) == []


@pytest.mark.parametrize(
    ("name", "value", "what", "reason", "remedy"),
    [
        ("log_checkpoints", "off", "checkpoints", "log_checkpoints is off", "on"),
        ("log_lock_waits", "off", "waits for locks", "log_lock_waits is off", "on"),
        ("log_temp_files", "-1", "temporary files", "log_temp_files is -1", "0"),
        ("log_autovacuum_min_duration", "10min", "autovacuums",
         "log_autovacuum_min_duration is 10min, and less is not written", "0"),
    ],
)  # fmt: skip
def test_events_that_a_server_does_not_write_are_missing_and_not_none(
    name: str, value: str, what: str, reason: str, remedy: str
) -> None:
    there: Any = Told(*READABLE, settings={**ALL_WRITTEN, name: value})
    lacking = Missing(f"{what} in the log", reason, f"Set {name} = {remedy}.")
    assert server_events.sampler(Subject(session=there, ours=True)) == [lacking]


def test_commands_of_one_kind_are_added_up() -> None:
    going = [
        ("vacuum", "stock", "scanning heap", 10.0, 100.0),
        ("vacuum", "orders", "vacuuming indexes", 50.0, 50.0),
        ("copy", None, "COPY FROM", 4096.0, 4096.0),
    ]
    row = server_progress.row_of(going, 18)
    assert row["progress.vacuum.running"] == 2
    assert (row["progress.vacuum.done"], row["progress.vacuum.total"]) == (60, 150)
    assert row["progress.create_index.running"] == 0
    hidden = ("vacuum", None, None, 0.0, 0.0)
    told = server_progress.row_of([*going, hidden], 18)
    assert told["progress.vacuum.running"] == 3, "the server tells everybody that it runs"
    assert told == {**{name: value for name, value in row.items()
                       if name not in ("progress.vacuum.done", "progress.vacuum.total")},
                    "progress.vacuum.running": 3}  # fmt: skip
    assert server_progress.keys_of(going)[2] == ("copy", "", "COPY FROM")


@pytest.mark.parametrize(
    ("has", "expected", "absent"),
    [
        ({"calls", "total_time", "rows", "blk_read_time"}, "total_time", "wal_bytes"),
        ({"calls", "total_exec_time", "total_plan_time", "wal_bytes", "blk_read_time"},
         "total_plan_time", "shared_blk_read_time"),
        ({"calls", "total_exec_time", "shared_blk_read_time", "wal_bytes"},
         "shared_blk_read_time", "plan_s"),
    ],
    ids=["1.7", "1.8", "1.11"],
)  # fmt: skip
def test_statements_have_the_columns_of_their_extension(
    has: set[str], expected: str, absent: str
) -> None:
    text, columns = server_statements.query("public", frozenset(has))
    assert expected in text
    assert absent not in text
    assert {"calls", "exec_s"} <= {column.name for column in columns}


def test_statements_of_the_workload_get_their_names() -> None:
    ours = {"SELECT a FROM t WHERE b = $1 - 20": Known("x_look", "look")}
    rows = [
        {"query": "SELECT a FROM t WHERE b = $1 - $2", "calls": 5.0},
        {"query": "SELECT 1", "calls": 1.0},
    ]
    first, second = server_statements.named(rows, ours)
    assert (first["statement"], first["kind"], first["calls"]) == ("x_look", "look", 5.0)
    assert (second["statement"], second["kind"]) == ("", "")


def test_a_long_statement_is_known_by_its_whole_text_and_kept_in_part() -> None:
    text = f"SELECT {', '.join(f'column_{number}_x' for number in range(200))} FROM t WHERE a = $1"
    (row,) = server_statements.named([{"query": text}], {text: Known("wide", "look")})
    assert (row["statement"], row["query"]) == ("wide", text[:1000])


@pytest.mark.parametrize("major", MAJORS)
def test_tables_have_what_their_version_counts(major: int) -> None:
    names = [column.name for column in server_tables.tables_query(major)[1]]
    assert len(names) == len(set(names))
    assert ("inserted_since_vacuum" in names) == (major >= 13)
    assert ("moved_updated" in names) == (major >= 16)
    assert ("vacuum_s" in names) == ("analyze_s" in names) == (major >= 18)


PLAN = {
    "Node Type": "ModifyTable", "Operation": "Update", "Relation Name": "stock",
    "Startup Cost": 0.4, "Total Cost": 8.4, "Plan Rows": 0, "Plan Width": 0,
    "Plans": [{
        "Node Type": "Index Scan", "Scan Direction": "Forward", "Index Name": "stock_pkey",
        "Relation Name": "stock", "Startup Cost": 0.4, "Total Cost": 8.4, "Plan Rows": 1,
        "Plan Width": 80, "Index Cond": "(s_i_id = $2)",
    }],
}  # fmt: skip


def test_a_plan_has_a_shape_that_statistics_alone_do_not_change() -> None:
    assert server_plans.shape(PLAN) == "ModifyTable Update stock (Index Scan stock stock_pkey)"
    kept = server_plans.without_estimates(PLAN)
    assert kept["Plans"][0]["Index Cond"] == "(s_i_id = $2)"
    assert not {"Total Cost", "Plan Rows"} & {*kept, *kept["Plans"][0]}


def test_only_what_has_a_plan_is_planned() -> None:
    known = Known("", "")
    texts = ["BEGIN", "COMMIT", "CALL f($1)", " select 1", "WITH x AS (SELECT 1) SELECT 1",
             "DELETE FROM t", "SELECTED"]  # fmt: skip
    assert list(server_plans.planned(dict.fromkeys(texts, known))) == texts[3:6]


def test_what_is_not_shown_to_a_role_has_no_columns() -> None:
    alone = {column.name for column in server_replication.query(reads_all=False)[1]}
    assert "slots.retained_bytes" in alone
    assert not [name for name in alone if name.startswith("replication.")]
    text, columns = server_transactions.query(reads_all=False)
    assert "activity" not in text
    assert "transactions.oldest_s" not in {column.name for column in columns}
    _, untimed = server_transactions.query(reads_all=True, timed=False)
    assert {one.name for one in untimed} - {one.name for one in columns} == {
        "transactions.oldest_xmin_age"
    }


@pytest.mark.parametrize("major", MAJORS)
def test_slots_say_what_became_of_their_wal_since_13(major: int) -> None:
    assert ("NULL::text" in server_replication.slots_query(major)) == (major < 13)


@pytest.mark.parametrize(
    ("ours", "schema", "creates"),
    [(False, None, True), (False, "public", False), (True, None, False)],
)
def test_what_is_not_loaded_says_at_once_that_it_has_to_be_created_too(
    ours: bool, schema: str | None, creates: bool
) -> None:
    class Session:
        def execute(self, query: object, _names: tuple[str, ...] = ()) -> Session:
            self.row = None if b"pg_settings" in bytes(str(query), "utf-8") else (schema,)
            return self

        def fetchone(self) -> tuple[str | None] | None:
            return self.row if self.row and self.row[0] else None

    session: Any = Session()
    found = server_statements.sampler(Subject(session=session, ours=ours))
    assert isinstance(found, Missing)
    assert found.remedy.startswith("Set shared_preload_libraries = 'pg_stat_statements'")
    assert ("CREATE EXTENSION pg_stat_statements; -- in template1" in found.remedy) == creates
