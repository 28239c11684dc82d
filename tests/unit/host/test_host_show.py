"""What is shown of a machine made of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.host import processors
from pgdyno.host.advice import Line, Part, folded
from pgdyno.host.huge_pages import Count
from pgdyno.host.knob_location import knob_location
from pgdyno.host.network import halves
from pgdyno.host.processors import clock_reading_ns
from pgdyno.host.show import NOBODY, Asked, machine
from pgdyno.model.errors import TargetError
from pgdyno.shell import OsUser
from tests.data.ethtool import ETHTOOL


def found(tree: Path, asked: Asked = NOBODY) -> dict[str, dict[str, Line]]:
    return {part.title: {line.what: line for line in part.lines} for part in machine(tree, asked)}


def test_each_part_is_shown(tree: Path) -> None:
    parts = found(tree)
    processors = parts["Processors"]
    assert processors["model"].value == "Xeon"
    assert processors["NUMA"].value == "1 node; node0: CPUs 0-3, 8.00 GiB"
    assert processors["virtualisation"].value == "a guest (QEMU)"
    assert processors["stolen by others"].value == "10.00% of the time since the start"
    memory = parts["Memory"]
    assert memory["memory"].value == "8.00 GiB"
    assert memory["vm.nr_hugepages"].value == "8"
    assert memory["vm.nr_hugepages"].note == "huge pages of 2.00 MiB, 8 free, 2 of them promised"
    assert memory["huge pages of 1.00 GiB"].value == "2"
    (disk,) = parts["Block devices"].values()
    assert disk.value == "1000 MiB, does not rotate, blocks of 512/4096 B"
    (card,) = parts["Network cards"].values()
    assert card.value == "up, 10,000 Mbit/s, queues: 2 in, 1 out"


def test_the_speed_is_told_or_who_decides_it(tree: Path) -> None:
    speed = found(tree)["Speed of the CPUs"]
    assert speed["speed now"].value == "2,100 MHz"
    assert speed["scaling_governor@policy0"].advised == "performance"
    (tree / "sys/devices/system/cpu/cpufreq").rename(tree / "elsewhere")
    speed = found(tree)["Speed of the CPUs"]
    assert speed["governor"].value == "none here"


def test_values_stand_beside_what_is_advised(tree: Path) -> None:
    parts = found(tree)
    files = parts["File systems"]
    assert (files["/"].advised, files["/data"].advised) == ("noatime", "")
    assert set(files) == {"/", "/data"}, "no database lies on tmpfs"
    thp = parts["Transparent huge pages"]["transparent_hugepage/enabled"]
    assert (thp.value, thp.advised, thp.as_advised) == ("always", "madvise", False)
    assert thp.why
    assert parts["Clock"]["current_clocksource"].advised == "tsc"
    assert parts["Transparent huge pages"]["transparent_hugepage/defrag"].as_advised


def test_the_advice_is_that_for_the_kind_of_device(tree: Path) -> None:
    queues = found(tree)["Queues of block devices"]
    assert queues["queue/scheduler@vda"].as_advised
    (tree / "sys/block/vda").rename(tree / "sys/block/nvme0n1")
    assert knob_location("queue/scheduler@nvme0n1", tree).advised() == "none"
    (tree / "sys/block/nvme0n1").rename(tree / "sys/block/dm-0")
    assert knob_location("queue/scheduler@dm-0", tree).advised() is None
    (tree / "sys/block/dm-0").rename(tree / "sys/block/sda")
    (tree / "sys/block/sda/queue/scheduler").write_text("[none]\n")
    assert knob_location("queue/scheduler@sda", tree).advised() is None, "it cannot be chosen here"


def test_what_is_dangerous_of_a_mount_is_told(tree: Path) -> None:
    (tree / "proc/mounts").write_text(
        "/dev/vda1 / ext4 rw,noatime,barrier=0,discard 0 0\n/dev/vda1 /etc/hosts ext4 rw 0 0\n"
    )
    (tree / "etc").mkdir()
    (tree / "etc/hosts").touch()
    (part,) = [part for part in machine(tree) if part.title == "File systems"]
    assert [(line.what, line.value, line.advised) for line in part.lines] == [
        ("/", "ext4 on /dev/vda1: rw,noatime,barrier=0,discard", ""),
        ("", "barrier = 0", "without it"),
        ("", "discard", "without it"),
    ]


def test_queues_of_cards_are_asked_of_ethtool(tree: Path) -> None:
    asked = Asked(ethtool=lambda option, card: ETHTOOL[option] if card == "eth0" else "")
    lines = found(tree, asked)["Network queues"]
    channels = lines["channels combined@eth0"]
    assert (channels.value, channels.note) == ("8", "at most 32")
    assert 1 <= int(channels.advised) <= 32
    assert (lines["ring rx@eth0"].value, lines["ring rx@eth0"].note) == ("256", "at most 1024")
    assert lines["coalesce rx-usecs@eth0"].value == "not reported by the driver"
    assert lines["offload gro@eth0"].as_advised
    assert lines["rps_cpus@eth0:1"].search
    assert "ethtool" not in lines


def test_a_missing_ethtool_is_told(tree: Path) -> None:
    (line,) = [line for what, line in found(tree)["Network queues"].items() if what == "ethtool"]
    assert line.value == "not installed"
    assert "rings" in line.note


def test_ethtool_without_two_halves() -> None:
    assert halves("Features for eth0:\ngeneric-receive-offload: on [fixed]\n") == (
        {}, {"Features for eth0": "", "generic-receive-offload": "on [fixed]"}
    )  # fmt: skip


def test_interrupts_are_told_by_device(tree: Path) -> None:
    lines = found(tree)["Interrupts"]
    assert lines["irqbalance"].value == "runs"
    assert lines["of eth0"].value == "2, served by 1 of 2 CPUs, most by CPU 0: 100%"
    assert "of vda" not in lines, "its interrupts are not told"


def test_the_cost_of_the_clock_is_shown_where_it_was_measured(tree: Path) -> None:
    assert "cost of a reading" not in found(tree)["Clock"]
    quick = found(tree, Asked(clock_ns=31.93))["Clock"]["cost of a reading"]
    assert (quick.value, quick.advised) == ("31.9 ns", "")
    slow = found(tree, Asked(clock_ns=800.0))["Clock"]["cost of a reading"]
    assert slow.advised == "less than 100 ns"


def test_the_cost_of_the_clock_is_read_of_pg_test_timing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = OsUser("us", os.geteuid(), os.getegid())
    monkeypatch.setattr(processors, "postgres_user", lambda: ours)
    program = tmp_path / "pg_test_timing"
    for told, cost in (("Per loop", 38.05), ("Average loop", 31.9)):  # up to 18, and later
        program.write_text(f'#!/bin/sh\necho "{told} time including overhead: {cost} ns"\n')
        program.chmod(0o755)
        assert clock_reading_ns(program) == cost
    program.write_text("#!/bin/sh\necho hello\n")
    with pytest.raises(TargetError, match="pg_test_timing printed no time per loop: 'hello"):
        clock_reading_ns(program)


def test_huge_pages_of_servers_stand_beside_what_is_kept(tree: Path) -> None:
    servers = (Count("/a", 7, "by postgres -C"), Count("/b", 1, "by SHOW"))
    line = found(tree, Asked(servers=servers))["Memory"]["vm.nr_hugepages"]
    assert (line.value, line.advised, line.as_advised) == ("8", "8", True)
    assert line.why == "7 for /a, by postgres -C; 1 for /b, by SHOW"


def test_a_machine_that_tells_nothing_is_shown_without_it(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 1024 kB\n")
    parts = machine(tmp_path)
    assert [part.title for part in parts] == ["Processors", "Memory"]
    assert all(isinstance(part, Part) for part in parts)


def test_limits_of_cgroups_are_read_from_the_own_group_up(tree: Path) -> None:
    assert found(tree)["Processors"]["limit of the cgroup"].value == "1.5 CPUs"  # version 2
    groups = tree / "sys/fs/cgroup"
    old = groups / "cpu/a"
    old.mkdir(parents=True)
    (old / "cpu.cfs_quota_us").write_text("50000\n")
    (old / "cpu.cfs_period_us").write_text("100000\n")
    assert found(tree)["Processors"]["limit of the cgroup"].value == "0.5 CPUs"
    (groups / "memory/a").mkdir(parents=True)
    (groups / "memory/memory.limit_in_bytes").write_text("9223372036854771712\n")  # none
    assert "limit of the cgroup" not in found(tree)["Memory"]
    (groups / "memory/a/memory.limit_in_bytes").write_text(f"{4 << 30}\n")
    (groups / "a/hugetlb.2MB.max").write_text(f"{1 << 30}\n")
    memory = found(tree)["Memory"]
    assert memory["limit of the cgroup"].value == "4.00 GiB"
    assert memory["huge pages of the cgroup"].value == "at most 1.00 GiB"


def test_devices_of_which_the_same_is_said_share_a_line() -> None:
    lines = [Line(f"queue/nomerges@sd{letter}", "0") for letter in "abcdef"]
    other = [Line("queue/nomerges@sdg", "2"), Line("swap", "0 B")]
    assert folded(Part("Queues", (*lines, *other))).lines == (
        Line("queue/nomerges@sda, sdb, sdc, sdd and 2 more", "0"), *other
    )  # fmt: skip
