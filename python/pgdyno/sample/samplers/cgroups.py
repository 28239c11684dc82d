"""Limits of the control groups of the server and of the client, and how often they were run into.

`cgroup.throttled_s`: the group could not run since its share of CPU was used up, added up over the
CPUs on which that was so, so that it may be more than the time that went by;
`cgroup.memory_high_events`: it was made to wait for memory to be reclaimed. `cgroup` is the
server's, where that is ours; `client.cgroup` is that of pgdyno and its driver, where it is another,
or the only one. A group that the process was moved to counts from where the one before ended.
A group that is not mounted here, as that of a server in another container, has no samples. Limits
that are not set have none either; all that are set stand in the snapshot `cgroup_limits`. See
`cgroup_files` for what versions 1 and 2 tell. Cost: 190 µs beside a full load, for 8 files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pgdyno.model.run import Missing
from pgdyno.sample.cgroup_files import (
    CONTROLLERS,
    GAUGES,
    NOTHING,
    READERS,
    Level,
    can_limit,
    io_limits,
    levels_of,
    together,
)
from pgdyno.sample.kernel_file import KernelFile
from pgdyno.sample.sampler import Column, Found, Label, Row, Sampler, Snapshot, SnapshotRow, Subject

_NAMES = (
    "throttled_s", "periods", "throttled_periods", "cpu_limit", "memory_bytes",
    "memory_limit_bytes", "memory_high_bytes", "memory_high_events", "memory_max_events",
    "oom_kills", "read_bytes", "write_bytes", "reads", "writes",
    *(f"psi.{resource}.{kind}_s" for resource in CONTROLLERS for kind in ("some", "full")),
)  # fmt: skip
_UNITS = {"s": "s", "bytes": "B"}
_LIMITS = (
    Label("group"), Label("resource"), Label("device"), Label("limit"), Label("unit"),
    Column("value", "", "gauge"),
)  # fmt: skip
_OF_ROW = {  # column -> resource, limit, unit
    "cpu_limit": ("cpu", "max", "CPUs"),
    "memory_limit_bytes": ("memory", "max", "B"),
    "memory_high_bytes": ("memory", "high", "B"),
}

_OF_VERSION_2 = Missing(
    "pressure of control groups, and how often memory.high held one back",
    "control groups of version 1 do not tell them",
    "Boot the host with systemd.unified_cgroup_hierarchy=1.",
)


class _Groups:
    """Of one process, wherever it is moved to."""

    def __init__(self, proc: Path, pid: int) -> None:
        self._cgroup = KernelFile(proc / str(pid) / "cgroup")
        self._mountinfo = proc / "self" / "mountinfo"
        self._where = ""
        self._levels: list[tuple[str, int, list[Level]]] = []
        self._before: Row = {}  # counted in groups that it was moved from
        self._last: Row = {}

    def find(self) -> str:
        """Where it is; looked up anew when it was moved."""
        if (where := self._cgroup.text()) != self._where:
            self._where = where
            mountinfo = self._mountinfo.read_text()
            self._levels = []
            for controller in CONTROLLERS:
                version, folders = levels_of(where, mountinfo, controller)
                if not folders or not folders[0].is_dir():
                    continue  # the controller is not there, or the group is not seen from here
                levels = [Level(one) for one in folders if can_limit(version, one)]
                self._levels.append((controller, version, levels))
            now = self._now()
            counters = self._last.keys() - GAUGES
            self._before = {name: self._last[name] - now.get(name, 0) for name in counters}
        return where

    def is_of_version_1(self) -> bool:
        """Whether a controller is that found it."""
        self.find()
        return any(version == 1 for _, version, _ in self._levels)

    def look(self) -> Row:
        """Levels and counters, without a prefix."""
        self.find()
        row = self._now()
        row |= {name: row[name] + before for name, before in self._before.items() if name in row}
        self._last |= row
        return row

    def _now(self) -> Row:
        row: Row = {}
        for controller, version, levels in self._levels:
            read = READERS[controller, version]
            rows = [read(level, level is levels[0]) for level in levels]
            row |= together(rows or [NOTHING[controller, version]])
        return row

    def limits(self) -> Iterator[tuple[str, str, str, str, float]]:
        """Resource, device, what is limited, its unit, and the limit."""
        row = self.look()
        for name, (resource, limit, unit) in _OF_ROW.items():
            if name in row:
                yield resource, "", limit, unit, row[name]
        for controller, version, levels in self._levels:
            for level in levels if controller == "io" else ():
                for device, what, unit, value in io_limits(level, version):
                    yield controller, device, what, unit, value


def sampler(subject: Subject, proc: Path = Path("/proc")) -> Found:
    """None where the kernel has no control groups."""
    if not (proc / "self" / "cgroup").exists():
        return None
    client = _Groups(proc, int((proc / "self").readlink().name))
    groups = {"client.cgroup": client}
    if subject.postmaster_pid is not None:
        server = _Groups(proc, subject.postmaster_pid)
        groups = {"cgroup": server}
        if client.find() != server.find():
            groups["client.cgroup"] = client

    def take() -> Row:
        return {
            f"{prefix}.{name}": value
            for prefix, group in groups.items()
            for name, value in group.look().items()
        }

    columns = tuple(_column(prefix, name) for prefix in groups for name in _NAMES)
    limits = Snapshot("cgroup_limits", _LIMITS, lambda: list(_rows(groups)))
    untold = [_OF_VERSION_2] if any(one.is_of_version_1() for one in groups.values()) else []
    return [Sampler("cgroups", columns, take, budget_us=2000.0), limits, *untold]


def _rows(groups: dict[str, _Groups]) -> Iterator[SnapshotRow]:
    """A limit that is set on several levels is told once for each, the lowest first."""
    seen: set[tuple[str, ...]] = set()
    for prefix, group in groups.items():
        name = "client" if prefix == "client.cgroup" else "server"
        for resource, device, limit, unit, value in group.limits():
            labels = (name, resource, device, limit, unit)
            if labels not in seen:
                seen.add(labels)
                names = (label.name for label in _LIMITS)
                yield dict(zip(names, (*labels, value), strict=True))


def _column(prefix: str, name: str) -> Column:
    unit = "CPUs" if name == "cpu_limit" else _UNITS.get(name.rpartition("_")[2], "1")
    return Column(f"{prefix}.{name}", unit, "gauge" if name in GAUGES else "counter")
