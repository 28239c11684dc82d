"""Outputs of the probing programs, recorded on a guest with PostgreSQL 15.18 and 18.6, fio 3.33."""

from __future__ import annotations

import os
from copy import deepcopy
from dataclasses import replace

import pytest

from pgdyno.model.errors import TargetError
from pgdyno.probe.clock import on_cpu, parse_clock
from pgdyno.probe.fio import commits_of, grid_point, parse_jobs
from pgdyno.probe.others import CpuTime, busy_seconds
from pgdyno.probe.sync import parse_sync
from tests.data.probed import jobs, recorded


@pytest.mark.parametrize(
    ("name", "one", "two", "unsynced"),
    [
        ("fsync-15.txt", 18_953.375, 12_950.598, 2_597_280.235),
        ("fsync-18.txt", 20_599.670, 18_819.586, 2_567_854.618),
    ],
)
def test_every_line_of_pg_test_fsync_is_read(
    name: str, one: float, two: float, unsynced: float
) -> None:
    rates = parse_sync(recorded(name))
    by_name = {(rate.test, rate.method): rate.per_s for rate in rates}

    assert len(rates) == len(by_name) == 18
    assert by_name["one-write", "fdatasync"] == one
    assert by_name["two-writes", "fdatasync"] == two
    assert by_name["one-write", "fsync_writethrough"] is None
    assert by_name["unsynced", "write"] == unsynced
    assert {method for test, method in by_name if test == "open-sync-sizes"} == {
        "1 * 16kB open_sync write", "2 * 8kB open_sync writes", "4 * 4kB open_sync writes",
        "8 * 2kB open_sync writes", "16 * 1kB open_sync writes",
    }  # fmt: skip
    assert {method for test, method in by_name if test == "descriptor"} == {
        "write, fsync, close", "write, close, fsync",
    }  # fmt: skip


def test_a_method_that_direct_io_does_not_have_is_no_rate() -> None:
    text = recorded("fsync-18.txt").replace("21084.777 ops/sec      47 usecs/op", "n/a*")

    assert parse_sync(text)[0].per_s is None


@pytest.mark.parametrize("text", ["", "Compare file sync methods using one 8kB write:\n"])
def test_an_output_without_rates_is_refused(text: str) -> None:
    with pytest.raises(TargetError, match="no rate of fdatasync"):
        parse_sync(text)


@pytest.mark.parametrize(
    ("name", "loop_ns", "first", "last"),
    [
        ("timing-15.txt", 37.66, (1.0, 25_722_571), (8192.0, 4)),
        ("timing-18.txt", 34.32, (1.0, 28_262_781), (4096.0, 29)),
    ],
)
def test_pg_test_timing_is_read(
    name: str, loop_ns: float, first: tuple[float, int], last: tuple[float, int]
) -> None:
    clock = parse_clock(recorded(name))

    assert clock.loop_ns == loop_ns
    assert (clock.below_us[0], clock.below_us[-1]) == (first, last)


def test_a_clock_is_not_slow_because_others_had_the_cpu() -> None:
    """295 ns were read where a reading took 60: the loop's time is that of the wall."""
    waited = replace(parse_clock(recorded("timing-18.txt")), loop_ns=295.0)
    readings = sum(count for _, count in waited.below_us)

    assert on_cpu(waited, readings * 60e-9).loop_ns == pytest.approx(60)
    assert on_cpu(waited, 0.0).loop_ns == 295.0, "not counted is not nothing"
    assert on_cpu(waited, readings * 400e-9).loop_ns == 295.0


def test_no_percentile_is_above_the_longest() -> None:
    """Fio names the end of a bin: 497 ms stood beside a longest of 495 ms."""
    (job,) = jobs("fio-randread.json")
    job["read"]["lat_ns"]["max"] = 20_000_000
    latency = grid_point(job, "random read", 16, 2).latency

    assert (latency.p999_ns, latency.max_ns) == (20_000_000, 20_000_000)
    assert latency.p99_ns == 3_751_936


def test_cpus_of_others_are_what_is_busy_and_not_ours() -> None:
    text = "cpu  100 0 300 9000 500 0 0 200 50 0\ncpu0 1 1\n"
    assert busy_seconds(text) == pytest.approx(600 / os.sysconf("SC_CLK_TCK")), "no idle, no guests"
    with pytest.raises(ValueError, match="no line"):
        busy_seconds("intr 5\n")
    before, after = CpuTime(10.0, 100.0, 5.0), CpuTime(20.0, 118.0, 9.0)
    assert after.others_since(before) == pytest.approx(1.4)
    assert replace(after, ours_s=30.0).others_since(before) == 0.0


def test_an_output_without_a_loop_is_refused() -> None:
    with pytest.raises(TargetError, match="no time per loop"):
        parse_clock("Testing timing overhead for 1 second.\n")


def test_a_window_of_fio_is_read() -> None:
    (job,) = jobs("fio-randread.json")
    point = grid_point(job, "random read", 16, 2)

    assert point.outstanding == 32
    assert point.per_s == 54_627.372627
    assert (point.latency.p50_ns, point.latency.p99_ns) == (350_208, 3_751_936)
    assert (point.latency.p999_ns, point.latency.max_ns) == (27_394_048, 132_576_663)
    assert point.latency.n == 54_682
    assert point.cpu_share == pytest.approx(0.073)
    # Little's law: requests under way = rate times mean response time.
    assert point.per_s * point.latency.mean_ns / 1e9 == pytest.approx(32, rel=0.02)


def test_commits_are_read_with_their_flushes() -> None:
    (job,) = jobs("fio-commits.json")
    commits = commits_of(job)

    assert commits.per_s == 2_659.340659
    assert commits.flush.p50_ns == 132_096
    assert commits.ns == pytest.approx(1e9 / commits.per_s, rel=0.02)
    shares, ns = zip(*commits.flush_quantiles, strict=True)
    assert shares == pytest.approx((0, 0.5, 0.95, 0.99, 0.999, 1))
    assert ns == (34_763, 132_096, 1_564_672, 2_998_272, 9_502_720, 14_015_127)
    assert commits.cpu_ns == pytest.approx(0.054 / 2_659.340659 * 1e9)


def test_the_two_sides_of_the_mixed_load_are_apart() -> None:
    under, writes = jobs("fio-mixed.json")

    assert commits_of(under).per_s < commits_of(jobs("fio-commits.json")[0]).per_s
    assert grid_point(writes, "random write", 16, 1).per_s == 52_214.785215


def test_paths_together_are_reported_apart() -> None:
    rates = [grid_point(job, "random read", 4, 2).per_s for job in jobs("fio-together.json")]

    assert rates == [31_181.818182, 31_578.421578]


def test_a_window_without_requests_is_no_zero() -> None:
    (job,) = deepcopy(jobs("fio-randread.json"))
    job["read"]["lat_ns"]["N"] = 0

    with pytest.raises(TargetError, match="fio did no random read"):
        grid_point(job, "random read", 16, 2)


@pytest.mark.parametrize(
    ("text", "words"),
    [("fio: bad option\n", "fio wrote no JSON"), ("{}", "fio wrote no JSON"),
     ('{"jobs": [{"jobname": "pages", "error": 28}]}', "job pages ended with error 28")],
)  # fmt: skip
def test_what_fio_failed_at_is_said(text: str, words: str) -> None:
    with pytest.raises(TargetError, match=words):
        parse_jobs(text, "random read")


def test_what_an_engine_says_before_the_json_is_no_part_of_it() -> None:
    said = "awake (noop): ioengine=cpuio, cpuload=100, cpucycle=50000\n"

    (job,) = parse_jobs(said + recorded("fio-commits.json"), "commits")
    assert commits_of(job).per_s > 0
