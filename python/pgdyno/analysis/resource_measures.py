"""What is told of each resource: how much of it is used, what waits for it, what went wrong.

The method is Brendan Gregg's USE: utilisation is the share of time a resource was busy, saturation
is work that waits for it, errors are what went wrong. Of a resource that has no such count it is
said that nobody counts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pgdyno.analysis.resource_facts import Aspect
from pgdyno.analysis.seen import (
    Measure,
    Measured,
    Seen,
    level,
    over,
    rate,
    used,
)
from pgdyno.model.host_time import host_cpu_s, host_idle_share, is_of_one_cpu

DEVICE, INTERFACE = "device.", "net."
_HIDDEN = "sessions of others"  # as a sampler says that its role may not see them
_BACKENDS = "backend"


def _busy(seen: Seen) -> float | None:
    idle = host_idle_share(seen.result.deltas, seen.window_s)
    return None if idle is None else 1 - idle


def _busiest_cpu(seen: Seen) -> float | None:
    each = [seen.per_s(name) for name in seen.result.deltas if is_of_one_cpu(name)]
    # Time that the kernel counted to no state is some CPU's: no busiest one is below the mean.
    known = [one for one in (*each, _busy(seen)) if one is not None]
    return max(known) if each and known else None


def _stolen(seen: Seen) -> float | None:
    return over(seen.grown("cpu.steal_s"), host_cpu_s(seen.result.deltas, seen.window_s))


def _dirty(seen: Seen) -> float | None:
    return over(seen.mean("memory.dirty_bytes"), seen.mean("memory.dirty_limit_bytes"))


def _pooler_wait_s(seen: Seen) -> float | None:
    return over(seen.grown("pooler.wait_s"), seen.grown("pooler.transactions"))


def _connections(seen: Seen) -> float | None:
    """Sessions of clients at a moment, as far as the role sees all of them."""
    told = seen.result.telemetry
    met = seen.tallies.get("sessions")
    if met is None or (told and any(one.name == _HIDDEN for one in told.missing)):
        return None
    begin, end = (one / 1e9 for one in seen.result.window_ns)
    place = met.dimensions.index("role")
    backends = [number for number, key in enumerate(met.keys) if key[place] == _BACKENDS]
    inside = (met.seconds >= begin) & (met.seconds < end)
    counted = float(sum(met.counts[inside & (met.key == one)].sum() for one in backends))
    looks = met.ticks[(met.tick_seconds >= begin) & (met.tick_seconds < end)].sum()
    return over(counted, float(looks))


def _of_connections(seen: Seen) -> float | None:
    set_to = [one.value for one in seen.result.settings if one.name == "max_connections"]
    return over(_connections(seen), float(set_to[0])) if set_to else None


def _failed(seen: Seen) -> float | None:
    """Told of a driver that was looked at, as its other measures are."""
    if seen.grown("driver.cpu_s") is None:
        return None
    return over(sum(kind.window.failed for kind in seen.result.kinds), seen.window_s)


def _of_workers(name: str) -> Measured:
    """Of the I/O workers, on average: there are none in most methods and versions."""

    def measured(seen: Seen) -> float | None:
        return over(seen.per_s(f"process.io_worker.{name}"), seen.mean("process.io_worker.count"))

    return measured


HOST = (
    Measure("CPU", "utilisation", "share of all CPUs' time that is not idle", _busy),
    Measure("CPU", "utilisation", "the same of the busiest CPU", _busiest_cpu),
    Measure("CPU", "saturation", "share of time in which a task waits for one",
            rate("psi.cpu.some_s")),
    Measure("CPU", "saturation", "threads that run or wait for one, on average",
            level("host.runnable"), "level", further=True),
    Measure("CPU", "errors", "share of time that the hypervisor took", _stolen),
    Measure("CPU", "errors", "times that one was slowed down for its heat, a second",
            rate("cpu.thermal_throttles"), "per_s", further=True),
    Measure("interrupts", "utilisation", "served, a second", rate("host.interrupts"), "per_s",
            further=True),
    Measure("interrupts", "saturation", "share of time in which they keep tasks from running",
            rate("psi.irq.full_s"), further=True),
    Measure("memory", "utilisation", "share that is not available",
            used("memory.available_bytes", "memory.total_bytes")),
    Measure("memory", "saturation", "share of time in which a task waits for it",
            rate("psi.memory.some_s")),
    Measure("memory", "saturation", "pages that tasks looked through for some themselves, a second",
            rate("vm.direct_scanned_pages"), "per_s", further=True),
    Measure("memory", "errors", "processes killed for it, a second", rate("vm.oom_kills"),
            "per_s"),
    Measure("dirty pages", "utilisation", "share of the limit at which who writes has to wait",
            _dirty, further=True),
    Measure("dirty pages", "saturation", "being written to devices",
            level("memory.writeback_bytes"), "bytes", further=True),
    Measure("huge pages", "utilisation", "share of the reserved ones",
            used("memory.huge_free_bytes", "memory.huge_total_bytes"), further=True),
    Measure("huge pages", "errors", "transparent ones that were not to be had, a second",
            rate("vm.huge_fault_failures"), "per_s", further=True),
    Measure("swap", "utilisation", "share that is taken",
            used("memory.swap_free_bytes", "memory.swap_total_bytes")),
    Measure("swap", "saturation", "pages read and written, a second",
            rate("vm.swap_in_pages", "vm.swap_out_pages"), "per_s"),
    Measure("I/O", "saturation", "share of time in which a task waits for it",
            rate("psi.io.some_s")),
    Measure("I/O", "saturation", "threads that wait for it, on average", level("host.blocked"),
            "level", further=True),
)  # fmt: skip
NETWORK = (
    Measure("packets", "saturation", "times that some were left for later, a second",
            rate("net.softnet_squeezed"), "per_s", further=True),
    Measure("packets", "errors", "dropped since the queue of a CPU was full, a second",
            rate("net.softnet_drops"), "per_s", further=True),
    Measure("TCP", "utilisation", "segments in and out, a second",
            rate("tcp.in_segments", "tcp.out_segments"), "per_s", further=True),
    Measure("TCP", "saturation", "segments sent again, a second", rate("tcp.retransmits"),
            "per_s"),
    Measure("TCP", "saturation", "answers that did not come in time, a second",
            rate("tcp.timeouts"), "per_s", further=True),
    Measure("TCP", "saturation", "segments sent again that were lost again, a second",
            rate("tcp.lost_retransmits"), "per_s", further=True),
    Measure("TCP", "errors", "connections not accepted, a second", rate("tcp.listen_overflows"),
            "per_s"),
    Measure("TCP", "errors", "segments dropped for a full queue of a socket, a second",
            rate("tcp.backlog_drops", "tcp.receive_queue_drops"), "per_s", further=True),
    Measure("TCP", "errors", "broken segments, a second", rate("tcp.in_errors"), "per_s",
            further=True),
    Measure("TCP", "errors", "connections reset by this host, a second", rate("tcp.resets"),
            "per_s", further=True),
)  # fmt: skip
SERVER = (
    Measure("server", "utilisation", "CPUs used, on average", rate("server.cpu_s"), "level"),
    Measure("server", "saturation", "backends that wait for a CPU, on average",
            rate("process.backend.wait_cpu_s"), "level"),
    Measure("server", "errors", "deadlocks and conflicts, a second",
            rate("database.deadlocks", "database.conflicts"), "per_s"),
    Measure("connections", "utilisation", "sessions of clients, on average", _connections,
            "level", further=True),
    Measure("connections", "utilisation", "share of max_connections", _of_connections),
    Measure("I/O workers", "utilisation", "share of their time on a CPU", _of_workers("cpu_s")),
    Measure("I/O workers", "saturation", "share of their time waiting for a CPU",
            _of_workers("wait_cpu_s")),
    Measure("WAL buffers", "saturation", "times full, a second", rate("wal.buffers_full"),
            "per_s"),
    Measure("WAL kept by slots", "utilisation", "on average, by the slot that keeps most",
            level("slots.retained_bytes"), "bytes"),
    Measure("WAL kept by slots", "saturation", "slots that nobody reads from, on average",
            level("slots.inactive"), "level", further=True),
    Measure("memory of statements", "saturation", "temporary files, a second",
            rate("database.temp_files"), "per_s"),
    Measure("memory of statements", "saturation", "written to temporary files, a second",
            rate("database.temp_bytes"), "bytes_per_s", further=True),
    Measure("driver", "utilisation", "CPUs used, on average", rate("driver.cpu_s"), "level"),
    Measure("driver", "utilisation", "read from disks and written to them, a second",
            rate("driver.read_bytes", "driver.write_bytes"), "bytes_per_s"),
    Measure("driver", "saturation", "threads that wait for a CPU, on average",
            rate("driver.wait_cpu_s"), "level"),
    Measure("driver", "errors", "transactions that failed, a second", _failed, "per_s"),
)  # fmt: skip
POOLER = (
    Measure("pooler", "utilisation", "share of one CPU, which is all that it can use",
            rate("pooler.cpu_s")),
    Measure("pooler", "utilisation", "sessions of the server in use, on average",
            level("pooler.busy"), "level"),
    Measure("pooler", "saturation", "clients that wait for a session, on average",
            level("pooler.waiting"), "level"),
    Measure("pooler", "saturation", "time that a transaction waits for a session", _pooler_wait_s,
            "s"),
)  # fmt: skip
_NO_ERRORS_OF_DEVICES = "the kernel's statistics of devices have none"
_NOT_COUNTED: Mapping[tuple[str, Aspect], str] = {
    ("connections", "saturation"): "who waits to connect is in the queue of the listening socket,"
    " and TCP tells what was refused there",
    ("I/O", "utilisation"): "it is told device by device",
    ("I/O", "errors"): _NO_ERRORS_OF_DEVICES,
    ("I/O workers", "errors"): "what an I/O worker fails at the session tells that asked for it",
    ("WAL buffers", "utilisation"): "the server says how often they were full, not how full",
    ("memory of statements", "utilisation"): "the server does not say how much of work_mem a"
    " statement has taken",
    ("WAL kept by slots", "errors"): "the slots' table says which one was given up, and why",
}
_NOBODY = "neither the kernel nor the server counts it"


def not_counted(resource: str, aspect: Aspect) -> str:
    """Why nobody counts it."""
    if resource.startswith("device ") and aspect == "errors":
        return _NO_ERRORS_OF_DEVICES
    return _NOT_COUNTED.get((resource, aspect), _NOBODY)


def device_measures(name: str) -> Iterator[Measure]:
    """Of one block device."""
    at, resource = f"{DEVICE}{name}.", f"device {name}"

    def mean_s(*of: str) -> Measured:
        def measured(seen: Seen) -> float | None:
            times, counts = (f"{at}{one}_s" for one in of), (f"{at}{_many(one)}" for one in of)
            return over(seen.grown(*times), seen.grown(*counts))

        return measured

    busy = "share of time with a request under way; a disk that serves many at once may do more"
    yield Measure(resource, "utilisation", busy, rate(f"{at}busy_s"))
    yield Measure(resource, "utilisation", "read and written, a second",
                  rate(f"{at}read_bytes", f"{at}write_bytes"), "bytes_per_s",
                  further=True)  # fmt: skip
    yield Measure(resource, "utilisation", "reads and writes, a second",
                  rate(f"{at}reads", f"{at}writes"), "per_s", further=True)  # fmt: skip
    yield Measure(
        resource, "saturation", "requests under way, on average", rate(f"{at}weighted_s"), "level"
    )
    yield Measure(resource, "saturation", "time of a read or write", mean_s("read", "write"), "s")
    yield Measure(resource, "saturation", "time of a flush", mean_s("flush"), "s")
    yield Measure(resource, "saturation", "time of a discard", mean_s("discard"), "s", further=True)


def _many(request: str) -> str:
    return "flushes" if request == "flush" else f"{request}s"


def interface_measures(name: str) -> Iterator[Measure]:
    """Of one network interface."""
    at, resource = f"{INTERFACE}{name}.", f"interface {name}"

    def of_speed(seen: Seen) -> float | None:
        ways = [seen.per_s(f"{at}rx_bytes"), seen.per_s(f"{at}tx_bytes")]
        fuller = max((one for one in ways if one is not None), default=None)
        return over(fuller, seen.mean(f"{at}speed_bytes_per_s"))

    for aspect, what, columns, unit in (
        ("utilisation", "in and out, a second", ("rx_bytes", "tx_bytes"), "bytes_per_s"),
        ("utilisation", "packets in and out, a second", ("rx_packets", "tx_packets"), "per_s"),
        ("saturation", "packets dropped, a second", ("rx_drops", "tx_drops"), "per_s"),
        ("errors", "packets broken, a second", ("rx_errors", "tx_errors"), "per_s"),
    ):
        measured = rate(*(f"{at}{one}" for one in columns))
        is_further = "rx_packets" in columns
        yield Measure(resource, aspect, what, measured, unit, is_further)  # type: ignore[arg-type]
    yield Measure(resource, "utilisation", "share of the link's speed, of the fuller direction",
                  of_speed)  # fmt: skip
