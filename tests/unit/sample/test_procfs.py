"""Parsers of /proc on saved files of the oldest and the newest kernel supported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.sample import proc_stat
from pgdyno.sample.sampler import Subject
from pgdyno.sample.samplers import disk, host_cpu

DATA = Path(__file__).parents[2] / "data" / "proc"
TICKS = os.sysconf("SC_CLK_TCK")


def test_host_cpu_times_are_seconds_by_state() -> None:
    row = proc_stat.parse_host((DATA / "stat-5.10").read_text())

    assert row["cpu.user_s"] == 10132153 / TICKS
    assert row["cpu.idle_s"] == 46828483 / TICKS
    assert row["cpu.steal_s"] == 175628 / TICKS
    assert set(row) == {column.name for column in host_cpu.sampler(Subject()).columns}


def test_the_newest_kernels_stat_is_understood() -> None:
    assert proc_stat.parse_host((DATA / "stat-6.18").read_text())["cpu.idle_s"] > 0


def test_a_process_name_may_hold_anything() -> None:
    fields = "S 7 42 42 0 -1 4194560 100 200 0 0 150 50 300 100 20 0 1 0 5"

    parent, own, reaped = proc_stat.parse_process(f"42 (post) gres ) 9) {fields}")

    assert parent == 7
    assert own == 200 / TICKS
    assert reaped == 400 / TICKS


def test_server_time_counts_living_and_reaped_children(tmp_path: Path) -> None:
    def process(pid: int, own: int, reaped: int) -> None:
        folder = tmp_path / str(pid)
        (folder / "task" / str(pid)).mkdir(parents=True)
        fields = f"S 1 1 1 0 -1 0 0 0 0 0 {own} 0 {reaped} 0 20 0"
        (folder / "stat").write_text(f"{pid} (postgres) {fields}")
        (folder / "task" / str(pid) / "children").write_text("")

    process(10, own=100, reaped=1000)
    process(11, own=20, reaped=0)
    (tmp_path / "10" / "task" / "10" / "children").write_text("11 12 ")  # 12 is gone already

    assert proc_stat.server_cpu_s(tmp_path, 10) == 1120 / TICKS


@pytest.mark.parametrize("kernel", ["5.10", "6.18"])
def test_disk_counters(kernel: str) -> None:
    text = (DATA / f"diskstats-{kernel}").read_text()
    device = text.split()[2]

    row = disk.parse(text, device)

    assert row is not None
    assert all(value >= 0 for value in row.values())


def test_disk_counters_have_their_units() -> None:
    row = disk.parse((DATA / "diskstats-5.10").read_text(), "nvme0n1")

    assert row == {
        "disk.reads": 1000,
        "disk.read_bytes": 80000 * 512,
        "disk.writes": 2000,
        "disk.write_bytes": 160000 * 512,
        "disk.in_flight": 3,
        "disk.busy_s": 1.5,
        "disk.flushes": 77,
        "disk.flush_s": 5.4,
    }


def test_a_device_that_is_not_listed_is_none() -> None:
    assert disk.parse((DATA / "diskstats-5.10").read_text(), "sda") is None
