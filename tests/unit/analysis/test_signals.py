"""Lines of host and server over time: rates, levels, the middle trial, stalls that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from pgdyno.analysis.extremes import PARTS_MAX, shortened
from pgdyno.analysis.signal_facts import Signal
from pgdyno.analysis.signals import signals
from pgdyno.model.cpu_states import CPU_STATES
from pgdyno.model.run import Cell, Series, SnapshotRows, TrialRecord, TrialState
from tests.data.miniature import a_result

NS = 1_000_000_000
RESULT = a_result()
BEGIN, END = RESULT.window_ns
SECONDS = (END - BEGIN) // NS


def sampled(name: str, values: np.ndarray, kind: str = "counter") -> Series:
    """Once a second, from two seconds before the window."""
    at = BEGIN + (np.arange(values.size) - 2) * NS
    return Series(name, "1", kind, at, values.astype(np.float64))


def counter(name: str, *grown: float) -> Series:
    """What grew in each second."""
    return sampled(name, np.cumsum([100.0, *grown]))


def of(*series: Series, looks: Sequence[SnapshotRows] = ()) -> dict[str, Signal]:
    record = TrialRecord(1, 1, "one", "x", TrialState.FINISHED, result=RESULT)
    named = {one.name: one for one in series}
    found = signals(["one", "never"], [record], {1: named}, {1: looks})
    return {one.name: one for one in found}


def rows(moments: dict[str, float | None]) -> tuple[dict[str, Cell], ...]:
    """Of the snapshot of resets."""
    return tuple({"view": view, "reset_unix_s": moment} for view, moment in moments.items())


def values(signal: Signal) -> tuple[float, ...]:
    (line,) = signal.lines
    return line.values


def test_a_counter_is_what_it_grew_by_each_second_between_its_samples() -> None:
    (line,) = of(counter("wal.bytes", 5, 7, 9))["WAL written"].lines
    assert line.values == (5, 7, 9)
    assert line.second == (-1.5, -0.5, 0.5), "seconds of the window; warm-up is negative"


def test_a_counter_that_began_anew_has_no_point_there() -> None:
    (line,) = of(counter("wal.fpi", 5, 7, -90, 9))["full page images"].lines
    assert (line.values, line.second) == ((5, 7, 9), (-1.5, -0.5, 1.5))


def test_a_counter_whose_view_was_reset_has_no_point_there_though_it_fell_nowhere() -> None:
    def look(at: Literal["begin", "end"], since_begin_s: float) -> SnapshotRows:
        reset_s = BEGIN / NS + since_begin_s
        told = rows({"pg_stat_wal": reset_s, "pg_stat_io": 7.0, "pg_stat_database": None})
        return SnapshotRows("resets", at, BEGIN, (), told)

    looks = look("begin", -1.5), look("end", 0.5)
    fpi, temporary = (counter(name, 5, 7, 3, 9) for name in ("wal.fpi", "database.temp_bytes"))
    found = of(fpi, temporary, looks=looks)
    (line,) = found["full page images"].lines
    assert (line.values, line.second) == ((7, 9), (-0.5, 1.5))
    assert values(found["temporary files"]) == (5, 7, 3, 9)


def test_a_reset_stands_at_its_second_though_the_server_has_another_clock() -> None:
    told = rows({"pg_stat_wal": BEGIN / NS + 3600.5})
    read = ({**told[0], "read_unix_s": BEGIN / NS + 3601.0},)
    looks = [SnapshotRows("resets", "end", BEGIN + 1 * NS, (), read)]
    (line,) = of(counter("wal.fpi", 5, 7, 3, 9), looks=looks)["full page images"].lines
    assert line.second == (-1.5, -0.5, 1.5)


def test_after_a_crash_databases_have_no_moment_and_others_tell_it() -> None:
    told = rows({"pg_stat_wal": BEGIN / NS + 0.5, "pg_stat_database": None})
    looks = [SnapshotRows("resets", "end", END, (), told)]
    found = of(counter("database.temp_bytes", 5, 7, 3, 9), looks=looks)
    assert values(found["temporary files"]) == (5, 7, 9)


def test_nothing_is_drawn_of_seconds_in_which_nobody_looked() -> None:
    wal = counter("wal.bytes", 5, 7, 900, 9)
    at = wal.unix_ns.copy()
    at[3:] += 20 * NS
    (line,) = of(replace(wal, unix_ns=at))["WAL written"].lines
    assert line.values == (5, 7, 9), "20 s in one point are no second"


def test_busy_is_all_time_that_is_not_idle() -> None:
    grown = dict.fromkeys(CPU_STATES, (0.0, 0.0)) | {
        "user": (1.0, 2.0), "idle": (0.5, 0.0), "iowait": (0.5, 0.0)
    }  # fmt: skip
    busy = of(*(counter(f"cpu.{state}_s", *each) for state, each in grown.items()))["CPUs busy"]
    assert values(busy) == pytest.approx((0.5, 1.0))
    assert busy.unit == "share"


def test_busy_counts_what_the_kernel_counted_to_no_state() -> None:
    grown = dict.fromkeys(CPU_STATES, (0.0, 0.0)) | {"user": (0.6, 0.6), "idle": (0.8, 0.4)}
    states = [counter(f"cpu.{state}_s", *each) for state, each in grown.items()]
    busy = of(*states, counter("cpu.0.busy_s", 0.3, 0.3), counter("cpu.1.busy_s", 0.3, 0.3))
    assert values(busy["CPUs busy"]) == pytest.approx((0.6, 0.8)), "of two CPUs, each second"


def test_the_time_of_a_request_has_no_point_where_there_was_none() -> None:
    series = [
        counter("device.vda.busy_s", 1, 1, 1),
        counter("device.vda.read_s", 0.2, 0, 0.9),
        counter("device.vda.write_s", 0.2, 0, 0),
        counter("device.vda.reads", 10, 0, 1),
        counter("device.vda.writes", 10, 0, 0),
    ]
    (line,) = of(*series)["vda: time of a read or write"].lines
    assert line.values == pytest.approx((0.02, 0.9))
    assert line.second == (-1.5, 0.5)


def test_of_many_devices_the_busiest_have_lines() -> None:
    series = [counter(f"device.sd{n:02}.read_bytes", n, n + 1) for n in range(1, 41)]
    result = replace(RESULT, deltas={f"device.sd{n:02}.busy_s": float(n) for n in range(1, 41)})
    record = TrialRecord(1, 1, "one", "x", TrialState.FINISHED, result=result)
    found = signals(["one"], [record], {1: {one.name: one for one in series}}, {})
    assert [one.name for one in found] == [f"sd{n}: read" for n in range(29, 41)]


def test_a_stage_without_a_point_has_no_line_beside_those_that_have_one() -> None:
    """A device that one stage never read from: there is no time of a request."""
    names = ("busy_s", "read_s", "write_s", "reads", "writes")
    busy = [counter(f"device.vda.{name}", 1, n + 2) for n, name in enumerate(names)]
    idle = [counter(f"device.vda.{name}", 0, 0) for name in names]
    trials = [
        TrialRecord(n, 1, stage, "x", TrialState.FINISHED, result=RESULT)
        for n, stage in ((1, "one"), (2, "two"))
    ]
    series = {n: {one.name: one for one in each} for n, each in ((1, busy), (2, idle))}
    found = {one.name: one for one in signals(["one", "two"], trials, series, {})}
    assert [one.stage for one in found["vda: time of a read or write"].lines] == ["one"]
    assert all(line.values for one in found.values() for line in one.lines)


def test_what_never_moved_or_was_not_sampled_is_left_out() -> None:
    assert of() == {}
    assert of(counter("vm.swap_in_pages", 0, 0), counter("vm.swap_out_pages", 0, 0)) == {}
    assert of(counter("vm.swap_in_pages", 3, 4)) == {}, "half of a sum is not known"
    still = sampled("slots.retained_bytes", np.full(4, 7.0), "gauge")
    assert of(still) == {}


def test_a_transaction_is_shown_once_it_is_old() -> None:
    young = sampled("transactions.oldest_s", np.array([0.1, 0.9, 0.2]), "gauge")
    old = replace(young, values=np.array([0.1, 0.9, 7.5]))
    assert of(young) == {}
    assert values(of(old)["oldest transaction"]) == (0.1, 0.9, 7.5)


def test_the_drain_is_cut_off() -> None:
    (line,) = of(counter("wal.bytes", *range(SECONDS + 20)))["WAL written"].lines
    assert max(line.second) <= SECONDS


def test_the_trial_with_the_median_throughput_is_shown() -> None:
    trials = [
        TrialRecord(
            number, number, "one", "x", TrialState.FINISHED,
            result=replace(RESULT, nopm=throughput),
        )
        for number, throughput in ((1, 300.0), (2, 100.0), (3, 200.0))
    ]  # fmt: skip
    series = {n: {"wal.bytes": counter("wal.bytes", n, n + 1)} for n in (1, 2, 3)}
    ((line,),) = (one.lines for one in signals(["one"], trials, series, {}))
    assert line.trial == 3


def test_a_stall_of_a_second_is_kept_of_an_hour() -> None:
    at = np.arange(3600.0)
    line = np.sin(at / 50) + 10
    line[1234] = 0.0
    line[2345] = 99.0
    short_at, short = shortened(at, line)
    assert short.size <= 2 * PARTS_MAX
    assert (short.min(), short.max()) == (0.0, 99.0)
    assert 1234.0 in short_at
    assert (np.diff(short_at) > 0).all()
