"""Control groups of a process, of version 1 and 2, found controller by controller.

A limit may be set on the group itself or on any group above it, and who runs into one is counted
where it is set: what counts is added up, and the least limit holds, from the group up to the
highest that is seen here. A hybrid host has some controllers in version 1 and others in version 2.

Sources: cgroups(7), proc_pid_mountinfo(5); Linux, Documentation/admin-guide/cgroup-v2.rst and
cgroup-v1/. The parsers give names without a prefix, seconds, bytes, and CPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.model.mount_words import mount_word
from pgdyno.sample.kernel_file import KernelFile, kernel_file
from pgdyno.sample.pressure_text import parse_pressure
from pgdyno.sample.sampler import Row

CONTROLLERS = ("cpu", "memory", "io")
_IN_VERSION_1 = {"io": "blkio"}
_NO_LIMIT_BYTES = 1 << 60  # version 1 says "none" by the greatest number of pages there is
GAUGES = ("cpu_limit", "memory_bytes", "memory_limit_bytes", "memory_high_bytes")
LEAST = ("cpu_limit", "memory_limit_bytes", "memory_high_bytes")
"""Of the limits on the way up the least one holds."""


@dataclass(slots=True)
class Level:
    """One group on the way up, with its files, which are opened once."""

    folder: Path
    _files: dict[str, KernelFile | None] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """What a file says; empty where it is not there, or gone."""
        if name not in self._files:
            self._files[name] = kernel_file(self.folder / name)
        try:
            return file.text() if (file := self._files[name]) is not None else ""
        except OSError:
            return ""


def levels_of(cgroup: str, mountinfo: str, controller: str) -> tuple[int, list[Path]]:
    """The version of a controller, and the folders of a process's groups in it, the own one first.

    Args:
        cgroup: Of /proc/PID/cgroup.
        mountinfo: Of /proc/self/mountinfo.
        controller: Of `CONTROLLERS`.

    Returns:
        No folders where the controller is not mounted.
    """
    paths = dict(_paths(cgroup))
    name = _IN_VERSION_1.get(controller, controller)
    version = 1 if name in paths else 2
    group = paths.get(name if version == 1 else "")
    for root, point, kind, options in _mounts(mountinfo):
        if kind != ("cgroup" if version == 1 else "cgroup2") or group is None:
            continue
        if version == 1 and name not in options:
            continue
        inner = group.removeprefix(root) if root != "/" else group
        way = Path(point, inner.strip("/"))
        return version, [way, *(one for one in way.parents if one.is_relative_to(point))]
    return version, []


def can_limit(version: int, folder: Path) -> bool:
    """Whether it is a group, and not the root of all groups, which has no limits."""
    if version == 1:
        return folder.is_dir() and not (folder / "release_agent").exists()
    return (folder / "cgroup.events").exists()


NOTHING: dict[tuple[str, int], Row] = {
    ("cpu", 1): {"throttled_s": 0, "periods": 0, "throttled_periods": 0},
    ("cpu", 2): {"throttled_s": 0, "periods": 0, "throttled_periods": 0},
    ("memory", 1): {"memory_max_events": 0, "oom_kills": 0},
    ("memory", 2): {"memory_high_events": 0, "memory_max_events": 0, "oom_kills": 0},
    ("io", 1): {},
    ("io", 2): {},
}
"""By controller and version: what a process in the root of all groups ran into."""


def _paths(cgroup: str) -> Iterator[tuple[str, str]]:
    """Controller and path; of version 2 the controller is empty."""
    for line in cgroup.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for one in controllers.split(","):
            yield one, path


def _mounts(mountinfo: str) -> Iterator[tuple[str, str, str, list[str]]]:
    """Root, mount point, type and options of the file system of each mount."""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        words, rest = before.split(), after.split()
        if len(words) >= 5 and len(rest) >= 3:
            yield mount_word(words[3]), mount_word(words[4]), rest[0], rest[2].split(",")


def _keyed(text: str) -> dict[str, int]:
    """Lines of a word and a number."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _named(values: dict[str, int], names: dict[str, str], unit: float = 1) -> Row:
    return {names[key]: value * unit for key, value in values.items() if key in names}


_PERIODS = {"nr_periods": "periods", "nr_throttled": "throttled_periods"}


def cpu_1(level: Level, _own: bool) -> Row:
    """CPU in version 1."""
    stat = _keyed(level.text("cpu.stat"))
    row = _named(stat, _PERIODS) | _named(stat, {"throttled_time": "throttled_s"}, 1e-9)
    quota, period = level.text("cpu.cfs_quota_us"), level.text("cpu.cfs_period_us")
    if quota and period and int(quota) > 0:
        row["cpu_limit"] = int(quota) / int(period)
    return row


def cpu_2(level: Level, own: bool) -> Row:
    """CPU in version 2."""
    stat = _keyed(level.text("cpu.stat"))
    row = _named(stat, _PERIODS) | _named(stat, {"throttled_usec": "throttled_s"}, 1e-6)
    quota, _, period = level.text("cpu.max").partition(" ")
    if period and quota != "max":
        row["cpu_limit"] = int(quota) / int(period)
    return row | (_pressure(level, "cpu") if own else {})


def memory_1(level: Level, own: bool) -> Row:
    """Memory in version 1, which has no soft limit that makes anybody wait."""
    row: Row = {}
    if limit := level.text("memory.limit_in_bytes"):
        row = {"memory_limit_bytes": int(limit)} if int(limit) < _NO_LIMIT_BYTES else {}
    if hits := level.text("memory.failcnt"):
        row["memory_max_events"] = int(hits)
    row |= _named(_keyed(level.text("memory.oom_control")), {"oom_kill": "oom_kills"})
    if own and (used := level.text("memory.usage_in_bytes")):
        row["memory_bytes"] = int(used)
    return row


_EVENTS = {"high": "memory_high_events", "max": "memory_max_events", "oom_kill": "oom_kills"}


def memory_2(level: Level, own: bool) -> Row:
    """Memory in version 2; events of the group itself are counted since Linux 5.2."""
    events = level.text("memory.events.local") or (level.text("memory.events") if own else "")
    row = _named(_keyed(events), _EVENTS)
    for name, column in (("max", "memory_limit_bytes"), ("high", "memory_high_bytes")):
        limit = level.text(f"memory.{name}").strip()
        if limit.isdigit():
            row[column] = int(limit)
    if not own:
        return row
    if used := level.text("memory.current"):
        row["memory_bytes"] = int(used)
    return row | _pressure(level, "memory")


_OPERATIONS = {"Read": "read", "Write": "write"}


def io_1(level: Level, own: bool) -> Row:
    """I/O in version 1, of the group and those below it, without what is written back later."""
    row: Row = {}
    for name, form in (("io_service_bytes", "{}_bytes"), ("io_serviced", "{}s")):
        file = f"blkio.throttle.{name}"
        text = (level.text(f"{file}_recursive") or level.text(file)) if own else ""
        for line in text.splitlines():
            words = line.split()
            if len(words) == 3 and words[1] in _OPERATIONS:
                column = form.format(_OPERATIONS[words[1]])
                row[column] = row.get(column, 0) + int(words[2])
    return row


_IO_STAT = {"rbytes": "read_bytes", "wbytes": "write_bytes", "rios": "reads", "wios": "writes"}


def io_2(level: Level, own: bool) -> Row:
    """I/O in version 2, of the group and those below it."""
    if not own:
        return {}
    row: Row = {}
    for line in level.text("io.stat").splitlines():
        for word in line.split()[1:]:
            key, _, value = word.partition("=")
            if name := _IO_STAT.get(key):
                row[name] = row.get(name, 0) + int(value)
    return row | _pressure(level, "io")


def _pressure(level: Level, resource: str) -> Row:
    return parse_pressure(resource, level.text(f"{resource}.pressure"))


READERS: dict[tuple[str, int], Callable[[Level, bool], Row]] = {
    ("cpu", 1): cpu_1, ("cpu", 2): cpu_2, ("memory", 1): memory_1, ("memory", 2): memory_2,
    ("io", 1): io_1, ("io", 2): io_2,
}  # fmt: skip
"""By controller and version; the second argument says whether it is the process's own group."""


def together(rows: Sequence[Row]) -> Row:
    """What the groups on the way up tell as one: counts are added, the least limit holds."""
    found: Row = {}
    for row in rows:
        for name, value in row.items():
            if name not in found:
                found[name] = value
            elif name in LEAST:
                found[name] = min(found[name], value)
            else:
                found[name] += value
    return found


_IO_LIMITS_1 = {
    "read_bps_device": ("read_bytes", "B/s"), "write_bps_device": ("write_bytes", "B/s"),
    "read_iops_device": ("reads", "1/s"), "write_iops_device": ("writes", "1/s"),
}  # fmt: skip
_IO_LIMITS_2 = {
    "rbps": ("read_bytes", "B/s"), "wbps": ("write_bytes", "B/s"), "riops": ("reads", "1/s"),
    "wiops": ("writes", "1/s"),
}  # fmt: skip


def io_limits(level: Level, version: int) -> Iterator[tuple[str, str, str, int]]:
    """Device as `major:minor`, what is limited, its unit, and the limit; those that are set."""
    if version == 1:
        for file, (what, unit) in _IO_LIMITS_1.items():
            for line in level.text(f"blkio.throttle.{file}").splitlines():
                device, _, value = line.partition(" ")
                yield device, what, unit, int(value)
        return
    for line in level.text("io.max").splitlines():
        device, *words = line.split()
        for word in words:
            key, _, text = word.partition("=")
            if key in _IO_LIMITS_2 and text.isdigit():
                yield device, *_IO_LIMITS_2[key], int(text)
