"""Control groups: found by controller on pure and hybrid hosts, read in both versions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.model.run import Missing
from pgdyno.sample.cgroup_files import Level, io_limits, levels_of
from pgdyno.sample.sampler import Row, Sampler, Snapshot, Subject
from pgdyno.sample.samplers import cgroups

HYBRID = """\
7:blkio:/
4:memory:/jobs/7966
2:cpuacct:/
1:cpu:/
0::/
"""
HYBRID_MOUNTS = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime shared:5 - cgroup cgroup rw,blkio
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
PURE = "0::/system.slice/postgresql.service\n"
PURE_MOUNTS = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"


@pytest.mark.parametrize(
    ("cgroup", "mounts", "controller", "version", "folders"),
    [
        (HYBRID, HYBRID_MOUNTS, "cpu", 1, ["cpu"]),
        (HYBRID, HYBRID_MOUNTS, "io", 1, ["blkio"]),
        (HYBRID, HYBRID_MOUNTS, "memory", 1, ["memory/jobs/7966", "memory/jobs", "memory"]),
        ("4:memory:/a\n0::/b\n", HYBRID_MOUNTS, "cpu", 2, ["unified/b", "unified"]),
        (PURE, PURE_MOUNTS, "memory", 2, ["system.slice/postgresql.service", "system.slice", ""]),
        # In a container: its own group is mounted, and named with a path of the host or without.
        ("3:cpu,cpuacct:/docker/12\n",
         "40 31 0:29 /docker/12 /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n",
         "cpu", 1, ["cpu,cpuacct"]),
        ("0::/\n", PURE_MOUNTS, "cpu", 2, [""]),
        # A mount point with a blank, as mountinfo writes it.
        ("0::/a\n", PURE_MOUNTS.replace("cgroup rw,nosuid", "c\\040g rw", 1), "io", 2, None),
        (PURE, "", "cpu", 2, []),
    ],
)  # fmt: skip
def test_each_controller_is_found_where_it_is(
    cgroup: str, mounts: str, controller: str, version: int, folders: list[str] | None
) -> None:
    root = Path("/sys/fs/cgroup")
    expected = [Path("/sys/fs/c g/a"), Path("/sys/fs/c g")]
    if folders is not None:
        expected = [root / folder for folder in folders]

    assert levels_of(cgroup, mounts, controller) == (version, expected)


def tree(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


VERSION_2 = {
    "fs/pg/db/cpu.stat": "usage_usec 9\nnr_periods 30\nnr_throttled 2\nthrottled_usec 1500000\n",
    "fs/pg/db/cpu.max": "max 100000\n",
    "fs/pg/db/cpu.pressure": "some avg10=0.00 total=3000000\nfull avg10=0.00 total=1000000\n",
    "fs/pg/db/memory.current": "5000\n",
    "fs/pg/db/memory.max": "max\n",
    "fs/pg/db/memory.high": "7000\n",
    "fs/pg/db/memory.events": "low 0\nhigh 99\nmax 99\noom 0\noom_kill 99\n",
    "fs/pg/db/memory.events.local": "low 0\nhigh 4\nmax 0\noom 0\noom_kill 0\n",
    "fs/pg/db/io.stat": "254:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n253:0 rbytes=5\n",
    "fs/pg/cpu.stat": "usage_usec 9\nnr_periods 10\nnr_throttled 1\nthrottled_usec 500000\n",
    "fs/pg/cpu.max": "150000 100000\n",
    "fs/pg/memory.max": "9000\n",
    "fs/pg/memory.high": "6000\n",
    "fs/pg/memory.events.local": "low 0\nhigh 1\nmax 3\noom 0\noom_kill 1\n",
    "fs/pg/io.max": "254:0 rbps=1048576 wbps=max riops=max wiops=500\n",
    "fs/cpu.stat": "usage_usec 9\n",
    "fs/pg/db/cgroup.events": "populated 1\n",
    "fs/pg/cgroup.events": "populated 1\n",
}
VERSION_1 = {
    "cpu/pg/cpu.stat": "nr_periods 30\nnr_throttled 2\nthrottled_time 1500000000\n",
    "cpu/pg/cpu.cfs_quota_us": "150000\n",
    "cpu/pg/cpu.cfs_period_us": "100000\n",
    "cpu/cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
    "memory/pg/db/memory.usage_in_bytes": "5000\n",
    "memory/pg/db/memory.limit_in_bytes": "9223372036854771712\n",
    "memory/pg/db/memory.failcnt": "3\n",
    "memory/pg/db/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
    "memory/pg/memory.usage_in_bytes": "7000\n",
    "memory/pg/memory.limit_in_bytes": "9000\n",
    "memory/memory.usage_in_bytes": "99000\n",
    "memory/memory.failcnt": "99\n",
    "cpu/release_agent": "",
    "memory/release_agent": "",
    "blkio/release_agent": "",
    "blkio/pg/blkio.throttle.io_service_bytes_recursive": "254:0 Read 10\n254:0 Write 20\n"
    "254:0 Sync 1\n253:0 Read 5\nTotal 36\n",
    "blkio/pg/blkio.throttle.io_serviced_recursive": "254:0 Read 1\n254:0 Write 2\nTotal 3\n",
    "blkio/pg/blkio.throttle.read_bps_device": "254:0 1048576\n",
    "blkio/pg/blkio.throttle.write_iops_device": "254:0 500\n",
}


def process(root: Path, pid: int, cgroup: str) -> None:
    tree(root, {f"proc/{pid}/cgroup": cgroup})


def host(root: Path, version: int) -> None:
    """A host of a version, with a server 7 in a group of its own, and us, 8, in none."""
    tree(root, VERSION_2 if version == 2 else VERSION_1)
    mounts = f"1 0 0:1 / {root}/fs rw - cgroup2 cgroup2 rw\n"
    if version == 1:
        mounts = "".join(
            f"1 0 0:1 / {root}/{one} rw - cgroup cgroup rw,{one}\n"
            for one in ("cpu", "memory", "blkio")
        )
    process(root, 7, "0::/pg/db\n" if version == 2 else "3:cpu:/pg\n2:memory:/pg/db\n1:blkio:/pg\n")
    process(root, 8, "0::/\n" if version == 2 else "3:cpu:/\n2:memory:/\n1:blkio:/\n")
    tree(root, {"proc/8/mountinfo": mounts})
    os.symlink("8", root / "proc/self")


def found(root: Path, postmaster: int | None = 7) -> tuple[Sampler, Snapshot]:
    both = cgroups.sampler(Subject(postmaster_pid=postmaster), root / "proc")
    assert isinstance(both, list)
    sampler, limits, *_ = both
    assert isinstance(sampler, Sampler)
    assert isinstance(limits, Snapshot)
    return sampler, limits


def of_server(row: Row) -> Row:
    return {
        name.removeprefix("cgroup."): value
        for name, value in row.items()
        if name.startswith("cgroup.")
    }


def test_version_2_adds_up_what_is_counted_and_holds_to_the_least_limit(tmp_path: Path) -> None:
    host(tmp_path, 2)

    sampler, _ = found(tmp_path)
    row = sampler.take()
    assert of_server(row) == {
        "throttled_s": 2.0,
        "periods": 40,
        "throttled_periods": 3,
        "cpu_limit": 1.5,
        "memory_bytes": 5000,
        "memory_limit_bytes": 9000,
        "memory_high_bytes": 6000,
        "memory_high_events": 5,
        "memory_max_events": 3,
        "oom_kills": 1,
        "read_bytes": 15,
        "write_bytes": 20,
        "reads": 1,
        "writes": 2,
        "psi.cpu.some_s": 3.0,
        "psi.cpu.full_s": 1.0,
    }
    columns = {column.name: column for column in sampler.columns}
    assert row.keys() <= columns.keys()
    assert columns["cgroup.throttled_s"].kind == "counter"
    assert columns["cgroup.memory_high_bytes"].kind == "gauge"
    assert columns["cgroup.cpu_limit"].unit == "CPUs"
    assert "client.cgroup.throttled_s" in columns  # another group than the server's


def test_version_1_tells_the_same_under_the_same_names(tmp_path: Path) -> None:
    host(tmp_path, 1)

    sampler, _ = found(tmp_path)
    assert of_server(sampler.take()) == {
        "throttled_s": 1.5,
        "periods": 30,
        "throttled_periods": 2,
        "cpu_limit": 1.5,
        "memory_bytes": 5000,
        "memory_limit_bytes": 9000,
        "memory_max_events": 3,
        "oom_kills": 1,
        "read_bytes": 15,
        "write_bytes": 20,
        "reads": 1,
        "writes": 2,
    }


@pytest.mark.parametrize(("version", "reasons"), [
    (1, ["control groups of version 1 do not tell them"]), (2, []),
])  # fmt: skip
def test_what_version_1_does_not_tell_is_said(
    tmp_path: Path, version: int, reasons: list[str]
) -> None:
    host(tmp_path, version)
    both = cgroups.sampler(Subject(postmaster_pid=7), tmp_path / "proc")
    assert isinstance(both, list)
    missing = [one for one in both if isinstance(one, Missing)]
    assert [one.reason for one in missing] == reasons
    assert all("memory.high" in one.name for one in missing)


@pytest.mark.parametrize("version", [1, 2])
def test_limits_that_are_set_are_told_with_their_device(tmp_path: Path, version: int) -> None:
    host(tmp_path, version)

    _, limits = found(tmp_path)
    rows = {tuple(row.values()) for row in limits.take()}
    expected = {
        ("server", "cpu", "", "max", "CPUs", 1.5),
        ("server", "memory", "", "max", "B", 9000),
        ("server", "io", "254:0", "read_bytes", "B/s", 1048576),
        ("server", "io", "254:0", "writes", "1/s", 500),
    }
    if version == 2:
        expected.add(("server", "memory", "", "high", "B", 6000))
    assert rows == expected


def test_limits_of_io_that_are_not_set_are_none(tmp_path: Path) -> None:
    tree(tmp_path, {"io.max": "254:0 rbps=max wbps=max riops=max wiops=max\n"})

    assert list(io_limits(Level(tmp_path), 2)) == []
    assert list(io_limits(Level(tmp_path), 1)) == []


def test_a_server_in_our_group_is_told_once(tmp_path: Path) -> None:
    host(tmp_path, 2)
    process(tmp_path, 8, "0::/pg/db\n")

    sampler, limits = found(tmp_path)
    assert {column.name.partition(".")[0] for column in sampler.columns} == {"cgroup"}
    assert {row["group"] for row in limits.take()} == {"server"}


def test_without_a_server_of_ours_the_client_is_told(tmp_path: Path) -> None:
    host(tmp_path, 2)

    sampler, _ = found(tmp_path, None)
    assert {column.name.partition(".")[0] for column in sampler.columns} == {"client"}


def test_counters_go_on_where_a_server_is_moved_to(tmp_path: Path) -> None:
    host(tmp_path, 2)
    sampler, _ = found(tmp_path)
    before = of_server(sampler.take())
    tree(tmp_path, {
        "fs/other/cgroup.events": "populated 1\n",
        "fs/other/cpu.stat": "usage_usec 1\nnr_periods 7\nnr_throttled 1\nthrottled_usec 100000\n",
        "fs/other/cpu.max": "20000 100000\n",
    })  # fmt: skip

    process(tmp_path, 7, "0::/other\n")
    moved = of_server(sampler.take())
    assert moved["throttled_s"] == before["throttled_s"]
    assert moved["cpu_limit"] == 0.2
    assert "memory_limit_bytes" not in moved
    (tmp_path / "fs/other/cpu.stat").write_text(
        "nr_periods 9\nnr_throttled 3\nthrottled_usec 900000\n"
    )
    later = of_server(sampler.take())
    assert later["throttled_s"] == pytest.approx(before["throttled_s"] + 0.8)
    assert later["throttled_periods"] == before["throttled_periods"] + 2


@pytest.mark.parametrize("version", [1, 2])
def test_the_root_of_all_groups_runs_into_nothing(tmp_path: Path, version: int) -> None:
    """What it tells is the whole host's; who is moved from there counts from zero."""
    host(tmp_path, version)
    elsewhere = (tmp_path / "proc/7/cgroup").read_text()
    process(tmp_path, 7, (tmp_path / "proc/8/cgroup").read_text())

    sampler, limits = found(tmp_path)
    before = of_server(sampler.take())
    assert set(before.values()) == {0}
    assert {"throttled_s", "memory_max_events"} <= before.keys()
    assert not limits.take()
    process(tmp_path, 7, elsewhere)
    after = of_server(sampler.take())
    assert after["throttled_s"] == after["memory_max_events"] == 0
    assert after["cpu_limit"] == 1.5


@pytest.mark.parametrize("version", [1, 2])
def test_a_group_that_is_not_seen_from_here_is_not_known_rather_than_free(
    tmp_path: Path, version: int
) -> None:
    host(tmp_path, version)
    groups = {1: "3:cpu:/../x\n2:memory:/docker/12\n1:blkio:/docker/12\n", 2: "0::/../x\n"}
    process(tmp_path, 7, groups[version])

    sampler, limits = found(tmp_path)
    assert of_server(sampler.take()) == {}
    assert not limits.take()


def test_a_kernel_without_groups_has_no_sampler(tmp_path: Path) -> None:
    assert cgroups.sampler(Subject(), tmp_path) is None
