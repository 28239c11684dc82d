"""What the host is: the facts that shape a plan, and the manifest that a reader needs.

In a container the limits are those of the cgroup, never the host's.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import os
import platform
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from pgdyno.model.calibration import Machine
from pgdyno.model.manifest import FileSystem, HostManifest
from pgdyno.model.settings import HostFacts, Place
from pgdyno.model.version import VERSION
from pgdyno.shell import run
from pgdyno.target.device_claims import device_claims
from pgdyno.target.file_systems import existing, file_system
from pgdyno.target.storage_durability import storage_losses


def process_started_s(pid: int) -> float:
    """When a process of this host began, in seconds since the epoch.

    Raises:
        OSError: There is none of this number.
    """
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[19])
    up_s = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - up_s + ticks / os.sysconf("SC_CLK_TCK")


def parent_of(pid: int) -> int | None:
    """The process that started this one; None: it is gone, or not ours to see."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])
    except OSError:
        return None


def host_facts(data: Path, folders: Iterable[str] = ()) -> HostFacts:
    """Facts of this host.

    Args:
        data: The folder where clusters are put.
        folders: Others that stages name for theirs.
    """
    folder = existing(data)
    meminfo = read_meminfo(Path("/proc/meminfo").read_text())
    usable = len(os.sched_getaffinity(0))
    return HostFacts(
        cpus=min(usable, math.ceil(cgroup_cpu_limit() or usable)),
        memory_bytes=memory_of(),
        huge_pages_free=_huge_pages_free(meminfo),
        huge_page_bytes=meminfo.get("Hugepagesize", 2 << 20),
        free_disk_bytes=shutil.disk_usage(folder).free,
        data_path=str(data),
        file_system=file_system(folder)["type"],
        durability=storage_losses(folder.resolve(), "data folder"),
        data_device_number=folder.stat().st_dev,
        data_disks=device_claims(folder).disks,
        places=tuple(_places(folders)),
    )


def _places(folders: Iterable[str]) -> Iterator[Place]:
    """Room of the folders that are there; what is wrong with the others is told elsewhere."""
    for folder in dict.fromkeys(folders):
        path = Path(folder)
        try:
            free_bytes, device = shutil.disk_usage(path).free, path.stat().st_dev
            real = path.resolve(strict=True)
        except (OSError, RuntimeError):  # the latter where links go in a circle
            continue
        kind, disks = file_system(path)["type"], device_claims(path).disks
        yield Place(folder, free_bytes, kind, device, storage_losses(real, "data folder"), disks)


def _huge_pages_free(meminfo: dict[str, int]) -> int:
    """Those that nobody has or was promised, and those that the kernel may make when asked."""
    kept = meminfo.get("HugePages_Free", 0) - meminfo.get("HugePages_Rsvd", 0)
    most = _text("/proc/sys/vm/nr_overcommit_hugepages")
    more = int(most) - meminfo.get("HugePages_Surp", 0) if most.isdigit() else 0
    return kept + max(0, more)


def read_meminfo(text: str) -> dict[str, int]:
    """/proc/meminfo as bytes (and plain counts for HugePages_*)."""
    result = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words:
            result[name] = int(words[0]) * (1024 if words[-1] == "kB" else 1)
    return result


_ROOT = Path("/")
_NO_LIMIT = 1 << 60  # version 1 writes a number of this order where there is no limit


def cgroup_memory_limit(root: Path = _ROOT, process: str = "self") -> int | None:
    """The lowest memory limit above a process, cgroup v2 or v1; None where there is none."""
    return _lowest(_cgroup_texts("memory", "memory.max", "memory.limit_in_bytes", root, process))


def memory_of(process: str = "self") -> int:
    """Bytes of memory that a process may have: the host's, or what its control groups allow."""
    total = read_meminfo(Path("/proc/meminfo").read_text())["MemTotal"]
    return min(total, cgroup_memory_limit(process=process) or total)


def cgroup_huge_limit(page_bytes: int, root: Path = _ROOT, process: str = "self") -> int | None:
    """The same of bytes in huge pages of one size."""
    size = f"{page_bytes >> 20}MB" if page_bytes < 1 << 30 else f"{page_bytes >> 30}GB"
    new, old = f"hugetlb.{size}.max", f"hugetlb.{size}.limit_in_bytes"
    return _lowest(_cgroup_texts("hugetlb", new, old, root, process))


def cgroup_cpu_limit(root: Path = _ROOT, process: str = "self") -> float | None:
    """The same of CPUs."""
    quotas = _cgroup_texts("cpu", "cpu.max", "cpu.cfs_quota_us cpu.cfs_period_us", root, process)
    limits = [
        int(quota) / int(period) for quota, period in map(str.split, quotas) if quota.isdigit()
    ]
    return min(limits, default=None)


def _lowest(texts: Iterable[str]) -> int | None:
    limits = [int(text) for text in texts if text.isdigit()]
    return min((limit for limit in limits if limit < _NO_LIMIT), default=None)


def _cgroup_texts(controller: str, new: str, old: str, root: Path, process: str) -> Iterator[str]:
    """What the files of a process's groups say, from its own up: `new` of v2, `old` of v1."""
    try:
        lines = (root / "proc" / process / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        groups = root / "sys/fs/cgroup"
        base, names = (groups / controller, old.split()) if controllers else (groups, [new])
        folder = base / path.strip("/")
        for step in (folder, *folder.parents):
            if all((step / name).is_file() for name in names):
                yield " ".join((step / name).read_text().strip() for name in names)
            if step == base:
                break


def manifest(data: Path, folders: Iterable[str] = ()) -> HostManifest:
    """The host as the report shows it: everything that may explain a different number.

    Args:
        data: The folder where clusters are put.
        folders: Others that stages name for theirs.
    """
    facts = host_facts(data)
    frequency = psutil.cpu_freq()
    return HostManifest(
        cpu_model=_cpu_model(),
        cpus=facts.cpus,
        cpu_mhz=round(frequency.current) if frequency else None,
        numa_nodes=len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or 1,
        memory_bytes=facts.memory_bytes,
        huge_pages_free=facts.huge_pages_free,
        huge_page_bytes=facts.huge_page_bytes,
        transparent_huge_pages=_choice("/sys/kernel/mm/transparent_hugepage/enabled"),
        kernel=platform.release(),
        clock_source=_text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        virtualisation="hypervisor" if " hypervisor" in _text("/proc/cpuinfo") else "none seen",
        operating_system=platform.freedesktop_os_release().get("PRETTY_NAME", "unknown"),
        file_system=_manifest_of(data),
        sysctl={name: _text(f"/proc/sys/{name}") for name in _SYSCTLS},
        swap_bytes=psutil.swap_memory().total,
        driver=driver_hash(),
        folders={folder: _manifest_of(Path(folder)) for folder in dict.fromkeys(folders)},
    )


def _manifest_of(folder: Path) -> FileSystem:
    there = existing(folder)
    return FileSystem(**file_system(there), disks=device_claims(there).disks)


def driver_hash() -> str:
    """The first letters of the hash of our driver's own binary: another build is another client."""
    spec = importlib.util.find_spec("pgdyno._core")
    assert spec is not None
    assert spec.origin is not None
    return hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest()[:16]


def this_machine() -> Machine:
    """What the ceilings of this machine are filed under."""
    return Machine(_cpu_model(), len(os.sched_getaffinity(0)), platform.release())


_SYSCTLS = (
    "vm/swappiness",
    "vm/overcommit_memory",
    "vm/dirty_background_bytes",
    "vm/dirty_background_ratio",
    "vm/dirty_bytes",
    "vm/dirty_ratio",
    "vm/dirty_expire_centisecs",
    "vm/dirty_writeback_centisecs",
    "vm/nr_hugepages",
    "vm/nr_overcommit_hugepages",
    "vm/zone_reclaim_mode",
    "kernel/numa_balancing",
)


def _cpu_model() -> str:
    for line in _text("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _choice(path: str) -> str:
    """The bracketed word of a sysfs choice, e.g. `madvise` of `always [madvise] never`."""
    text = _text(path)
    return text.partition("[")[2].partition("]")[0] or text


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return "unknown"


def own_version() -> str:
    """Version of pgdyno, with the commit where it runs from a checkout."""
    source = Path(__file__).resolve().parent
    done = run(["git", "-C", source, "describe", "--always", "--dirty"], check=False)
    return f"{VERSION} ({done.stdout.strip()})" if done.code == 0 else VERSION
