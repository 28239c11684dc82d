"""Parsers of /proc on saved files of kernels from the oldest supported to the newest."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pgdyno.model.run import Missing
from pgdyno.sample import proc_stat
from pgdyno.sample.pressure_text import parse_pressure
from pgdyno.sample.sampler import Sampler, Subject
from pgdyno.sample.samplers import disk, frequency, host_cpu, memory, network, pressure

DATA = Path(__file__).parents[2] / "data" / "proc"
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def saved(name: str) -> str:
    return (DATA / name).read_text()


def names_of(sampler: object) -> dict[str, tuple[str, str]]:
    """Unit and kind of each column."""
    assert isinstance(sampler, Sampler)
    return {column.name: (column.unit, column.kind) for column in sampler.columns}


def _pressure(text: str) -> Any:
    return parse_pressure("io", text)


NEWER = {  # what a kernel to come may add at the end of each line, and a line of its own
    "stat-6.18": (proc_stat.parse_host, " 17", "soirq 5 6"),
    "meminfo-6.18": (memory.parse_meminfo, "", "HugeZero:  17 kB"),
    "vmstat-6.18": (memory.parse_vmstat, "", "nr_new_kind 17"),
    "diskstats-6.18": (disk.parse, " 17 18", ""),
    "net-dev-6.18": (network.parse_dev, " 17", ""),
    "snmp-6.18": (network.parse_tcp, "", "Quic: Streams Drops\nQuic: 1 2"),
    "softnet-6.18": (network.parse_softnet, " 00000011", ""),
    "psi": (_pressure, "", "none avg10=1.00 total=17"),
}


@pytest.mark.parametrize("name", NEWER)
def test_what_a_newer_kernel_adds_changes_nothing(name: str) -> None:
    parse, words, line = NEWER[name]
    text = PSI if name == "psi" else saved(name)
    longer = "".join(f"{one}{words}\n" for one in text.splitlines()) + (f"{line}\n" if line else "")
    assert longer != text
    assert parse(longer) == parse(text)


def test_host_cpu_times_are_seconds_by_state_and_by_cpu() -> None:
    row = proc_stat.parse_host(saved("stat-5.10"))

    assert row["cpu.user_s"] == 10132153 / TICKS
    assert row["cpu.idle_s"] == 46828483 / TICKS
    assert row["cpu.steal_s"] == 175628 / TICKS
    assert row["cpu.0.busy_s"] == (1393280 + 32966 + 572056 + 17875 + 23933) / TICKS
    assert row["host.context_switches"] == 1990473
    assert row["host.interrupts"] == 8688370
    assert "host.runnable" not in row  # this file does not tell


def test_the_newest_kernels_stat_is_understood() -> None:
    row = proc_stat.parse_host(saved("stat-6.18"))

    assert row["cpu.idle_s"] > 0
    assert {"cpu.0.busy_s", "cpu.1.busy_s"} <= row.keys()
    assert (row["host.runnable"], row["host.blocked"], row["host.forks"]) == (6, 1, 19352)


def test_a_file_without_cpus_is_refused() -> None:
    with pytest.raises(ValueError, match="no line `cpu`"):
        proc_stat.parse_host("ctxt 5\n")


def test_a_cpu_that_is_switched_off_has_no_samples(tmp_path: Path) -> None:
    path = tmp_path / "stat"
    path.write_text(saved("stat-6.18"))
    sampler = host_cpu.sampler(Subject(), path)
    assert names_of(sampler)["cpu.1.busy_s"] == ("s", "counter")
    assert names_of(sampler)["host.runnable"] == ("1", "gauge")

    path.write_text("\n".join(x for x in saved("stat-6.18").splitlines() if x[:4] != "cpu1"))
    assert "cpu.1.busy_s" not in sampler.take()
    assert "cpu.0.busy_s" in sampler.take()


@pytest.mark.parametrize(
    ("kernel", "device", "lacking"),
    [
        ("4.14", "cciss/c0d0", {"discards", "discard_bytes", "discard_s", "flushes", "flush_s"}),
        ("4.18", "sda", {"flushes", "flush_s"}),
        ("5.10", "nvme0n1", set()),
        ("6.18", "vda", set()),
    ],
)
def test_disks_have_what_their_kernel_counts(kernel: str, device: str, lacking: set[str]) -> None:
    row = disk.parse(saved(f"diskstats-{kernel}"))[device]

    every = disk.parse(saved("diskstats-6.18"))["vda"].keys()
    assert row.keys() == every - lacking
    assert all(value >= 0 for value in row.values())


def test_disk_counters_have_their_units() -> None:
    assert disk.parse(saved("diskstats-5.10"), ["nvme0n1"]) == {
        "nvme0n1": {
            "reads": 1000,
            "read_bytes": 80000 * 512,
            "read_s": 0.4,
            "writes": 2000,
            "write_bytes": 160000 * 512,
            "write_s": 0.9,
            "in_flight": 3,
            "busy_s": 1.5,
            "weighted_s": pytest.approx(1.3),
            "discards": 0,
            "discard_bytes": 0,
            "discard_s": 0,
            "flushes": 77,
            "flush_s": pytest.approx(5.4),
        }
    }


def disks(folder: Path, kernel: str, data_on: str | None = None) -> Any:
    """The sampler of a host that has these devices."""
    (folder / "class/block/nvme0n1p1").mkdir(parents=True)
    (folder / "class/block/nvme0n1p1/partition").write_text("1")
    (folder / "diskstats").write_text(saved(f"diskstats-{kernel}"))
    below = folder.stat().st_dev
    if data_on is not None:
        (folder / f"devices/{data_on}").mkdir(parents=True)
        (folder / "dev/block").mkdir(parents=True)
        number = f"{os.major(below)}:{os.minor(below)}"
        (folder / "dev/block" / number).symlink_to(folder / f"devices/{data_on}")
    subject = Subject(data_folder=folder if data_on else None)
    return disk.sampler(subject, folder / "diskstats", folder)


def test_every_device_in_use_is_sampled_and_that_of_the_data_is_named(tmp_path: Path) -> None:
    sampler = disks(tmp_path, "5.10", data_on="nvme0n1p1")

    assert sampler is not None
    columns = names_of(sampler)
    assert {name.rpartition(".")[0] for name in columns} == {"device.nvme0n1", "disk"}
    assert columns["device.nvme0n1.read_s"] == ("s", "counter")
    assert columns["disk.write_bytes"] == ("B", "counter")
    assert columns["disk.in_flight"] == ("1", "gauge")
    row = sampler.take()
    assert row.keys() == columns.keys()
    assert (row["device.nvme0n1.reads"], row["disk.reads"]) == (1000, 10)


def test_data_on_no_device_are_said_to_be_so(tmp_path: Path) -> None:
    """What a transaction reads and writes is not known then, and no dash says why."""
    sampler, missing = disks(tmp_path, "5.10", data_on="0:43")

    assert {name.rpartition(".")[0] for name in names_of(sampler)} == {"device.nvme0n1"}
    assert isinstance(missing, Missing)
    assert missing.name == "reads and writes of the device below the data"
    assert "PGDYNO_HOME or the `folder` of the stage" in missing.remedy
    (tmp_path / "diskstats").write_text("   2       0 fd0 0 0 0 0 0 0 0 0 0 0 0\n")
    subject = Subject(data_folder=tmp_path)
    assert disk.sampler(subject, tmp_path / "diskstats", tmp_path) == [missing]


def test_a_device_that_goes_leaves_the_others(tmp_path: Path) -> None:
    sampler = disks(tmp_path, "6.18")
    assert sampler is not None
    assert {name.rpartition(".")[0] for name in names_of(sampler)} == {"device.vda"}

    (tmp_path / "diskstats").write_text(saved("diskstats-5.10"))
    assert sampler.take() == {}


SDA = "   8       0 sda {} 0 {} 400 {} 0 {} 900 0 1500 1300\n"


@pytest.mark.parametrize(
    "looks",
    [[(900, 8000, 900, 8000), (950, 80, 10, 80)], [(900, 8000, 900, 8000), None, (999,) * 4]],
    ids=["at once", "later, and outgrown"],
)
def test_another_device_under_the_name_of_one_is_not_it(
    tmp_path: Path, looks: list[tuple[int, ...] | None]
) -> None:
    (tmp_path / "diskstats").write_text(SDA.format(*looks[0] or ()))
    found = disk.sampler(Subject(), tmp_path / "diskstats", tmp_path)
    assert isinstance(found, Sampler)
    assert found.take()["device.sda.reads"] == 900

    for look in looks[1:]:
        (tmp_path / "diskstats").write_text(SDA.format(*look) if look else "")
        assert found.take() == {}, "of no counter can be told what it grew by"
    (tmp_path / "diskstats").write_text(SDA.format(1000, 9000, 1000, 9000))
    assert found.take() == {}


def test_times_that_ran_over_are_still_those_of_the_device(tmp_path: Path) -> None:
    (tmp_path / "diskstats").write_text(SDA.replace("400", "4294967295").format(9, 9, 9, 9))
    found = disk.sampler(Subject(), tmp_path / "diskstats", tmp_path)
    assert isinstance(found, Sampler)
    found.take()
    (tmp_path / "diskstats").write_text(SDA.format(9, 9, 9, 9))
    assert found.take()["device.sda.read_s"] == pytest.approx(0.4)


def test_another_interface_under_the_name_of_one_is_not_it(tmp_path: Path) -> None:
    (tmp_path / "dev").write_text(saved("net-dev-6.18"))
    found = network.sampler(Subject(), tmp_path)
    assert found is not None
    assert "net.eth0.rx_bytes" in found.take()
    lines = saved("net-dev-6.18").splitlines(keepends=True)
    (tmp_path / "dev").write_text("".join(line for line in lines if "eth0" not in line))
    assert "net.eth0.rx_bytes" not in found.take()
    (tmp_path / "dev").write_text(saved("net-dev-6.18"))
    row = found.take()
    assert "net.eth0.rx_bytes" not in row
    assert "net.lo.rx_bytes" in row


def test_a_host_without_devices_has_no_such_sampler(tmp_path: Path) -> None:
    (tmp_path / "diskstats").write_text("   2       0 fd0 0 0 0 0 0 0 0 0 0 0 0\n")

    assert disk.sampler(Subject(), tmp_path / "diskstats", tmp_path) is None


def test_memory_is_in_bytes_and_an_old_kernel_has_what_it_tells() -> None:
    row = memory.parse_meminfo(saved("meminfo-4.18"))

    assert row["memory.dirty_bytes"] == 4096 * 1024
    assert row["memory.writeback_bytes"] == 12 * 1024
    assert row["memory.huge_total_bytes"] == 1100 * 2048 * 1024
    assert row["memory.huge_reserved_bytes"] == 30 * 2048 * 1024
    assert row["memory.swap_free_bytes"] == 2093820 * 1024
    assert "memory.shared_huge_bytes" not in row
    assert row.keys() < memory.parse_meminfo(saved("meminfo-6.18")).keys()


def test_what_reclaiming_costs_is_counted_in_old_words_and_new() -> None:
    row = memory.parse_vmstat(saved("vmstat-4.18"))

    assert row["vm.allocation_stalls"] == 1 + 5 + 7
    assert row["vm.refaulted_pages"] == 44
    assert row["vm.major_faults"] == 321
    assert (row["vm.swap_in_pages"], row["vm.swap_out_pages"]) == (17, 19)
    assert row["memory.dirty_limit_bytes"] == 400000 * PAGE
    newest = memory.parse_vmstat(saved("vmstat-6.18"))
    assert newest.keys() == row.keys()
    assert newest["vm.refaulted_pages"] == int(
        saved("vmstat-6.18").split("workingset_refault_file ")[1].split()[0]
    )


def test_levels_of_memory_are_gauges_and_the_rest_is_counted(tmp_path: Path) -> None:
    for name in ("meminfo", "vmstat"):
        (tmp_path / name).write_text(saved(f"{name}-4.18"))

    columns = names_of(memory.sampler(Subject(), tmp_path))
    assert columns["memory.dirty_bytes"] == ("B", "gauge")
    assert columns["vm.major_faults"] == ("1", "counter")


@pytest.mark.parametrize("kernel", ["4.18", "6.18"])
def test_tcp_is_read_by_its_words(kernel: str) -> None:
    row = network.parse_tcp(saved(f"snmp-{kernel}")) | network.parse_tcp(saved(f"netstat-{kernel}"))

    assert row["tcp.retransmits"] == {"4.18": 21, "6.18": 65}[kernel]
    assert row["tcp.listen_overflows"] == {"4.18": 3, "6.18": 0}[kernel]
    assert ("tcp.receive_queue_drops" in row) == (kernel == "6.18")


def test_interfaces_in_use_are_sampled(tmp_path: Path) -> None:
    for name, file in (("dev", "net-dev"), ("snmp", "snmp"), ("softnet_stat", "softnet")):
        (tmp_path / name).write_text(saved(f"{file}-6.18"))

    sampler = network.sampler(Subject(), tmp_path)
    assert sampler is not None
    columns, row = names_of(sampler), sampler.take()
    assert {name.split(".")[1] for name in columns if name.startswith("net.")} == {
        "lo", "eth0", "softnet_drops", "softnet_squeezed"
    }  # fmt: skip
    assert columns["net.eth0.rx_bytes"] == ("B", "counter")
    counted = saved("net-dev-6.18").split("eth0:")[1].split()
    fields = ("rx_bytes", "rx_packets", "rx_errors", "rx_drops")
    assert [row[f"net.eth0.{field}"] for field in fields] == [int(n) for n in counted[:4]]
    assert row["net.eth0.tx_bytes"] == int(counted[8])
    assert "tcp.listen_drops" not in row  # there is no netstat here
    assert network.sampler(Subject(), tmp_path / "nothing") is None


@pytest.mark.parametrize(("told", "speed"), [("10000\n", 1.25e9), ("-1\n", None), ("", None)])
def test_a_link_has_the_speed_that_it_tells(tmp_path: Path, told: str, speed: float | None) -> None:
    (tmp_path / "dev").write_text(saved("net-dev-6.18"))
    (tmp_path / "eth0").mkdir()
    (tmp_path / "eth0" / "speed").write_text(told)
    sampler = network.sampler(Subject(), tmp_path, tmp_path)
    assert sampler is not None
    name = "net.eth0.speed_bytes_per_s"
    assert sampler.take().get(name) == speed
    assert names_of(sampler).get(name) == (("B/s", "gauge") if speed else None)
    (tmp_path / "dev").write_text("\n".join(saved("net-dev-6.18").splitlines()[:2]))
    assert name not in sampler.take(), "an interface that is gone has none"


def test_packets_that_found_a_full_queue_are_added_up_over_the_cpus() -> None:
    text = "000681dc 00000002 0000000a 0 0\n0007951e 00000011 00000001 0 0\n"

    assert network.parse_softnet(text) == {"net.softnet_drops": 19, "net.softnet_squeezed": 11}


@pytest.mark.parametrize("number", ["{}", ""], ids=["since 5.10", "before"])
def test_what_a_cpu_dropped_before_it_was_switched_on_is_no_growth(
    tmp_path: Path, number: str
) -> None:
    def told(*cpus: int) -> None:
        line = f"00000001 00000002 00000003{' 00000000' * 9} {number}\n"
        (tmp_path / "softnet_stat").write_text("".join(map(line.format, cpus)))

    (tmp_path / "dev").write_text(saved("net-dev-6.18"))
    told(0, 1)
    sampler = network.sampler(Subject(), tmp_path)
    assert sampler is not None
    assert sampler.take()["net.softnet_drops"] == 4
    told(0, 1, 2)
    assert "net.softnet_drops" not in sampler.take()
    told(0, 2)
    assert ("net.softnet_drops" in sampler.take()) == (not number), "it is another CPU"
    told(0, 1)
    assert sampler.take()["net.softnet_drops"] == 4


PSI = (
    "some avg10=32.48 avg60=32.37 avg300=29.98 total=170904473\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=250000\n"
)


def test_pressure_is_seconds_of_some_and_full() -> None:
    assert parse_pressure("io", PSI) == {"psi.io.some_s": 170.904473, "psi.io.full_s": 0.25}
    assert parse_pressure("cpu", PSI.splitlines()[0]) == {"psi.cpu.some_s": 170.904473}


def test_a_kernel_before_5_13_has_no_full_pressure_of_cpu(tmp_path: Path) -> None:
    for name, text in (("cpu", PSI.splitlines()[0]), ("io", PSI), ("memory", PSI)):
        (tmp_path / name).write_text(text)

    columns = names_of(pressure.sampler(Subject(), tmp_path))
    assert set(columns) == {
        "psi.cpu.some_s", "psi.io.some_s", "psi.io.full_s", "psi.memory.some_s",
        "psi.memory.full_s",
    }  # fmt: skip
    (tmp_path / "cpu").write_text(PSI)  # later ones tell a zero of the whole host
    assert set(names_of(pressure.sampler(Subject(), tmp_path))) == set(columns)


def test_a_kernel_without_pressure_says_so(tmp_path: Path) -> None:
    missing = pressure.sampler(Subject(), tmp_path)

    assert isinstance(missing, Missing)
    assert "psi=1" in missing.remedy


def test_clocks_and_temperatures_where_there_are_any(tmp_path: Path) -> None:
    assert frequency.sampler(Subject(), tmp_path) is None
    for cpu, khz in ((0, 2_400_000), (1, 1_200_000)):
        folder = tmp_path / f"devices/system/cpu/cpu{cpu}"
        (folder / "cpufreq").mkdir(parents=True)
        (folder / "cpufreq/scaling_cur_freq").write_text(f"{khz}\n")
        (folder / "thermal_throttle").mkdir()
        (folder / "thermal_throttle/core_throttle_count").write_text(f"{cpu + 3}\n")
    for zone, kind, heat in ((0, "acpitz", "27800"), (3, "x86_pkg_temp", "61000")):
        folder = tmp_path / f"class/thermal/thermal_zone{zone}"
        folder.mkdir(parents=True)
        (folder / "type").write_text(f"{kind}\n")
        (folder / "temp").write_text(f"{heat}\n")

    sampler = frequency.sampler(Subject(), tmp_path)
    assert sampler is not None
    assert sampler.take() == {
        "cpu.frequency_hz": 1.8e9,
        "cpu.frequency_min_hz": 1.2e9,
        "cpu.thermal_throttles": 7,
        "temperature.acpitz.0": 27.8,
        "temperature.x86_pkg_temp.3": 61.0,
    }
    assert names_of(sampler)["temperature.acpitz.0"] == ("°C", "gauge")
    assert names_of(sampler)["cpu.thermal_throttles"] == ("1", "counter")
    (tmp_path / "devices/system/cpu/cpu1/cpufreq/scaling_cur_freq").write_text("<unknown>\n")
    assert sampler.take()["cpu.frequency_min_hz"] == 2.4e9
    (tmp_path / "devices/system/cpu/cpu1/thermal_throttle/core_throttle_count").unlink()
    assert "cpu.thermal_throttles" not in sampler.take(), "a part of a sum is not the sum"


def test_files_of_many_cpus_are_not_kept_open(tmp_path: Path) -> None:
    """Three of each of 512 CPUs are more than the 1,024 that a process may have."""
    for cpu in range(8):
        for name in ("cpufreq/scaling_cur_freq", "thermal_throttle/core_throttle_count"):
            path = tmp_path / f"devices/system/cpu/cpu{cpu}" / name
            path.parent.mkdir(parents=True)
            path.write_text("7\n")
    before = len(os.listdir("/proc/self/fd"))

    sampler = frequency.sampler(Subject(), tmp_path)
    assert sampler is not None
    assert sampler.take()["cpu.thermal_throttles"] == 56
    assert len(os.listdir("/proc/self/fd")) == before
