"""Made-up glances at a trial that runs: sessions, CPUs, one device, a checkpoint that goes on."""

from __future__ import annotations

from pgdyno.model.event_detail import EventDetail
from pgdyno.model.glance import Glance, Grown, Met
from pgdyno.model.run import Event

BEGAN_NS = 1_795_300_000_000_000_000
NS = 1_000_000_000
DEVICE = {
    "device.vda.reads": 120.0, "device.vda.read_bytes": 983_040.0, "device.vda.read_s": 0.06,
    "device.vda.writes": 900.0, "device.vda.write_bytes": 12_582_912.0, "device.vda.write_s": 1.8,
    "device.vda.flushes": 400.0, "device.vda.flush_s": 0.2, "device.vda.busy_s": 0.62,
}  # fmt: skip
CPUS = {
    "cpu.user_s": 1.0, "cpu.nice_s": 0.0, "cpu.system_s": 0.3, "cpu.idle_s": 0.4,
    "cpu.iowait_s": 0.2, "cpu.irq_s": 0.0, "cpu.softirq_s": 0.1, "cpu.steal_s": 0.0,
    "cpu.0.busy_s": 0.7, "cpu.1.busy_s": 0.7,
}  # fmt: skip


def event(kind: str, start_s: float, end_s: float | None, **detail: object) -> Event:
    """Something that the log tells, in seconds since the load began."""
    end_ns = None if end_s is None else BEGAN_NS + round(end_s * NS)
    known = EventDetail(**detail)  # type: ignore[arg-type]
    return Event(kind, BEGAN_NS + round(start_s * NS), end_ns, known)


def glance(second: int, *, began_ns: int = BEGAN_NS) -> Glance:
    """The one after so many seconds; in each second a lock was waited for."""
    wait = event("lock_wait", second - 0.5, second - 0.2, lock="ShareLock on transaction 4711")
    return Glance(
        began_ns=began_ns,
        taken_s=float(second),
        grown=(Grown(1.0, DEVICE), Grown(1.0, CPUS)),
        met=Met(
            10,
            (
                ("backend", "active", "cpu", 20 + second % 7),
                ("backend", "active", "flush", 15),
                ("backend", "idle in transaction", "client", 5),
                ("backend", "idle", "client", 40),
                ("checkpointer", "", "data_flush", 10),
            ),
        ),
        ended=(wait,),
        counts={"lock_wait": 1},
        under_way=(event("checkpoint", 3.0, None, cause="time"),) if second > 3 else (),
        follows_log=True,
    )
