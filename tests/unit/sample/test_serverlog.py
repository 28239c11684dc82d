"""Checkpoints, autovacuums and errors out of server logs of 12, 15 and 18."""

from __future__ import annotations

import pytest

from pgdyno.model.event_detail import EventDetail
from pgdyno.model.record_json import from_json, to_json
from pgdyno.model.run import Event, Recovery
from pgdyno.sample.server_log import MORE, LogSummary, read_log

LOG_18 = """\
2026-11-21 22:10:00.100 UTC [11] LOG:  database system is ready to accept connections
2026-11-21 22:10:05.000 UTC [12] LOG:  checkpoint starting: immediate force wait
2026-11-21 22:10:05.250 UTC [12] LOG:  checkpoint complete: wrote 942 buffers (5.8%), \
wrote 3 SLRU buffers; 1 WAL file(s) added, 0 removed, 2 recycled; write=0.015 s, sync=0.004 s, \
total=0.250 s; sync files=0, longest=0.000 s, average=0.000 s; distance=15960 kB, \
estimate=15960 kB; lsn=0/2A4FE88, redo lsn=0/2A4FE30
2026-11-21 22:10:30.000 UTC [12] LOG:  checkpoint starting: wal
2026-11-21 22:10:31.000 UTC [40] LOG:  automatic vacuum of table "tpcc.public.new_order": index \
scans: 1
\tpages: 0 removed, 51 remain
\tsystem usage: CPU: user: 0.00 s, system: 0.00 s, elapsed: 0.50 s
2026-11-21 22:10:32.000 UTC [41] ERROR:  deadlock detected
2026-11-21 22:10:32.000 UTC [41] DETAIL:  Process 41 waits for ShareLock
2026-11-21 22:10:33.000 UTC [11] PANIC:  could not write to file: No space left on device
"""


def told(text: str) -> LogSummary:
    return read_log(text.splitlines())


def test_checkpoints_have_begin_end_cause_and_cost() -> None:
    first, second = [event for event in told(LOG_18).events if event.kind == "checkpoint"]

    assert first.end_ns is not None
    assert first.end_ns - first.start_ns == 250_000_000
    assert first.detail.known() == {
        "cause": "immediate force wait",
        "buffers": 942,
        "write_s": 0.015,
        "sync_s": 0.004,
        "total_s": 0.25,
        "longest_s": 0.0,
        "distance_bytes": 15960 << 10,
        "wal_added": 1,
        "wal_removed": 0,
        "wal_recycled": 2,
    }
    assert second.end_ns is None, "it was still going on when the log ended"
    assert second.detail.known() == {"cause": "wal"}


def test_autovacuums_begin_before_they_are_logged() -> None:
    (vacuum,) = [event for event in told(LOG_18).events if event.kind == "autovacuum"]

    assert vacuum.detail.table == "tpcc.public.new_order"
    assert vacuum.end_ns is not None
    assert vacuum.end_ns - vacuum.start_ns == 500_000_000


VACUUMS = {  # as each version words what it took
    12: """index scans: 0
\tpages: 0 removed, 177 remain, 0 skipped due to pins, 0 skipped frozen
\ttuples: 20000 removed, 20000 remain, 41 are dead but not yet removable, oldest xmin: 490
\tbuffer usage: 379 hits, 2 misses, 182 dirtied
\tavg read rate: 0.163 MB/s, avg write rate: 14.811 MB/s
\tsystem usage: CPU: user: 0.01 s, system: 0.02 s, elapsed: 0.09 s""",
    13: """index scans: 0
\ttuples: 20000 removed, 20000 remain, 41 are dead but not yet removable
\tbuffer usage: 379 hits, 2 misses, 182 dirtied
\tavg read rate: 0.163 MB/s, avg write rate: 14.811 MB/s
\tsystem usage: CPU: user: 0.01 s, system: 0.02 s, elapsed: 0.09 s
\tWAL usage: 356 records, 91 full page images, 155276 bytes""",
    14: """index scans: 0
\ttuples: 20000 removed, 20000 remain, 41 are dead but not yet removable
\tI/O timings: read: 0.010 ms, write: 0.000 ms
\tavg read rate: 0.163 MB/s, avg write rate: 14.811 MB/s
\tbuffer usage: 379 hits, 2 misses, 182 dirtied
\tWAL usage: 356 records, 91 full page images, 155276 bytes
\tsystem usage: CPU: user: 0.01 s, system: 0.02 s, elapsed: 0.09 s""",
    18: """index scans: 0
\ttuples: 20000 removed, 20000 remain, 41 are dead but not yet removable
\tpages: 0 removed, 219 remain, 219 scanned (100.00% of total), 0 eagerly scanned
\tavg read rate: 0.000 MB/s, avg write rate: 25.427 MB/s
\tbuffer usage: 379 hits, 2 reads, 182 dirtied
\tWAL usage: 356 records, 91 full page images, 155276 bytes, 0 buffers full
\tsystem usage: CPU: user: 0.01 s, system: 0.02 s, elapsed: 0.09 s""",
}
VACUUMS |= dict.fromkeys((15, 16, 17), VACUUMS[14])


@pytest.mark.parametrize("major", sorted(VACUUMS))
def test_what_a_vacuum_took_is_told_by_every_version(major: int) -> None:
    head = '2026-11-21 22:10:31.000 UTC [40] LOG:  automatic vacuum of table "a.b.t": '
    (vacuum,) = told(head + VACUUMS[major]).events

    of_wal = {"wal_records": 356, "wal_fpi": 91, "wal_bytes": 155_276}
    assert vacuum.detail.known() == {
        "table": "a.b.t", "buffers_hit": 379, "buffers_read": 2, "buffers_dirtied": 182,
        "unremovable_rows": 41, "cpu_s": pytest.approx(0.03), **(of_wal if major >= 13 else {}),
    }  # fmt: skip
    assert vacuum.end_ns is not None
    assert vacuum.end_ns - vacuum.start_ns == 90_000_000


def test_an_analyze_that_tells_its_cpu_time_alone_has_no_zeros() -> None:
    line = (
        '2026-11-21 22:10:31.000 UTC [40] LOG:  automatic analyze of table "a.b.t" system usage:'
        " CPU: user: 0.25 s, system: 0.25 s, elapsed: 0.50 s"
    )  # 12 and 13
    (analyze,) = told(line).events
    assert analyze.detail.known() == {"table": "a.b.t", "cpu_s": 0.5}


STANDBY = """\
2026-11-21 22:10:01.000 UTC [9] LOG:  restartpoint starting: time
2026-11-21 22:10:03.500 UTC [9] LOG:  restartpoint complete: wrote 12 buffers (0.1%), wrote 2 SLRU \
buffers; 0 WAL file(s) added, 0 removed, 1 recycled; write=2.015 s, sync=0.024 s, total=2.500 s; \
sync files=8, longest=0.020 s, average=0.003 s; distance=16384 kB, estimate=16384 kB; \
lsn=0/2A4FE88, redo lsn=0/2A4FE30
2026-11-21 22:10:03.500 UTC [9] LOG:  recovery restart point at 0/2A4FE30
2026-11-21 22:10:05.000 UTC [9] LOG:  restartpoint starting: wal
2026-11-21 22:10:06.000 UTC [9] LOG:  checkpoint complete: wrote 1 buffers (0.0%); \
write=0.015 s, sync=0.024 s, total=0.500 s
2026-11-21 22:10:07.000 UTC [9] LOG:  restartpoint starting: immediate
"""


def test_a_standby_has_restartpoints_which_are_no_checkpoints() -> None:
    first, odd, last = told(STANDBY).events
    assert [first.kind, odd.kind, last.kind] == ["restartpoint", "checkpoint", "restartpoint"]
    assert (first.end_ns or 0) - first.start_ns == 2_500_000_000
    assert first.detail == EventDetail(
        cause="time", buffers=12, write_s=2.015, sync_s=0.024, total_s=2.5, longest_s=0.02,
        distance_bytes=16 << 20, wal_added=0, wal_removed=0, wal_recycled=1,
    )  # fmt: skip
    assert odd.detail.cause == "unknown", "what began was another thing"
    assert (last.end_ns, last.detail.cause) == (None, "immediate")


def test_vacuums_that_freeze_are_autovacuums_too() -> None:
    line = (
        '2026-11-21 22:10:31.000 UTC [40] LOG:  automatic {} of table "tpcc.public.t": index'
        " scans: 1 system usage: CPU: user: 0.25 s, system: 0.25 s, elapsed: 0.50 s"
    )
    several = ("aggressive vacuum", "vacuum to prevent wraparound",
               "aggressive vacuum to prevent wraparound", "analyze")  # fmt: skip
    found = read_log(line.format(words) for words in several).events
    assert [one.kind for one in found] == ["autovacuum"] * 3 + ["autoanalyze"]
    assert {(one.detail.table, one.detail.cpu_s) for one in found} == {("tpcc.public.t", 0.5)}


def test_what_a_statement_says_is_no_event() -> None:
    at = "2026-11-21 22:10:32.000 UTC [41]"
    said = ("checkpoint starting: wal", "checkpoint complete: wrote 9 buffers",
            "redo starts at 0/1", 'automatic vacuum of table "a.b.c": elapsed: 9.0 s')  # fmt: skip
    lines = [f"{at} STATEMENT:  {text}" for text in said]
    lines += [f"{at} LOG:  execute s1: SELECT '{text}'" for text in said]
    assert told("\n".join(lines)) == LogSummary((), None, {})


def test_events_of_earlier_run_files_are_read_as_they_were_written() -> None:
    # They held what was said and nothing else, in a mapping.
    text = (
        '{"kind": "checkpoint", "start_ns": 1, "end_ns": 2,'
        ' "detail": {"cause": "wal", "buffers": 9, "total_s": 0.25}}'
    )

    found = from_json(Event, text)
    assert found.detail == EventDetail(cause="wal", buffers=9, total_s=0.25)
    assert from_json(Event, to_json(found)) == found
    bare = from_json(Event, '{"kind": "autovacuum", "start_ns": 1, "end_ns": null, "detail": {}}')
    assert bare.detail.known() == {}


def test_events_are_in_order_of_their_start() -> None:
    starts = [event.start_ns for event in told(LOG_18).events]

    assert starts == sorted(starts)
    assert len(starts) == 5


def test_errors_are_told_with_their_level() -> None:
    assert told(LOG_18).bad == {
        "ERROR: deadlock detected": 1,
        "PANIC: could not write to file: No space left on device": 1,
    }


def test_an_empty_log_has_nothing() -> None:
    assert told("") == LogSummary((), None, {})


def test_messages_are_counted_within_a_bound() -> None:
    line = "2026-11-21 22:10:32.000 UTC [41] ERROR:  {}"
    words = [*(f"number {n}" for n in range(5000)), *["number 7"] * 5]

    bad = read_log(line.format(word) for word in words).bad

    assert sum(bad.values()) == 5005
    assert bad["ERROR: number 7"] == 6
    assert len(bad) == 1001
    assert bad[MORE] == 4000


CRASH = """\
2026-11-21 22:11:00.000 UTC [11] LOG:  received immediate shutdown request
2026-11-21 22:11:00.500 UTC [50] LOG:  starting PostgreSQL 18.6 on x86_64-pc-linux-gnu
2026-11-21 22:11:00.600 UTC [51] LOG:  database system was interrupted; last known up at \
2026-11-21 22:10:30 UTC
2026-11-21 22:11:00.700 UTC [51] LOG:  redo starts at 0/FF000000
2026-11-21 22:11:02.950 UTC [51] LOG:  redo done at 1/1000010 system usage: CPU: user: 1.00 s
2026-11-21 22:11:03.250 UTC [50] LOG:  database system is ready to accept connections
"""


def test_recovery_is_timed_by_the_log_of_the_last_start() -> None:
    first = LOG_18.replace("database system is ready", "starting PostgreSQL 18.6", 1)

    assert told(first + CRASH).recovery == Recovery(2.75, 2.25, 0x2000010)
    assert told(CRASH + CRASH.partition("redo starts")[0]).recovery is None, "it never came back"


def test_a_recovery_is_an_event_from_its_redo_until_sessions_may_come() -> None:
    (event,) = told(CRASH).events
    assert (event.kind, event.detail.known()) == ("recovery", {"replayed_bytes": 0x2000010})
    assert event.end_ns is not None
    assert event.end_ns - event.start_ns == 2_550_000_000
    again = told(CRASH + "2026-11-21 22:12:00.000 UTC [50] LOG:  database system is ready to accept"
                 " connections\n")  # fmt: skip
    assert again.events == (event,), "a restart in order has no redo"
    assert told(CRASH.partition("2026-11-21 22:11:03.250")[0]).events == (), "it never came back"


def test_a_start_without_replay_took_no_time_for_it() -> None:
    lines = [line for line in CRASH.splitlines(keepends=True) if "redo" not in line]

    assert told("".join(lines)).recovery == Recovery(2.75, 0.0, 0)


WAITS = """\
2026-11-21 22:10:02.000 UTC [40] LOG:  process 40 still waiting for ShareLock on transaction 712 \
after 1000.100 ms
2026-11-21 22:10:02.000 UTC [40] DETAIL:  Process holding the lock: 39. Wait queue: 40.
2026-11-21 22:10:04.500 UTC [40] LOG:  process 40 acquired ShareLock on transaction 712 after \
3500.250 ms
2026-11-21 22:10:05.000 UTC [41] LOG:  process 41 still waiting for AccessShareLock on relation \
16390 of database 5 after 1000.000 ms
2026-11-21 22:10:06.000 UTC [41] ERROR:  canceling statement due to user request
2026-11-21 22:10:07.000 UTC [42] LOG:  temporary file: path "base/pgsql_tmp/pgsql_tmp42.0", size \
14000000
"""


def test_waits_for_locks_last_from_their_begin_until_they_are_seen_to_end() -> None:
    first, second = [one for one in told(WAITS).events if one.kind == "lock_wait"]
    assert first.detail.known() == {"lock": "ShareLock on transaction 712"}
    assert first.end_ns is not None
    assert first.end_ns - first.start_ns == 3_500_250_000
    assert second.detail.lock == "AccessShareLock on relation 16390 of database 5"
    assert second.end_ns is not None
    assert second.end_ns - second.start_ns == 1_000_000_000, "nobody told when it ended"


def test_temporary_files_and_errors_stand_where_they_happened() -> None:
    events = {one.kind: one for one in told(WAITS).events}
    file, error = events["temporary_file"], events["error"]
    assert (file.detail.file_bytes, file.start_ns) == (14_000_000, file.end_ns)
    assert error.detail.text == "ERROR: canceling statement due to user request"
    assert file.start_ns - error.start_ns == 1_000_000_000


def test_errors_without_end_are_counted_but_not_all_shown() -> None:
    line = "2026-11-21 22:10:06.000 UTC [41] ERROR:  no\n"
    found = told(line * 1500)
    assert found.bad == {"ERROR: no": 1500}
    assert len(found.events) == 1000


def test_a_message_of_a_process_that_is_no_wait_is_none() -> None:
    for text in ("process 1 acquired the taste", "process x still waiting for y after 1 ms"):
        assert told(f"2026-11-21 22:10:06.000 UTC [4] LOG:  {text}\n").events == ()
