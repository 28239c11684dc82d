"""The worker's result as records; outcomes that must add up, and processes that misbehave."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from pgdyno.drive import driver
from pgdyno.model.errors import DriveError
from pgdyno.model.progress import DriveProgress
from pgdyno.shell import Process, run, start
from tests.waiting import DEADLINE_S

COUNTS = {"due": 10, "succeeded": 7, "rolled_back": 1, "failed": 1, "unknown": 1, "skipped": 0,
          "unfinished": 1, "drained": 1,
          "unanswered": 0, "stuck": 0, "retries_40001": 2, "retries_40p01": 0}  # fmt: skip
QUANTILES = {name: 1000 for name in ("p50", "p90", "p95", "p99", "p999", "max", "mean")}
KIND = {"window": COUNTS, "run": COUNTS, "response": "aGk=", "service": "aGk=",
        "response_ns": QUANTILES, "service_ns": QUANTILES}  # fmt: skip
RESULT: dict[str, Any] = {
    "version": 3, "outcome": "complete", "error": None, "started_unix_ns": 0,
    "started_steady_ns": 0, "begun_late_ns": 0,
    "window_unix_ns": [10, 30_000_000_010], "window_s": 30.0,
    "drained_s": 0.5, "given_up_s": None,
    "kinds": [{"kind": "new_order", **KIND}, {"kind": "payment", **KIND}],
    "seconds": {"start_unix_ns": 5, "committed": {"new_order": [1, 2]}, "rolled_back": [0, 1],
                "failed": [0, 0], "retries": [0, 0], "due": [1, 3], "skipped": [0, 0],
                "factor": [1.0, 1.0],
                "times": {"step_s": 1, "edges_ns": [0, 4096, 6144], "counts": [[], [1, 3]]}},
    "gaps": [], "parts": [], "steps": [], "late": "", "late_ns": {}, "stream_digest": None,
    "errors": [{"sqlstate": "40001", "count": 1, "example": "x"}], "reconnects": 0,
    "client": {"user_s": 1.0, "system_s": 2.0, "window_s": 30.0, "cpus": 2,
               "share_of_host": 0.05, "voluntary_switches": 1, "involuntary_switches": 2,
               "run_queue_wait_s": 0.5, "threads": 2, "rss_max_bytes": 1000,
               "thread_cpu_s": [1.0, 2.0], "thread_wait_s": [0.25, 0.25]},
    "audit": [{"name": "rollbacks", "source": "2.4.1.4", "measured": 0.01, "n": 100,
               "low": 0.009, "high": 0.011, "unit": "1"}],
    "statements_per_transaction": 20.5, "round_trips_per_transaction": 20.5,
}  # fmt: skip


def test_rates_are_per_minute_and_never_mixed() -> None:
    driven = driver.parse_result(RESULT)

    assert driven.nopm == 7 * 2  # 7 in 30 s
    assert driven.tpm_total == 2 * (7 + 1) * 2  # both kinds, rollbacks included
    assert driven.client.thread_cpu_s == (1.0, 2.0)
    assert driven.audit[0].ok


def test_seconds_become_series_that_begin_at_their_time() -> None:
    series = {one.name: one for one in driver.parse_result(RESULT).series}

    assert series["driver.committed.new_order"].values.tolist() == [1.0, 2.0]
    assert series["driver.committed.new_order"].unix_ns.tolist() == [5, 1_000_000_005]
    assert series["driver.rolled_back"].kind == "rate"
    assert series["driver.response.4096_6144_ns"].values.tolist() == [1.0, 3.0]
    assert "driver.response.0_4096_ns" not in series, "nothing was as fast"


def test_a_result_of_another_version_is_an_error_that_says_so() -> None:
    with pytest.raises(DriveError, match="result has version 2, this pgdyno reads 3") as raised:
        driver.parse_result(RESULT | {"version": 2})
    assert "make build" in str(raised.value.hint)


def test_a_result_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="nopm"):
        driver.parse_result(RESULT | {"client": RESULT["client"] | {"cpus": "nopm"}})


@pytest.fixture
def said() -> Iterator[Any]:
    """Starts a process that prints some lines, as the worker does."""
    processes: list[Process] = []

    def speak(*lines: object, code: int = 0) -> Process:
        text = "\n".join(json.dumps(line) for line in lines)
        program = f"import sys; print({text!r}); sys.exit({code})"
        processes.append(start([sys.executable, "-c", program], pipes=True))
        return processes[-1]

    yield speak
    for process in processes:
        process.wait(DEADLINE_S)
        process.close_pipes()


def test_progress_is_told_and_the_result_returned(said: Any) -> None:
    told: list[DriveProgress] = []

    process = said({"phase": "warmup", "phase_left_s": 2.5}, {"result": {"a": 1}})
    last = driver._watch(process, told.append)

    assert told == [DriveProgress("warmup", 2.5)]
    assert last == {"a": 1}


def test_the_workers_error_is_ours(said: Any) -> None:
    error = {"error": {"kind": "target", "fact": "no server at port 1", "hint": "Start it."}}

    with pytest.raises(DriveError, match="no server at port 1") as caught:
        driver._watch(said(error, code=1), lambda _: None)
    assert caught.value.hint == "Start it."


def test_a_worker_that_dies_is_an_error(said: Any) -> None:
    with pytest.raises(DriveError, match="ended with code 9 and without a result"):
        driver._watch(said({"phase": "window", "phase_left_s": 1.0}, code=9), lambda _: None)


@pytest.mark.parametrize("program", ["worker", "host_worker", "null_server"])
def test_a_program_that_drives_has_nothing_in_memory_that_it_does_not_need(program: str) -> None:
    """There may be many of them on a machine, and many of them in a fleet."""
    words = f"import sys, pgdyno.drive.{program}; print(*sys.modules)"
    done = run([sys.executable, "-c", words])

    assert {"numpy", "pydantic", "psycopg", "scipy"}.isdisjoint(done.stdout.split())


@pytest.mark.parametrize("program", ["worker", "host_worker", "null_server"])
def test_a_failure_that_nobody_hears_of_ends_the_process_without_a_word(program: str) -> None:
    words = [sys.executable, "-P", "-m", f"pgdyno.drive.{program}"]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        if program == "host_worker":
            assert "hello" in process.stdout.readline()
        process.stdout.close()
        process.stdin.write('{"load": {}, "spec": {}, "cpus": null}\n')
        process.stdin.flush()

        assert process.stderr.read() == ""
        assert process.wait(DEADLINE_S) == 1
