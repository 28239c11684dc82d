"""What a plan needs of memory, disk and time, by stated assumptions.

The shared memory follows `postgres -C shared_memory_size` of 15.20 and 18.6 from above (at most a
tenth too high, 128 MB to 64 GB of shared buffers); the rest are assumptions, meant to be a little
high, and told as such in the dry run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias

from pgdyno.model.file_system import IN_MEMORY
from pgdyno.model.plan import Estimate, Plan, Protocol, Stage, Workload
from pgdyno.model.settings import HostFacts
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import plural
from pgdyno.plan.settings.checkpoints import driven_s, expected_cycle_s
from pgdyno.plan.settings.configured import Configured

_MIB = 1 << 20
_GIB = 1 << 30
_PAGE_BYTES = 4096
_PAGE_ENTRY_BYTES = 8
WAL_OVER = 1.1
"""By so much max_wal_size, a soft limit, is gone beyond."""
WAL = "WAL"
"""The part of a need that is the WAL of a trial."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Assumptions on which sizes and times are estimated; measured ones may take their place."""

    warehouse_bytes: int = 104_700_000  # rows, indexes; the core knows it exactly, a test compares
    items_bytes: int = 13_100_000  # of TPC-C, however many warehouses there are
    branch_bytes: int = 15_800_000  # 100,000 accounts of pgbench with their key
    database_bytes: int = 8 * _MIB  # catalogues
    # What a load adds to the data. TPC-C at 158,000 transactions a minute added 403 MiB in 171 s on
    # two CPUs, 1.2 MiB by a CPU each second; of a mix or script anything is possible.
    growth_bytes_per_cpu_s: int = 3 * _MIB
    unknown_growth_bytes_per_cpu_s: int = 8 * _MIB
    # What it writes of WAL; in that run 14.5 MiB, just after a checkpoint up to 24.
    wal_bytes_per_cpu_s: int = 32 * _MIB
    kept_wal_bytes: int = (
        _GIB  # min_wal_size of loading: a fixture keeps as much, if it was written
    )
    session_bytes: int = 10 * _MIB  # private memory of a session beyond work_mem
    driver_bytes: int = 64 * _MIB
    driver_session_bytes: int = _MIB
    # 41 B of a million closed terminals against the null server; growing takes more for a moment.
    driver_terminal_bytes: int = 96
    system_bytes: int = 256 * _MIB  # kernel, pgdyno itself
    load_s_per_gib: float = 10.0
    copy_s_per_gib: float = 1.2
    prewarm_s_per_gib: float = 0.7
    check_s_per_gib: float = 5.0
    trial_s: float = 3.5  # start, checkpoint, stop


DEFAULT_COSTS = Costs()

Fixtures: TypeAlias = tuple[int | None, ...]
"""Sizes of the loaded databases that the stages of a plan need, in bytes; None: not loaded yet."""

ONE_TO_LOAD: Fixtures = (None,)


@dataclass(frozen=True, slots=True)
class Need:
    """A sum of bytes, with its parts."""

    parts: tuple[tuple[str, int], ...]

    @property
    def total_bytes(self) -> int:
        """All parts together."""
        return sum(size for _, size in self.parts)

    def text(self) -> str:
        """The parts as a sum for people."""
        return " + ".join(f"{name} {bytes_text(size)}" for name, size in self.parts)


def shared_memory_bytes(config: Configured) -> int:
    """Shared memory of the server, from above."""
    buffers = config.size("shared_buffers") or 128 * _MIB
    wal = config.size("wal_buffers")
    if wal is None or wal <= 0:  # the server chooses
        wal = min(buffers // 32, 16 * _MIB)
    sessions = int(config.number("max_connections") or 100)
    return int(buffers * 1.03) + wal + 20 * _MIB + sessions * 100 * 1024


def huge_pages_needed(config: Configured, host: HostFacts) -> int:
    """Huge pages that hold the shared memory."""
    return -(-shared_memory_bytes(config) // max(host.huge_page_bytes, 1))


def memory_need(
    config: Configured, workload: Workload, host: HostFacts, costs: Costs = DEFAULT_COSTS
) -> Need:
    """Memory of server and driver under a stage's settings."""
    buffers = config.size("shared_buffers") or 128 * _MIB
    huge = config.word("huge_pages") in ("on", "try")
    huge = huge and huge_pages_needed(config, host) <= host.huge_pages_free
    tables = 0 if huge else buffers // _PAGE_BYTES * _PAGE_ENTRY_BYTES
    work = config.size("work_mem") or 4 * _MIB
    session = costs.session_bytes + work + tables
    vacuum = config.size("autovacuum_work_mem")
    if vacuum is None or vacuum <= 0:
        vacuum = config.size("maintenance_work_mem") or 64 * _MIB
    workers = int(config.number("autovacuum_max_workers") or 3)
    if config.word("autovacuum") == "off":
        workers = 0
    count, terminals = workload.sessions, workload.terminals * workload.databases
    driver = costs.driver_bytes + count * costs.driver_session_bytes
    return Need((
        ("shared_buffers", buffers),
        ("other shared memory", shared_memory_bytes(config) - buffers),
        (f"{plural(count, 'session')} ({bytes_text(session)} each)", count * session),
        (plural(workers, "vacuum worker"), workers * vacuum),
        ("driver", driver + terminals * costs.driver_terminal_bytes),
        ("system", costs.system_bytes),
    ))  # fmt: skip


def fixture_size(workload: Workload, costs: Costs = DEFAULT_COSTS) -> int:
    """Bytes of a loaded database."""
    data = workload.data
    fixed, unit = {
        "tpcc": (costs.items_bytes, costs.warehouse_bytes),
        "tpcb": (0, costs.branch_bytes),
        "none": (0, 0),
    }[data.kind]
    return workload.databases * (costs.database_bytes + fixed + data.scale * unit)


def _largest(workload: Workload, fixtures: Fixtures, costs: Costs) -> int:
    return max(fixture_size(workload, costs) if size is None else size for size in fixtures)


def disk_need(
    config: Configured,
    workload: Workload,
    protocol: Protocol,
    host: HostFacts,
    fixtures: Fixtures = ONE_TO_LOAD,
    costs: Costs = DEFAULT_COSTS,
) -> Need:
    """Disk of fixtures, copy and WAL under a stage's settings."""
    trial = _trial_need(config, workload, protocol, host, fixtures, costs)
    return Need((*_loaded(workload, fixtures, costs).parts, *trial.parts))


def _loaded(workload: Workload, fixtures: Fixtures, costs: Costs) -> Need:
    """Disk of the fixtures that are not there yet, which lie with pgdyno's own clusters."""
    size, missing = _largest(workload, fixtures, costs), fixtures.count(None)
    if not missing:
        return Need(())
    name = "loaded fixture" if missing == 1 else plural(missing, "loaded fixture")
    kept = missing * _kept_wal_bytes(workload, costs)
    what = f"WAL kept with {'it' if missing == 1 else 'them'}"
    return Need(((name, missing * size), (what, kept)))


def _kept_wal_bytes(workload: Workload, costs: Costs) -> int:
    """WAL that loading leaves in a fixture; further databases are copied by files, without any."""
    return min(costs.kept_wal_bytes, fixture_size(workload, costs) // workload.databases)


def _wal_bytes(config: Configured, written_bytes: float, kept_bytes: int) -> int:
    """WAL that lies beside the data of a trial at most.

    It is what the copy brought along and what is written, up to where the server removes it; that
    limit is a soft one.
    """
    limit = (config.size("max_wal_size") or _GIB) * WAL_OVER + (config.size("wal_keep_size") or 0)
    return int(max(kept_bytes, min(kept_bytes + written_bytes, limit)))


def _trial_need(
    config: Configured,
    workload: Workload,
    protocol: Protocol,
    host: HostFacts,
    fixtures: Fixtures,
    costs: Costs,
) -> Need:
    """Disk of copy and WAL under a stage's settings, which lie where the stage says."""
    seconds = driven_s(protocol, expected_cycle_s(config, host.cpus)) + protocol.drain_s
    seconds += protocol.profiling_s
    cpu_s, kept = seconds * host.cpus, _kept_wal_bytes(workload, costs)
    growth, written = costs.growth_bytes_per_cpu_s, costs.wal_bytes_per_cpu_s * cpu_s
    if workload.files:  # SQL of the plan's own
        growth, written = costs.unknown_growth_bytes_per_cpu_s, inf
    # They were measured with WAL, of which there may be less than is assumed, and subtracted here.
    sizes = [size - kept for size in fixtures if size is not None]
    sizes.append(fixture_size(workload, costs))
    return Need((
        ("copy for the trial", max(*sizes, 0)),
        ("growth", int(cpu_s * growth)),
        (WAL, _wal_bytes(config, written, kept)),
    ))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Room:
    """What a plan takes of the disk below one folder of clusters."""

    path: str
    need: Need  # of the hungriest stage there
    stage: str | None  # which one that is; None: fixtures alone lie there
    tight: tuple[str, ...] = field(
        kw_only=True, default=()
    )  # stages that may take more than is free
    kept_wal_bytes: int = field(kw_only=True, default=0)  # that a copy brings along
    free_bytes: int | None  # None: the folder is not there, or was not looked at
    device_number: int | None = None  # of its file system
    file_system: str | None = None  # its type

    @property
    def in_memory(self) -> bool:
        """Whether what lies there takes memory instead."""
        return self.file_system in IN_MEMORY


def shared(found: Sequence[Room]) -> list[list[Room]]:
    """Rooms that lie together on one file system, which has to hold them all."""
    by_device: dict[int, list[Room]] = {}
    for room in found:
        if room.device_number is not None:
            by_device.setdefault(room.device_number, []).append(room)
    return [together for together in by_device.values() if len(together) > 1]


def rooms(
    stages: Sequence[Stage],
    configs: Sequence[Configured],
    workload: Workload,
    protocol: Protocol,
    host: HostFacts,
    fixtures: Fixtures = ONE_TO_LOAD,
    costs: Costs = DEFAULT_COSTS,
) -> tuple[Room, ...]:
    """Disk that a plan takes: in pgdyno's own folder first, then in those that stages name."""
    by_folder: dict[str | None, list[tuple[Need, str]]] = {None: []}
    for stage, config in zip(stages, configs, strict=True):
        need = _trial_need(config, workload, protocol, host, fixtures, costs)
        if stage.standby:
            need = Need((*need.parts, ("its standby", need.total_bytes)))
        by_folder.setdefault(stage.folder, []).append((need, stage.name))
    loaded, found = _loaded(workload, fixtures, costs), []
    kept = _kept_wal_bytes(workload, costs)
    for folder, needs in by_folder.items():
        free = host.free_disk_bytes if folder is None else _free_bytes(host, folder)
        tight = tuple(name for need, name in needs if free is not None and need.total_bytes > free)
        need, name = max(needs, key=lambda one: one[0].total_bytes, default=(Need(()), None))
        if folder is None:
            need = Need((*loaded.parts, *need.parts))
            own = host.free_disk_bytes, host.data_device_number, host.file_system
            found.append(Room(host.data_path, need, name, *own))
        elif place := host.place(folder):
            there = place.free_bytes, place.device_number, place.file_system
            found.append(Room(folder, need, name, *there, tight=tight, kept_wal_bytes=kept))
        else:
            found.append(Room(folder, need, name, None))
    return tuple(found)


def _free_bytes(host: HostFacts, folder: str) -> int | None:
    place = host.place(folder)
    return None if place is None else place.free_bytes


def fitting_wal_bytes(room: Room) -> int:
    """The largest max_wal_size with which a room's need would fit; 0: none would.

    WAL that `wal_keep_size` keeps is reckoned to it.
    """
    wal_bytes = sum(size for name, size in room.need.parts if name == WAL)
    left_bytes = (room.free_bytes or 0) - (room.need.total_bytes - wal_bytes)
    return max(0, int(left_bytes / WAL_OVER)) if left_bytes >= room.kept_wal_bytes else 0


def estimate(
    workload: Workload,
    protocol: Protocol,
    trials: Sequence[float],
    needs: tuple[Need, Need],
    fixtures: Fixtures = ONE_TO_LOAD,
    costs: Costs = DEFAULT_COSTS,
) -> Estimate:
    """Time and sizes of the whole plan.

    Args:
        workload: What is loaded.
        protocol: How stages are measured.
        trials: Seconds of warm-up and window of each trial.
        needs: Memory and disk of the hungriest stages.
        fixtures: Sizes of the loaded databases that the stages need.
        costs: Assumptions of the estimates.
    """
    gib = _largest(workload, fixtures, costs) / _GIB
    checked = min(1.0, (protocol.checked_rounds or protocol.rounds) / protocol.rounds)
    trial = gib * (costs.copy_s_per_gib + checked * costs.check_s_per_gib) + costs.trial_s
    trial += gib * costs.prewarm_s_per_gib if protocol.prewarm else 0
    load = fixtures.count(None) * gib * (costs.load_s_per_gib + costs.check_s_per_gib)
    memory, disk = needs
    return Estimate(
        measuring_s=sum(trials),
        other_s=load + len(trials) * trial,
        disk_bytes=disk.total_bytes,
        memory_bytes=memory.total_bytes,
    )


def hungriest_memory(plan: Plan, configs: Sequence[Configured], host: HostFacts) -> Need:
    """Memory of the hungriest stage of a resolved plan, from their configurations."""
    return max(
        (
            _with_standby(memory_need(config, stage.workload, host), config, stage)
            for config, stage in zip(configs, plan.stages, strict=True)
        ),
        key=lambda need: need.total_bytes,
    )


def _with_standby(need: Need, config: Configured, stage: Stage) -> Need:
    """The same, with the standby of a stage that has one, with the same settings."""
    if not stage.standby:
        return need
    return Need((*need.parts, ("shared memory of the standby", shared_memory_bytes(config))))
