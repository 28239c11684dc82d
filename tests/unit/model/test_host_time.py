"""Shares of a host's CPU time, also where the kernel counts less of it than there was."""

from __future__ import annotations

import pytest

from pgdyno.model.host_time import host_cpu_s, host_idle_share


def test_waiting_for_disks_is_idle_and_other_counters_are_no_cpu_time() -> None:
    deltas = {"cpu.user_s": 6.0, "cpu.idle_s": 2.0, "cpu.iowait_s": 2.0, "wal.bytes": 1e9,
              "cpu.0.busy_s": 3.0, "cpu.thermal_throttles": 7.0}  # fmt: skip

    assert host_idle_share(deltas, 10.0) == 0.4


def test_what_the_kernel_counted_to_no_state_was_not_idle() -> None:
    deltas = {"cpu.user_s": 4.0, "cpu.system_s": 2.0, "cpu.idle_s": 5.0, "cpu.iowait_s": 5.0,
              "cpu.0.busy_s": 3.0, "cpu.1.busy_s": 3.0}  # fmt: skip

    assert host_cpu_s(deltas, 10.0) == 20.0, "two CPUs for ten seconds"
    assert host_idle_share(deltas, 10.0) == 0.5, "and not 10 of the 16 that were counted"


@pytest.mark.parametrize("deltas", [{}, {"cpu.user_s": 1.0}, {"cpu.idle_s": 0.0}])
def test_an_idle_share_that_was_not_sampled_is_none(deltas: dict[str, float]) -> None:
    assert host_idle_share(deltas, 10.0) is None
