"""Utilisation, saturation and errors: of the window alone, and never zero where not known."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import cast

import numpy as np
import pytest

from pgdyno.analysis.processes import process_rows
from pgdyno.analysis.resource_facts import ResourceRow
from pgdyno.analysis.resources import resource_rows
from pgdyno.drive.driver import Driven
from pgdyno.model.cpu_states import CPU_STATES
from pgdyno.model.run import Series, TrialRecord, TrialState
from pgdyno.trial.sampled import growth
from tests.data.miniature import a_result

NS = 1_000_000_000
RESULT = a_result()
BEGIN, END = RESULT.window_ns
SECONDS = (END - BEGIN) / NS


def counter(name: str, per_s: float, outside: float = 0.0) -> Series:
    """Grows by `per_s` in the window, and otherwise before and after it."""
    ends = np.array([BEGIN - 10 * NS, BEGIN, END, END + 10 * NS])
    grown = np.cumsum([5.0, 10 * outside, per_s * SECONDS, 10 * outside])
    return Series(name, "1", "counter", ends, grown)


def gauge(name: str, value: float, outside: float) -> Series:
    times = np.array([BEGIN - NS, BEGIN + NS, END - NS, END + NS])
    return Series(name, "B", "gauge", times, np.array([outside, value, value, outside]))


def trial(number: int, *series: Series) -> TrialRecord:
    """With what the counters grew by, as a window keeps it."""
    result = replace(RESULT, deltas=growth(series, cast(Driven, RESULT)))  # its window_ns alone
    return TrialRecord(number, number, "one", "x", TrialState.FINISHED, result=result)


def rows(*series: Series, stages: tuple[str, ...] = ("one",)) -> dict[tuple[str, str], ResourceRow]:
    found = resource_rows(stages, [trial(1, *series)], {1: {one.name: one for one in series}})
    return {(one.resource, f"{one.aspect}: {one.what}"): one for one in found}


def only(*series: Series, stages: tuple[str, ...] = ("one",)) -> ResourceRow:
    (row,) = rows(*series, stages=stages).values()
    return row


def test_counters_count_what_they_grew_by_in_the_window() -> None:
    pressure = only(counter("psi.cpu.some_s", 0.25, outside=0.9))
    assert (pressure.resource, pressure.aspect) == ("CPU", "saturation")
    assert pressure.stages == pytest.approx((0.25,))


def test_gauges_are_means_of_the_window() -> None:
    total = gauge("memory.total_bytes", 1000, 1000)
    assert only(total, gauge("memory.available_bytes", 250, 900)).stages == (0.75,)


def test_the_driver_has_a_rate_of_bytes() -> None:
    row = only(counter("driver.read_bytes", 100.0), counter("driver.write_bytes", 50.0))
    assert (row.resource, row.aspect, row.unit) == ("driver", "utilisation", "bytes_per_s")
    assert row.stages == pytest.approx((150.0,))


def test_busy_is_what_is_neither_idle_nor_waiting_for_a_disk() -> None:
    per_s = dict.fromkeys(CPU_STATES, 0.0) | {"user": 1.0, "steal": 0.2, "idle": 0.5, "iowait": 0.3}
    found = rows(*(counter(f"cpu.{state}_s", value, 0.1) for state, value in per_s.items()))
    by_aspect = {one.aspect: one.stages for one in found.values()}
    assert by_aspect == {
        "utilisation": pytest.approx((0.6,)),
        "errors": pytest.approx((0.1,)),
    }


def test_an_interface_or_device_whose_name_has_dots_is_one_of_them() -> None:
    of = {"bond0": 5.0, "bond0.100": 3.0, "eth0": 2.0}
    series = [
        counter(f"net.{name}.{way}_packets", per_s) for name, per_s in of.items()
        for way in ("rx", "tx")
    ]  # fmt: skip
    series += [counter("net.softnet_drops", 1.0), counter("device.md.home.busy_s", 0.5),
               counter("device.md.home.reads", 9.0)]  # fmt: skip
    found = rows(*series)
    packets = {
        name.removeprefix("interface "): row.stages
        for (name, aspect), row in found.items()
        if aspect.startswith("utilisation") and name.startswith("interface ")
    }
    assert packets == {name: pytest.approx((2 * per_s,)) for name, per_s in of.items()}
    assert {name for name, _ in found if name.startswith("device ")} == {"device md.home"}


def test_what_was_not_sampled_is_not_known_rather_than_zero() -> None:
    assert rows() == {}
    row = only(counter("vm.swap_in_pages", 0), counter("vm.swap_out_pages", 0), stages=("0", "one"))
    assert row.stages == (None, 0.0)
    assert rows(counter("vm.swap_in_pages", 3)) == {}, "a sum with an unknown part is not known"
    short = counter("psi.cpu.some_s", 1)
    assert rows(replace(short, unix_ns=short.unix_ns[:1], values=short.values[:1])) == {}


def test_devices_that_did_nothing_are_left_out() -> None:
    busy = {
        "reads": 10.0, "writes": 30.0, "flushes": 5.0, "read_s": 0.1, "write_s": 0.3,
        "flush_s": 0.05, "busy_s": 0.4, "weighted_s": 2.5,
    }  # fmt: skip
    idle = [counter(f"device.loop0.{name}", 0.0, outside=7.0) for name in busy]
    found = rows(*idle, *(counter(f"device.vda.{name}", value) for name, value in busy.items()))
    assert {resource for resource, _ in found} == {"device vda"}
    assert [one.stages[0] for one in found.values()] == pytest.approx([0.4, 2.5, 0.01, 0.01])
    assert [one.unit for one in found.values()] == ["share", "level", "s", "s"]


def test_of_hundreds_of_devices_the_busiest_are_shown_and_the_others_counted() -> None:
    several = [
        counter(f"device.sd{n:03}.{name}", n / 1000)
        for n in range(1, 201)
        for name in ("reads", "busy_s")
    ]
    several += [counter(f"net.veth{n:03}.{way}_packets", float(n))
                for n in range(1, 301) for way in ("rx", "tx")]  # fmt: skip
    found = rows(*several)
    resources = {resource for resource, _ in found}
    assert resources == {
        *(f"device sd{n}" for n in range(189, 201)), "188 further devices",
        *(f"interface veth{n}" for n in range(289, 301)), "288 further interfaces",
    }  # fmt: skip
    (of_devices,) = (row for row in found.values() if row.resource == "188 further devices")
    assert of_devices.stages == pytest.approx((0.188,))
    (of_interfaces,) = (row for row in found.values() if row.resource == "288 further interfaces")
    assert of_interfaces.stages == pytest.approx((2 * 288 * 289 / 2,))


def test_interfaces_say_what_they_dropped() -> None:
    names = ("rx_packets", "tx_packets", "rx_drops", "tx_drops", "rx_errors", "tx_errors")
    found = rows(*(counter(f"net.eth0.{name}", 2.0) for name in names))
    assert [one.stages[0] for one in found.values()] == pytest.approx([4.0, 4.0, 4.0])


def test_the_mean_of_a_stage_is_that_of_its_windows() -> None:
    trials = [trial(n, counter("wal.buffers_full", float(n))) for n in (1, 2)]
    (row,) = resource_rows(["one"], trials, {})
    assert row.stages == pytest.approx((1.5,))


def test_a_rate_is_no_counter() -> None:
    series = replace(counter("wal.buffers_full", 3.0), kind="rate")
    assert rows(series) == {}


def test_processes_have_cpu_and_bytes_by_role_and_those_that_did_nothing_are_left_out() -> None:
    per_s = {
        "backend.cpu_s": 1.5, "backend.wait_cpu_s": 0.25, "backend.read_bytes": 4096.0,
        "backend.write_bytes": 0.0, "backend.count": 9.0, "checkpointer.write_bytes": 8192.0,
        "checkpointer.cpu_s": 0.0, "walsender.cpu_s": 0.0, "walsender.write_bytes": 0.0,
    }  # fmt: skip
    trials = [trial(1, *(counter(f"process.{name}", value) for name, value in per_s.items()))]
    found = process_rows(["one", "two"], trials)

    assert [one.role for one in found] == ["backend", "checkpointer"]
    backend, checkpointer = (one.stages for one in found)
    assert backend[1] is None
    assert [astuple(use) for use in (backend[0], checkpointer[0]) if use is not None] == [
        pytest.approx((1.5, 0.25, 4096, 0)), (0, None, None, pytest.approx(8192))
    ]  # fmt: skip
    assert process_rows(["one"], []) == ()
