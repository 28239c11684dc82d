"""Utilisation, saturation and errors of every resource that was sampled, for each stage.

The method is Brendan Gregg's USE: utilisation is the share of time a resource was busy, saturation
is work that waits for it, errors are what went wrong. A measure whose series are missing is not
known; it is never zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from pgdyno.analysis.resource_facts import Aspect, ResourceRow, Unit
from pgdyno.model.host_time import host_cpu_s, host_idle_share
from pgdyno.model.run import Series, TrialRecord, TrialResult
from pgdyno.model.wording import plural

NS = 1e9
DEVICE, _INTERFACE = "device.", "net."
SHOWN_MAX = 12  # devices, and interfaces: those that did most
_DONE_BY = {DEVICE: ("busy_s",), _INTERFACE: ("rx_packets", "tx_packets")}


@dataclass(frozen=True, slots=True)
class Seen:
    """What was sampled of a window: counters by what they grew, gauges as they were."""

    result: TrialResult
    series: Mapping[str, Series]

    @property
    def window_s(self) -> float:
        """How long it was."""
        begin, end = self.result.window_ns
        return (end - begin) / NS

    def grown(self, *names: str) -> float | None:
        """By how much counters grew in the window, together; None: of one it is not known."""
        if not all(name in self.result.deltas for name in names):
            return None
        return sum(self.result.deltas[name] for name in names)

    def per_s(self, *names: str) -> float | None:
        """The same, by seconds."""
        return _over(self.grown(*names), self.window_s)

    def mean(self, name: str) -> float | None:
        """Of a gauge in the window."""
        if (one := self.series.get(name)) is None:
            return None
        begin, end = self.result.window_ns
        inside = one.values[(one.unix_ns >= begin) & (one.unix_ns <= end)]
        return float(inside.mean()) if inside.size else None


Measured = Callable[[Seen], float | None]


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of a resource."""

    resource: str
    aspect: Aspect
    what: str
    measured: Measured
    unit: Unit = "share"


def _over(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _busy(seen: Seen) -> float | None:
    idle = host_idle_share(seen.result.deltas, seen.window_s)
    return None if idle is None else 1 - idle


def _stolen(seen: Seen) -> float | None:
    return _over(seen.grown("cpu.steal_s"), host_cpu_s(seen.result.deltas, seen.window_s))


def _memory_used(seen: Seen) -> float | None:
    free = _over(seen.mean("memory.available_bytes"), seen.mean("memory.total_bytes"))
    return None if free is None else 1 - free


def _pooler_wait_s(seen: Seen) -> float | None:
    return _over(seen.grown("pooler.wait_s"), seen.grown("pooler.transactions"))


def _rate(*names: str) -> Measured:
    return lambda seen: seen.per_s(*names)


_HOST = (
    Measure("CPU", "utilisation", "share of all CPUs' time that is not idle", _busy),
    Measure("CPU", "saturation", "share of time in which a task waits for one",
            _rate("psi.cpu.some_s")),
    Measure("CPU", "errors", "share of time that the hypervisor took", _stolen),
    Measure("memory", "utilisation", "share that is not available", _memory_used),
    Measure("memory", "saturation", "share of time in which a task waits for it",
            _rate("psi.memory.some_s")),
    Measure("memory", "errors", "processes killed for it, a second", _rate("vm.oom_kills"),
            "per_s"),
    Measure("swap", "utilisation", "pages read and written, a second",
            _rate("vm.swap_in_pages", "vm.swap_out_pages"), "per_s"),
    Measure("limit of the control group", "saturation",
            "CPUs on which it holds the server back, on average", _rate("cgroup.throttled_s"),
            "level"),
    Measure("limit of the control group", "errors", "times at the limit of memory, a second",
            _rate("cgroup.memory_max_events"), "per_s"),
)  # fmt: skip
_SERVER = (
    Measure("server", "utilisation", "CPUs used, on average", _rate("server.cpu_s"), "level"),
    Measure("server", "saturation", "backends that wait for a CPU, on average",
            _rate("process.backend.wait_cpu_s"), "level"),
    Measure("server", "errors", "deadlocks and conflicts, a second",
            _rate("database.deadlocks", "database.conflicts"), "per_s"),
    Measure("WAL buffers", "saturation", "times full, a second", _rate("wal.buffers_full"),
            "per_s"),
    Measure("memory of statements", "saturation", "temporary files, a second",
            _rate("database.temp_files"), "per_s"),
    Measure("driver", "utilisation", "CPUs used, on average", _rate("driver.cpu_s"), "level"),
    Measure("driver", "utilisation", "read from disks and written to them, a second",
            _rate("driver.read_bytes", "driver.write_bytes"), "bytes_per_s"),
    Measure("driver", "saturation", "threads that wait for a CPU, on average",
            _rate("driver.wait_cpu_s"), "level"),
)  # fmt: skip
_POOLER = (
    Measure("pooler", "utilisation", "share of one CPU, which is all that it can use",
            _rate("pooler.cpu_s")),
    Measure("pooler", "utilisation", "sessions of the server in use, on average",
            lambda seen: seen.mean("pooler.busy"), "level"),
    Measure("pooler", "saturation", "clients that wait for a session, on average",
            lambda seen: seen.mean("pooler.waiting"), "level"),
    Measure("pooler", "saturation", "time that a transaction waits for a session", _pooler_wait_s,
            "s"),
)  # fmt: skip
_TCP = (
    Measure("TCP", "saturation", "segments sent again, a second", _rate("tcp.retransmits"),
            "per_s"),
    Measure("TCP", "errors", "connections not accepted, a second", _rate("tcp.listen_overflows"),
            "per_s"),
)  # fmt: skip


def _device_measures(name: str) -> Iterator[Measure]:
    at, resource = f"{DEVICE}{name}.", f"device {name}"

    def waits_s(seen: Seen) -> float | None:
        return _over(
            seen.grown(f"{at}read_s", f"{at}write_s"),
            seen.grown(f"{at}reads", f"{at}writes"),
        )

    def flush_s(seen: Seen) -> float | None:
        return _over(seen.grown(f"{at}flush_s"), seen.grown(f"{at}flushes"))

    busy = "share of time with a request under way; a disk that serves many at once may do more"
    yield Measure(resource, "utilisation", busy, _rate(f"{at}busy_s"))
    yield Measure(
        resource, "saturation", "requests under way, on average", _rate(f"{at}weighted_s"), "level"
    )
    yield Measure(resource, "saturation", "time of a read or write", waits_s, "s")
    yield Measure(resource, "saturation", "time of a flush", flush_s, "s")


def _of_further_devices(names: Sequence[str]) -> Iterator[Measure]:
    """What is said of those that are not shown; lines over time have none of them either."""

    def busiest(seen: Seen) -> float | None:
        shares = (seen.per_s(f"{DEVICE}{name}.busy_s") for name in names)
        return max((one for one in shares if one is not None), default=None)

    if names:
        what = "share of time with a request under way, of the busiest of them"
        yield Measure(plural(len(names), "further device"), "utilisation", what, busiest)


def _of_further_interfaces(names: Sequence[str]) -> Iterator[Measure]:
    def packets(seen: Seen) -> float | None:
        ways = [f"{_INTERFACE}{name}.{way}" for name in names for way in _DONE_BY[_INTERFACE]]
        return seen.per_s(*ways)

    if names:
        what = "packets in and out of all of them, a second"
        yield Measure(
            plural(len(names), "further interface"), "utilisation", what, packets, "per_s"
        )


def _interface_measures(name: str) -> Iterator[Measure]:
    at, resource = f"{_INTERFACE}{name}.", f"interface {name}"
    yield Measure(
        resource, "utilisation", "packets in and out, a second",
        _rate(f"{at}rx_packets", f"{at}tx_packets"), "per_s",
    )  # fmt: skip
    yield Measure(
        resource, "saturation", "packets dropped, a second",
        _rate(f"{at}rx_drops", f"{at}tx_drops"), "per_s",
    )  # fmt: skip
    yield Measure(
        resource, "errors", "packets broken, a second",
        _rate(f"{at}rx_errors", f"{at}tx_errors"), "per_s",
    )  # fmt: skip


def members(names: Iterable[str], prefix: str) -> list[str]:
    """Devices or interfaces that columns are named of, e.g. `vda` of `device.vda.reads`.

    Their names may have dots, as those of VLANs have: `bond0.100`.
    """
    found = (name.removeprefix(prefix).rpartition(".") for name in names if name.startswith(prefix))
    return sorted({member for member, _, _ in found if member})


def shown(trials: Iterable[TrialRecord], names: Sequence[str], prefix: str = DEVICE) -> list[str]:
    """Of devices or interfaces those that did most in any window, by their names.

    A host may have hundreds, which nobody would read: a path for each way to each disk.
    """
    deltas = [one.result.deltas for one in trials if one.result is not None]

    def most(name: str) -> float:
        columns = [f"{prefix}{name}.{column}" for column in _DONE_BY[prefix]]
        return max(sum(one.get(column, 0.0) for column in columns) for one in deltas)

    return sorted(sorted(names, key=most, reverse=True)[:SHOWN_MAX])


def _used(seen: Sequence[Seen], prefix: str, *columns: str) -> list[str]:
    """Those that did anything in any window."""
    return [
        name
        for name in members((name for one in seen for name in one.result.deltas), prefix)
        if any(one.result.deltas.get(f"{prefix}{name}.{column}", 0) > 0
               for one in seen for column in columns)
    ]  # fmt: skip


def resource_rows(
    stages: Sequence[str],
    trials: Sequence[TrialRecord],
    series: Mapping[int, Mapping[str, Series]],
) -> tuple[ResourceRow, ...]:
    """Every measure that is known of any stage.

    Args:
        stages: Their names, in the order of the plan.
        trials: Those whose numbers may be used.
        series: Of each trial, by its number and their names.
    """
    seen = {
        stage: [
            Seen(one.result, series.get(one.number, {}))
            for one in trials
            if one.stage == stage and one.result is not None
        ]
        for stage in stages
    }
    everything = [one for each in seen.values() for one in each]
    measures = [*_HOST]
    devices = _used(everything, DEVICE, "reads", "writes", "flushes")
    most = shown(trials, devices)
    for device in most:
        measures += _device_measures(device)
    measures += _of_further_devices([one for one in devices if one not in most])
    interfaces = _used(everything, _INTERFACE, "rx_packets", "tx_packets")
    most = shown(trials, interfaces, _INTERFACE)
    for interface in most:
        measures += _interface_measures(interface)
    measures += _of_further_interfaces([one for one in interfaces if one not in most])
    rows = [_row(measure, seen) for measure in (*measures, *_TCP, *_POOLER, *_SERVER)]
    return tuple(row for row in rows if any(value is not None for value in row.stages))


def mean_of(values: Iterable[float | None]) -> float | None:
    """Of those that are known; None: none is."""
    known = [one for one in values if one is not None]
    return fmean(known) if known else None


def _row(measure: Measure, seen: Mapping[str, Sequence[Seen]]) -> ResourceRow:
    values = tuple(mean_of(map(measure.measured, windows)) for windows in seen.values())
    return ResourceRow(measure.resource, measure.aspect, measure.what, measure.unit, values)
