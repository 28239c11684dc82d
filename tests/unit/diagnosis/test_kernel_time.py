"""CPU time of the kernel is of those who asked for it, and never more than there is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.account_facts import IDLE, IN_FLIGHT, RUNNING
from pgdyno.analysis.window_facts import WindowFacts
from pgdyno.diagnosis.kernel_time import FLUSH, MEMORY, READ, ROUND_TRIPS, STALLED, asked
from pgdyno.diagnosis.window import diagnose_window
from tests.data.windows import DRIVER, LOAD, a_window, an_account

ONE_BY_ONE = {RUNNING: 0.46, IN_FLIGHT: 0.22, "flush": 0.29, IDLE: 0.03}
"""A single session that asks for eight rows and commits, as it was measured."""
RATES = {
    "cpu.user_s": 0.33, "cpu.system_s": 0.34, "cpu.softirq_s": 0.025, "cpu.idle_s": 0.98,
    "cpu.iowait_s": 0.20, "server.cpu_s": 0.47, "disk.flushes": 3300.0, "disk.reads": 0.0,
    "database.blocks_read": 12.0,
}  # fmt: skip


def one_by_one(trips: float | None, **rates: float) -> WindowFacts:
    """Its window, with so many round trips a transaction."""
    return a_window(
        account=an_account(ONE_BY_ONE, sessions=1.0), rates=RATES | rates,
        load=replace(LOAD, connections=1, per_s=3300.0, round_trips=trips),
        driver=replace(DRIVER, cpus=2, cpu_s=0.21 * 30, wanted=0.25, busiest=0.21),
    )  # fmt: skip


def test_each_has_its_price_and_all_no_more_than_the_kernel_took() -> None:
    parts = asked(one_by_one(8.0))
    assert parts[ROUND_TRIPS] == pytest.approx(7 * 3300 * 10e-6 / 0.695)
    assert parts[FLUSH] == pytest.approx(3300 * 30e-6 / 0.695)
    assert MEMORY not in parts
    kernel = (0.34 + 0.025) / 0.695
    many = asked(one_by_one(80.0))
    assert sum(many.values()) == pytest.approx(kernel, rel=0.05)
    assert many[ROUND_TRIPS] / many[FLUSH] == pytest.approx(79 * 10 / 30)


def test_one_round_trip_is_needed() -> None:
    for trips in (1.0, 0.5, None):
        assert asked(one_by_one(trips))[ROUND_TRIPS] == 0.0


def test_what_is_left_is_memorys_only_where_tasks_wait_for_it() -> None:
    reads = {"disk.reads": 1000.0, "database.blocks_read": 2000.0, "disk.flushes": 0.0}
    short = asked(one_by_one(1.0, **reads, **{"psi.memory.some_s": STALLED}))
    assert short[READ] == pytest.approx((2000 * 2e-6 + 1000 * 10e-6) / 0.695)
    assert short[MEMORY] == pytest.approx((0.365 - 0.014 - 0.033) / 0.695)
    enough = asked(one_by_one(1.0, **reads, **{"psi.memory.some_s": STALLED / 2}))
    assert MEMORY not in enough


def test_of_another_host_or_without_its_states_nothing_is_known() -> None:
    window = one_by_one(8.0)
    assert asked(replace(window, driver=replace(DRIVER, beside_server=False))) == {}
    assert asked(a_window(without=("cpu.system_s",))) == {}


def test_a_single_session_that_asks_one_by_one_is_not_the_cpus() -> None:
    """It ran 46% of its time, most of that to send, be woken and flush."""
    found = diagnose_window(one_by_one(8.0, **{"cpu.idle_s": 0.6}))
    assert set(found.limits) <= {"round_trips", "flush"}, found.sentence
    trips = found.answer("round_trips")
    assert trips.verdict == "finding"
    assert trips.gain is not None
    assert trips.gain.bound > 1.5
    cpus = found.answer("cpu")
    assert "running or wanting a CPU for round trips beyond one a transaction" in [
        one.name for one in cpus.figures
    ]
    assert diagnose_window(one_by_one(1.0)).answer("round_trips").verdict == "clear"
