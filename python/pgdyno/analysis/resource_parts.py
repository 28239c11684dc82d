"""What the use of CPUs and memory is made of, and how control groups stand to their limits.

The CPU's time by state and by CPU, what the kernel did beside, the memory by what it is used for:
what `resource_measures` adds up to one figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pgdyno.analysis.resource_facts import Unit
from pgdyno.analysis.seen import Measure, Measured, Seen, level, over, rate
from pgdyno.model.cpu_states import CPU_STATES
from pgdyno.model.host_time import host_cpu_s, is_of_one_cpu
from pgdyno.model.wording import plural

CPU, MEMORY = "CPU", "memory"
CPUS_MAX = 16  # that are told one by one: those that were busiest
_STATES = {
    "user": "user: programs",
    "nice": "nice: programs that give way to others",
    "system": "system: the kernel for programs",
    "idle": "idle",
    "iowait": "iowait: idle, while something waits for I/O",
    "irq": "irq: interrupts",
    "softirq": "softirq: what interrupts left to be done, as of the network",
    "steal": "steal: the hypervisor gave it to others",
}
assert _STATES.keys() == set(CPU_STATES)
_OF_CPUS: tuple[tuple[str, str, Unit], ...] = (
    ("host.context_switches", "context switches, a second", "per_s"),
    ("host.interrupts", "interrupts, a second", "per_s"),
    ("host.ipis", "interrupts that CPUs sent one another, a second", "per_s"),
    ("host.forks", "processes and threads begun, a second", "per_s"),
)
_LEVELS_OF_CPUS: tuple[tuple[str, str, Unit], ...] = (
    ("host.runnable", "threads that run or wait for a CPU, on average", "level"),
    ("host.blocked", "threads that wait for I/O, on average", "level"),
    ("cpu.frequency_hz", "clock, mean of all", "hz"),
    ("cpu.frequency_min_hz", "clock of the slowest", "hz"),
)
_HEAT = "temperature."
_OF_MEMORY: tuple[tuple[str, str], ...] = (
    ("total_bytes", "all there is"),
    ("free_bytes", "free"),
    ("available_bytes", "available: free, or soon made so"),
    ("cached_bytes", "cache of files, with shared memory"),
    ("buffers_bytes", "cache of devices"),
    ("anonymous_bytes", "of processes, behind no file"),
    ("shared_bytes", "shared, as shared buffers without huge pages"),
    ("slab_bytes", "of the kernel's objects"),
    ("page_tables_bytes", "page tables"),
    ("dirty_bytes", "dirty: waits to be written"),
    ("writeback_bytes", "being written"),
    ("dirty_background_bytes", "dirty pages at which writing begins"),
    ("dirty_limit_bytes", "dirty pages at which who writes has to wait"),
    ("huge_total_bytes", "huge pages, reserved"),
    ("huge_free_bytes", "huge pages, free of these"),
    ("huge_reserved_bytes", "huge pages, promised and not yet used"),
    ("transparent_huge_bytes", "transparent huge pages of processes"),
    ("shared_huge_bytes", "transparent huge pages of shared memory"),
    ("swap_total_bytes", "swap"),
    ("swap_free_bytes", "swap, free of it"),
)
_BY_MEMORY: tuple[tuple[str, str], ...] = (
    ("faults", "page faults"),
    ("major_faults", "page faults that waited for a device"),
    ("direct_scanned_pages", "pages looked through by tasks that needed some"),
    ("direct_reclaimed_pages", "pages that these freed"),
    ("background_scanned_pages", "pages looked through by the kernel in the background"),
    ("refaulted_pages", "pages read again that were freed too early"),
    ("dirtied_pages", "pages that became dirty"),
    ("written_pages", "pages written"),
    ("swap_in_pages", "pages read from swap"),
    ("swap_out_pages", "pages written to swap"),
    ("allocation_stalls", "times that a task had to free some first"),
    ("compaction_stalls", "times that a task waited for memory in one piece"),
    ("huge_faults", "transparent huge pages given"),
    ("huge_fault_failures", "transparent huge pages that were not to be had"),
    ("oom_kills", "processes killed for it"),
)


def _part(resource: str, what: str, measured: Measured, unit: Unit = "share") -> Measure:
    return Measure(resource, "part", what, measured, unit)


def cpu_parts(seen: Sequence[Seen]) -> Iterator[Measure]:
    """The CPUs' time by state and by CPU, and what the kernel counted beside.

    Args:
        seen: All windows, which tell which CPUs there are.
    """
    for state, what in _STATES.items():
        yield _part(CPU, what, _of_all_time(f"cpu.{state}_s"))
    yield _part(CPU, "counted to no state", _in_no_state)
    yield from _each_cpu(seen)
    for name, what, unit in _OF_CPUS:
        yield _part(CPU, what, rate(name), unit)
    for name, what, unit in _LEVELS_OF_CPUS:
        yield _part(CPU, what, level(name), unit)
    for name in sorted({name for one in seen for name in one.series if name.startswith(_HEAT)}):
        yield _part(CPU, f"temperature of {name.removeprefix(_HEAT)}", level(name), "celsius")


def _of_all_time(name: str) -> Measured:
    return lambda seen: over(seen.grown(name), host_cpu_s(seen.result.deltas, seen.window_s))


def _in_no_state(seen: Seen) -> float | None:
    """A virtual machine loses ticks: see `model.host_time`."""
    counted = seen.grown(*(f"cpu.{state}_s" for state in CPU_STATES))
    share = over(counted, host_cpu_s(seen.result.deltas, seen.window_s))
    return None if share is None else max(0.0, 1 - share)


def _each_cpu(seen: Sequence[Seen]) -> Iterator[Measure]:
    names = {name for one in seen for name in one.result.deltas if is_of_one_cpu(name)}

    def most(name: str) -> float:
        return max(one.per_s(name) or 0.0 for one in seen)

    busiest = sorted(names, key=most, reverse=True)[:CPUS_MAX]
    for name in sorted(busiest, key=_number):
        yield _part(CPU, f"CPU {_number(name)}: busy", rate(name))
    rest = sorted(names - set(busiest), key=_number)
    if rest:
        yield _part(CPU, f"{plural(len(rest), 'further CPU')}: busy, on average", _mean(rest))


def _mean(names: Sequence[str]) -> Measured:
    return lambda seen: over(seen.per_s(*names), len(names))


def _number(name: str) -> int:
    return int(name.split(".")[1])


def memory_parts() -> Iterator[Measure]:
    """Memory by what it is used for, and what was done to have some."""
    for name, what in _OF_MEMORY:
        yield _part(MEMORY, what, level(f"memory.{name}"), "bytes")
    for name, what in _BY_MEMORY:
        yield _part(MEMORY, f"{what}, a second", rate(f"vm.{name}"), "per_s")


# -- control groups -------------------------------------------------------------------------------

_GROUPS = {"cgroup": "control group of the server", "client.cgroup": "control group of the client"}
_LIMITS = "cgroup_limits"
_GROUP_OF = {"server": "cgroup", "client": "client.cgroup"}
_UNIT_OF: Mapping[str, Unit] = {
    "B": "bytes", "B/s": "bytes_per_s", "1/s": "per_s", "CPUs": "level",
}  # fmt: skip
_LIMIT_WORDS = {("cpu", "max"): "CPUs", ("memory", "max"): "memory",
                ("memory", "high"): "memory from which on it is made to wait"}  # fmt: skip


def group_measures(seen: Sequence[Seen]) -> Iterator[Measure]:
    """Control groups against what they may have, as far as a kernel tells of them."""
    shared = not any(name.startswith("client.cgroup.") for one in seen for name in one.series)
    for at, resource in _GROUPS.items():
        yield from _use_of_group(at, resource, shared)
        yield from _trouble_of_group(at, resource)
        yield from _limits_of(at, resource, seen)


def _use_of_group(at: str, resource: str, shared: bool) -> Iterator[Measure]:
    ours = ("driver.cpu_s", "pgdyno.cpu_s")
    who = "server, driver and pgdyno" if shared else "the server"
    names: tuple[str, ...] = ("server.cpu_s", *ours) if shared else ("server.cpu_s",)
    if at != "cgroup":
        who, names = "driver and pgdyno", ours
    yield Measure(resource, "utilisation", f"CPU time of {who}, of its limit", lambda seen: over(
        seen.per_s(*names), seen.mean(f"{at}.cpu_limit")))  # fmt: skip
    yield Measure(resource, "utilisation", "memory, of the limit that it comes to first",
                  lambda seen: over(seen.mean(f"{at}.memory_bytes"), _least(seen, (
                      f"{at}.memory_limit_bytes", f"{at}.memory_high_bytes"))))  # fmt: skip
    yield Measure(resource, "utilisation", "memory", level(f"{at}.memory_bytes"), "bytes",
                  further=True)  # fmt: skip
    yield Measure(resource, "utilisation", "read and written, a second",
                  rate(f"{at}.read_bytes", f"{at}.write_bytes"), "bytes_per_s",
                  further=True)  # fmt: skip
    yield Measure(resource, "utilisation", "reads and writes, a second",
                  rate(f"{at}.reads", f"{at}.writes"), "per_s", further=True)  # fmt: skip


def _least(seen: Seen, names: Iterable[str]) -> float | None:
    found = (seen.mean(name) for name in names)
    return min((one for one in found if one is not None), default=None)


def _trouble_of_group(at: str, resource: str) -> Iterator[Measure]:
    yield Measure(resource, "saturation", "CPUs on which its limit holds it back, on average",
                  rate(f"{at}.throttled_s"), "level")  # fmt: skip
    yield Measure(resource, "saturation", "share of the periods in which its limit did",
                  lambda seen: over(seen.grown(f"{at}.throttled_periods"),
                                    seen.grown(f"{at}.periods")), further=True)  # fmt: skip
    yield Measure(resource, "saturation", "times that it waited for memory to be freed, a second",
                  rate(f"{at}.memory_high_events"), "per_s")  # fmt: skip
    for what, name in (("a CPU", "cpu"), ("memory", "memory"), ("I/O", "io")):
        yield Measure(resource, "saturation", f"share of time in which its tasks wait for {what}",
                      rate(f"{at}.psi.{name}.some_s"), further=True)  # fmt: skip
    yield Measure(resource, "errors", "times at the limit of memory, a second",
                  rate(f"{at}.memory_max_events"), "per_s")  # fmt: skip
    yield Measure(resource, "errors", "processes killed for memory, a second",
                  rate(f"{at}.oom_kills"), "per_s", further=True)  # fmt: skip


def _limits_of(at: str, resource: str, seen: Sequence[Seen]) -> Iterator[Measure]:
    """Those that were set when a window began or had ended, each by what it limits."""
    keys = {key: None for one in seen for key in _limits(one) if _GROUP_OF.get(key[0]) == at}
    for key in keys:
        _, of, device, what, unit = key
        words = _LIMIT_WORDS.get((of, what), f"{what.replace('_', ' ')} of device {device}")
        yield Measure(resource, "limit", words, _limit(key), _UNIT_OF.get(unit, "level"),
                      further=True)  # fmt: skip


def _limit(key: tuple[str, ...]) -> Callable[[Seen], float | None]:
    return lambda seen: _limits(seen).get(key)


def _limits(seen: Seen) -> dict[tuple[str, ...], float]:
    """The least by group, resource, device, what is limited and its unit: that one holds."""
    found: dict[tuple[str, ...], float] = {}
    for rows in seen.snapshots:
        for row in rows.rows if rows.name == _LIMITS else ():
            key = tuple(str(row[one]) for one in ("group", "resource", "device", "limit", "unit"))
            value = row["value"]
            if isinstance(value, int | float):
                found[key] = min(float(value), found.get(key, float(value)))
    return found
