"""Utilisation, saturation and errors: of the window alone, and never zero where not known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, replace
from typing import cast

import numpy as np
import pytest

from pgdyno.analysis.processes import process_rows
from pgdyno.analysis.resource_facts import ResourceRow
from pgdyno.analysis.resources import resource_rows
from pgdyno.drive.driver import Driven
from pgdyno.model.cpu_states import CPU_STATES
from pgdyno.model.run import (
    Cell,
    Effective,
    Missing,
    Series,
    SnapshotRows,
    TelemetryReport,
    TrialRecord,
    TrialState,
)
from pgdyno.trial.sampled import growth
from tests.data.met import USUAL, sessions
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


def all_rows(*series: Series, stages: tuple[str, ...] = ("one",)) -> tuple[ResourceRow, ...]:
    return resource_rows(stages, [trial(1, *series)], {1: {one.name: one for one in series}})


def counted(found: Iterable[ResourceRow]) -> list[ResourceRow]:
    return [one for one in found if one.unit != "uncounted"]


def rows(*series: Series, stages: tuple[str, ...] = ("one",)) -> dict[tuple[str, str], ResourceRow]:
    """Those of the table that are counted."""
    return {
        (one.resource, f"{one.aspect}: {one.what}"): one
        for one in counted(all_rows(*series, stages=stages))
        if one.aspect != "part"
    }


def parts(resource: str, *series: Series) -> dict[str, float | None]:
    return {
        one.what: one.stages[0]
        for one in all_rows(*series)
        if one.resource == resource and one.aspect == "part"
    }


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
    assert [one.stages[0] for one in found.values()] == pytest.approx([0.4, 40, 2.5, 0.01, 0.01])
    assert [one.unit for one in found.values()] == ["share", "per_s", "level", "s", "s"]
    assert [one.further for one in found.values()] == [False, True, False, False, False]


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


def test_what_nobody_counts_is_said_and_not_left_out() -> None:
    told = [one for one in all_rows(*disk_of("vda")) if one.aspect == "errors"]
    assert [(one.resource, one.unit, one.stages) for one in told] == [
        ("device vda", "uncounted", (None,))
    ]
    assert all_rows() == (), "of a resource that was not sampled it is not said either"


def test_every_resource_has_all_three_aspects_told() -> None:
    """Of what nobody counts that, of what was not sampled that: no hole that a reader must see."""
    series = [counter("psi.io.some_s", 0.1), counter("wal.buffers_full", 1.0),
              counter("driver.cpu_s", 0.1), *disk_of("vda")]  # fmt: skip
    several = [counter(f"device.sd{n}.busy_s", n / 1000) for n in range(1, 20)]
    found = [one for one in all_rows(*series, *several) if one.aspect != "part"]
    resources = {one.resource for one in found}
    assert resources >= {"I/O", "WAL buffers", "driver", "device vda"}
    for resource in resources:
        told = {one.aspect for one in found if one.resource == resource}
        whole = {"utilisation", "saturation", "errors"}
        assert told == ({"utilisation"} if "further" in resource else whole), resource
    said = {(one.resource, one.aspect): one.what for one in found if one.unit == "uncounted"}
    assert "how often they were full" in said["WAL buffers", "utilisation"]
    assert said["driver", "saturation"] == "not known here: not sampled, or there is none"
    assert ("driver", "errors") not in said


def disk_of(name: str) -> list[Series]:
    return [counter(f"device.{name}.{one}", 1.0) for one in ("reads", "busy_s")]


def test_each_resource_has_its_rows_together_and_in_one_order() -> None:
    several = [*disk_of("vda"), counter("psi.cpu.some_s", 0.1), counter("cpu.steal_s", 0.1),
               counter("vm.swap_in_pages", 1), counter("vm.swap_out_pages", 1)]  # fmt: skip
    found = [(one.resource, one.aspect) for one in all_rows(*several) if one.aspect != "part"]
    resources = [resource for resource, _ in found]
    order = ["utilisation", "saturation", "errors", "limit"]
    assert resources == sorted(resources, key=resources.index)
    for resource in set(resources):
        told = [aspect for name, aspect in found if name == resource]
        assert told == sorted(told, key=order.index)


def test_a_link_is_used_in_its_fuller_direction() -> None:
    ways = {"rx_packets": 1.0, "tx_packets": 1.0, "rx_bytes": 25e6, "tx_bytes": 50e6}
    counters = [counter(f"net.eth0.{name}", value) for name, value in ways.items()]
    share = ("interface eth0", "utilisation: share of the link's speed, of the fuller direction")
    assert share not in rows(*counters), "its speed is not known"
    speed = gauge("net.eth0.speed_bytes_per_s", 125e6, 125e6)
    assert rows(*counters, speed)[share].stages == pytest.approx((0.4,))


def test_connections_are_a_share_of_those_that_may_be() -> None:
    met = sessions(BEGIN // NS - 5, round(SECONDS) + 10)
    settings = (*RESULT.settings, Effective("max_connections", "50", "initdb", ""))

    def found(*missing: Missing) -> list[ResourceRow]:
        report = TelemetryReport("default", SECONDS, 0.1, (), missing)
        result = replace(RESULT, deltas={}, settings=settings, telemetry=report)
        one = TrialRecord(1, 1, "one", "x", TrialState.FINISHED, result=result)
        return counted(resource_rows(["one"], [one], {}, {1: {"sessions": met}}))

    backends = sum(average for one, average in USUAL.items() if one[0] == "backend")
    assert [one.stages[0] for one in found()] == pytest.approx([backends, backends / 50])
    assert found(Missing("sessions of others", "the role may not read them")) == []


def test_a_control_group_is_told_against_the_limit_that_holds() -> None:
    columns = ("group", "resource", "device", "limit", "unit", "value")
    limits: list[dict[str, Cell]] = [
        dict(zip(columns, row, strict=True))
        for row in (
            ("server", "cpu", "", "max", "CPUs", 2.0), ("server", "cpu", "", "max", "CPUs", 4.0),
            ("server", "io", "254:0", "read_bytes", "B/s", 1e6),
            ("client", "memory", "", "high", "B", 5e9),
        )
    ]  # fmt: skip
    looks = [SnapshotRows("cgroup_limits", "begin", BEGIN, (), tuple(limits))]
    series = [
        gauge("cgroup.cpu_limit", 2.0, 2.0), gauge("cgroup.memory_bytes", 3e9, 3e9),
        gauge("cgroup.memory_limit_bytes", 8e9, 8e9), gauge("cgroup.memory_high_bytes", 4e9, 4e9),
        counter("server.cpu_s", 0.5), counter("driver.cpu_s", 0.25), counter("pgdyno.cpu_s", 0.25),
        counter("cgroup.throttled_periods", 1.0), counter("cgroup.periods", 10.0),
        counter("cgroup.memory_high_events", 3.0),
    ]  # fmt: skip

    def told(*more: Series) -> dict[str, float | None]:
        every = [*series, *more]
        by_name = {1: {one.name: one for one in every}}
        found = resource_rows(["one"], [trial(1, *every)], by_name, snapshots={1: looks})
        return {f"{one.aspect}: {one.what}": one.stages[0] for one in counted(found)
                if one.resource == "control group of the server"}  # fmt: skip

    assert told() == {
        "utilisation: CPU time of server, driver and pgdyno, of its limit": pytest.approx(0.5),
        "utilisation: memory, of the limit that it comes to first": 0.75,
        "utilisation: memory": 3e9,
        "saturation: share of the periods in which its limit did": pytest.approx(0.1),
        "saturation: times that it waited for memory to be freed, a second": pytest.approx(3.0),
        "limit: CPUs": 2.0,
        "limit: read bytes of device 254:0": 1e6,
    }
    apart = told(gauge("client.cgroup.memory_bytes", 1e9, 1e9))
    assert apart["utilisation: CPU time of the server, of its limit"] == pytest.approx(0.25)


def test_the_time_of_cpus_is_told_by_state_and_by_cpu() -> None:
    per_s = dict.fromkeys(CPU_STATES, 0.0) | {"user": 0.8, "softirq": 0.2, "idle": 0.6}
    each = [counter("cpu.0.busy_s", 0.9), counter("cpu.1.busy_s", 0.1)]
    states = [counter(f"cpu.{state}_s", value) for state, value in per_s.items()]
    clock = gauge("cpu.frequency_hz", 3e9, 1e9)
    found = parts("CPU", *states, *each, counter("host.forks", 7.0), clock)
    assert found == {
        "user: programs": pytest.approx(0.4), "idle": pytest.approx(0.3),
        "softirq: what interrupts left to be done, as of the network": pytest.approx(0.1),
        **{what: 0 for what, value in found.items() if value == 0},
        "counted to no state": pytest.approx(0.2), "CPU 0: busy": pytest.approx(0.9),
        "CPU 1: busy": pytest.approx(0.1),
        "processes and threads begun, a second": pytest.approx(7.0), "clock, mean of all": 3e9,
    }  # fmt: skip
    assert rows(*states, *each)["CPU", "utilisation: the same of the busiest CPU"].stages == (
        pytest.approx((0.9,))
    )


def test_the_busiest_cpu_is_not_below_the_mean_where_the_kernel_lost_time() -> None:
    per_s = dict.fromkeys(CPU_STATES, 0.0) | {"user": 1.6, "idle": 0.1}
    states = [counter(f"cpu.{state}_s", value) for state, value in per_s.items()]
    found = rows(*states, counter("cpu.0.busy_s", 0.85), counter("cpu.1.busy_s", 0.75))
    of_all = found["CPU", "utilisation: share of all CPUs' time that is not idle"].stages
    assert of_all == pytest.approx((0.95,))
    assert found["CPU", "utilisation: the same of the busiest CPU"].stages == of_all


def test_of_many_cpus_the_busiest_are_told_one_by_one() -> None:
    found = parts("CPU", *(counter(f"cpu.{n}.busy_s", n / 200) for n in range(100)))
    assert [what for what in found if what.startswith("CPU ")] == [
        f"CPU {n}: busy" for n in range(84, 100)
    ]
    assert found["84 further CPUs: busy, on average"] == pytest.approx(83 / 2 / 200)


def test_the_mean_of_a_stage_is_that_of_its_windows() -> None:
    trials = [trial(n, counter("wal.buffers_full", float(n))) for n in (1, 2)]
    (row,) = counted(resource_rows(["one"], trials, {}))
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
