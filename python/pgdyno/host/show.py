"""The machine as a person wants to see it, each value beside what the catalogue advises."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pgdyno.catalog import layers, machine_knobs
from pgdyno.host.spot import ROOT, RUNTIME_LAYERS, devices, spots
from pgdyno.model.units import bytes_text
from pgdyno.stage.host import cgroup_memory_limit, read_meminfo

_DISKS = frozenset(("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "nfs", "nfs4"))
_SECTOR = 512  # of /sys/block/*/size, whatever the device has


@dataclass(frozen=True, slots=True)
class Line:
    """One thing of the machine."""

    what: str
    value: str
    advised: str = ""  # empty: the catalogue advises nothing
    why: str = ""

    @property
    def as_advised(self) -> bool:
        """Whether the value is the advised one, to the letter."""
        return self.advised == self.value


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the machine."""

    title: str
    lines: tuple[Line, ...]


def machine(root: Path = ROOT) -> tuple[Part, ...]:
    """All parts that there is something to say of.

    Args:
        root: Of the file tree, for tests.
    """
    parts = [
        Part("Processors", tuple(_processors(root))),
        Part("Memory", tuple(_memory(root))),
        Part("Block devices", tuple(_disks(root))),
        Part("File systems", tuple(_file_systems(root))),
        Part("Network", tuple(_network(root))),
        *_settings(root),
    ]
    return tuple(part for part in parts if part.lines)


def _processors(root: Path) -> Iterator[Line]:
    info = _text(root / "proc/cpuinfo")
    flags = _field(info, "flags")
    yield Line("model", _field(info, "model name") or platform.machine())
    cpus = root / "sys/devices/system/cpu"
    online = _text(cpus / "online")
    usable = len(os.sched_getaffinity(0))
    yield Line("CPUs", f"{online}, {usable} of them for this process")
    cores = {
        (_text(path / "physical_package_id"), _text(path / "core_id"))
        for path in cpus.glob("cpu[0-9]*/topology")
    }
    if cores:
        sockets = len({socket for socket, _ in cores})
        yield Line("cores", f"{len(cores)} in {sockets} {'socket' if sockets == 1 else 'sockets'}")
    nodes = sorted((root / "sys/devices/system/node").glob("node[0-9]*"))
    if nodes:
        told = "; ".join(f"{path.name}: CPUs {_text(path / 'cpulist')}" for path in nodes)
        yield Line("NUMA", f"{len(nodes)} {'node' if len(nodes) == 1 else 'nodes'}; {told}")
    caches = [
        f"L{_text(path / 'level')} {_text(path / 'type').lower()} {_text(path / 'size')}"
        for path in sorted((cpus / "cpu0/cache").glob("index*"))
    ]
    if caches:
        yield Line("caches", ", ".join(caches))
    if speed := _field(info, "cpu MHz"):
        yield Line("speed now", f"{float(speed):,.0f} MHz")
    yield Line("virtualisation", _virtualisation(root, flags))
    yield Line("stolen by others", _stolen(root))
    if quota := _cpu_quota(root):
        yield Line("limit of the cgroup", quota)
    yield Line("kernel", platform.release() if root == ROOT else _text(root / "proc/version"))
    sources = root / "sys/devices/system/clocksource/clocksource0/available_clocksource"
    yield Line("clocks at hand", _text(sources) or "not told")


def _virtualisation(root: Path, flags: str) -> str:
    maker = _text(root / "sys/class/dmi/id/sys_vendor")
    product = _text(root / "sys/class/dmi/id/product_name")
    told = " ".join(part for part in (maker, product) if part)
    if "hypervisor" not in flags.split():
        return f"none seen ({told})" if told else "none seen"
    return f"a guest ({told})" if told else "a guest"


def _stolen(root: Path) -> str:
    fields = next(
        (line.split()[1:] for line in _text(root / "proc/stat").splitlines() if line[:4] == "cpu "),
        [],
    )
    steal = 7  # user nice system idle iowait irq softirq steal
    if len(fields) <= steal:
        return "not told"
    ticks = [int(field) for field in fields[: steal + 1]]
    return f"{ticks[steal] / max(1, sum(ticks)):.2%} of the time since the start"


def _cpu_quota(root: Path) -> str:
    """Version 2 of cgroups, then version 1."""
    words = _text(root / "sys/fs/cgroup/cpu.max").split()
    if not words:
        folder = root / "sys/fs/cgroup/cpu"
        words = [_text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")]
    quota, period = (*words, "")[:2]
    if not quota.isdigit() or not period.isdigit():
        return ""
    return f"{int(quota) / int(period):g} CPUs"


def _memory(root: Path) -> Iterator[Line]:
    info = read_meminfo(_text(root / "proc/meminfo"))
    yield Line("memory", bytes_text(info["MemTotal"]))
    limit = cgroup_memory_limit(root / "sys/fs/cgroup")
    if limit is not None and limit < info["MemTotal"]:
        yield Line("limit of the cgroup", f"{bytes_text(limit)}: this is what counts here")
    yield Line("available", bytes_text(info.get("MemAvailable", 0)))
    total = info.get("HugePages_Total", 0)
    size = bytes_text(info.get("Hugepagesize", 0))
    free, kept = info.get("HugePages_Free", 0), info.get("HugePages_Rsvd", 0)
    yield Line("huge pages", f"{total} of {size}, {free} free, {kept} of them promised")
    yield Line("swap", bytes_text(info.get("SwapTotal", 0)))


def _disks(root: Path) -> Iterator[Line]:
    knob = machine_knobs()["queue/scheduler"]
    for name in devices(knob, root):
        folder = root / "sys/block" / name
        queue = folder / "queue"
        size = int(_text(folder / "size") or 0) * _SECTOR
        kind = "rotating" if _text(queue / "rotational") == "1" else "does not rotate"
        model = _text(folder / "device/model") or _text(folder / "loop/backing_file")
        logical = _text(queue / "logical_block_size")
        physical = _text(queue / "physical_block_size")
        cache = _text(queue / "write_cache")
        atomic = _text(queue / "atomic_write_unit_max_bytes")
        told = [bytes_text(size), model, kind, f"blocks of {logical}/{physical} bytes", cache]
        if atomic and atomic != "0":
            told.append(f"writes {bytes_text(int(atomic))} whole or not at all")
        yield Line(name, ", ".join(part for part in told if part))


def _file_systems(root: Path) -> Iterator[Line]:
    for line in _text(root / "proc/mounts").splitlines():
        device, mount, kind, options, *_ = line.split()
        if kind not in _DISKS:
            continue
        named = options.split(",")
        better = "" if "noatime" in named else "noatime"
        why = machine_knobs()["noatime"].why if better else ""
        yield Line(mount.replace("\\040", " "), f"{kind} on {device}: {options}", better, why)


def _network(root: Path) -> Iterator[Line]:
    folder = root / "sys/class/net"
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name == "lo" or not path.is_dir():
            continue
        queues = path / "queues"
        receiving = len(list(queues.glob("rx-*")))
        sending = len(list(queues.glob("tx-*")))
        speed = _text(path / "speed")
        told = [
            _text(path / "operstate"),
            f"{speed} Mbit/s" if speed.isdigit() else "",
            f"mtu {_text(path / 'mtu')}",
            f"queues: {receiving} in, {sending} out",
        ]
        yield Line(path.name, ", ".join(part for part in told if part))


def _settings(root: Path) -> Iterator[Part]:
    """What stands in the catalogue and can be changed while the machine runs."""
    found: dict[str, list[Line]] = {layer: [] for layer in RUNTIME_LAYERS}
    for one in spots(root):
        knob = one.knob
        if knob.advise is None and knob.layer in ("interrupts", "sysctl"):
            continue  # too many; `pgdyno knobs sysctl` lists them
        why = " ".join(knob.why.split())
        found[knob.layer].append(Line(one.key, one.read(), knob.advise or "", why))
    for layer, lines in found.items():
        yield Part(layers()[layer].title, tuple(lines))


def _field(text: str, name: str) -> str:
    for line in text.splitlines():
        head, colon, value = line.partition(":")
        if colon and head.strip() == name:
            return value.strip()
    return ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
