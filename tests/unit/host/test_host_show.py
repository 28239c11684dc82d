"""What is shown of a machine made of files."""

from __future__ import annotations

from pathlib import Path

from pgdyno.host.show import Line, Part, machine


def found(tree: Path) -> dict[str, dict[str, Line]]:
    return {part.title: {line.what: line for line in part.lines} for part in machine(tree)}


def test_each_part_is_shown(tree: Path) -> None:
    parts = found(tree)
    processors = parts["Processors"]
    assert processors["model"].value == "Xeon"
    assert processors["virtualisation"].value == "a guest (QEMU)"
    assert processors["stolen by others"].value == "10.00% of the time since the start"
    assert processors["limit of the cgroup"].value == "1.5 CPUs"
    memory = parts["Memory"]
    assert memory["memory"].value == "8.00 GiB"
    assert memory["huge pages"].value == "8 of 2.00 MiB, 8 free, 2 of them promised"
    (disk,) = parts["Block devices"].values()
    assert disk.value == "1000 MiB, does not rotate, blocks of 512/4096 bytes, write back"
    assert parts["Network"]["eth0"].value == "up, mtu 1500, queues: 1 in, 1 out"


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


def test_a_machine_that_tells_nothing_is_shown_without_it(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 1024 kB\n")
    parts = machine(tmp_path)
    assert [part.title for part in parts] == ["Processors", "Memory"]
    assert all(isinstance(part, Part) for part in parts)


def test_version_1_of_cgroups_is_read(tree: Path) -> None:
    (tree / "sys/fs/cgroup/cpu.max").unlink()
    folder = tree / "sys/fs/cgroup/cpu"
    folder.mkdir()
    (folder / "cpu.cfs_quota_us").write_text("50000\n")
    (folder / "cpu.cfs_period_us").write_text("100000\n")
    assert found(tree)["Processors"]["limit of the cgroup"].value == "0.5 CPUs"
