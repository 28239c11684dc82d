"""One window as the core wants it, as JSON: `DriveSpec` of its contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from pgdyno.model.connection import Connection
from pgdyno.model.plan import Protocol, Workload
from pgdyno.model.proof import Slowdown
from pgdyno.model.record_json import JsonObject
from pgdyno.model.workload import READS, Arrivals, database_names
from pgdyno.workload.spec import workload_spec


@dataclass(frozen=True, slots=True)
class Part:
    """What one of several servers has of a workload: a database, driven by terminals of its own."""

    name: str
    connection: Connection


def drive_spec(
    connection: Connection,
    workload: Workload,
    protocol: Protocol,
    c_load: Mapping[str, int] | None,
    slowdowns: Sequence[Slowdown] = (),
    parts: Sequence[Part] = (),
    replica: Connection | None = None,
) -> JsonObject:
    """One window as the core wants it; holds the passwords.

    Args:
        connection: The loaded database, or the first of several.
        workload: What is driven.
        protocol: Seconds of warm-up, window and drain.
        c_load: The constants that the data were loaded with.
        slowdowns: When exchanges are made slower on purpose.
        parts: Of several servers; none: one has all databases.
        replica: The same database on a standby; None: there is none.
    """
    assert not parts or len(parts) == workload.parts, "every part has its server"
    spec: JsonObject = {
        "version": 1,
        "workload": workload_spec(workload, c_load),
        "connection": connection.spec(),
        "connections": workload.of_part(workload.connections),
        "terminals": workload.of_part(workload.terminals),
        "threads": workload.threads,
        "warmup_s": protocol.warmup_s,
        "window_s": protocol.window_s,
        "drain_s": protocol.drain_s,
    }
    if workload.arrivals != Arrivals():
        arrivals, per_s = workload.arrivals, workload.arrivals.per_s
        own = replace(arrivals, per_s=None if per_s is None else per_s / workload.blocks)
        spec["arrivals"] = asdict(own)
    if workload.steps:
        spec["steps"] = [
            {"seconds": one.seconds, "from": one.start, "to": one.end} for one in workload.steps
        ]
    if slowdowns:
        spec["slowdowns"] = [
            {"from_s": one.from_s, "until_s": one.until_s, "spin_ns": one.spin_ns,
             "delay_ns": one.delay_ns}
            for one in slowdowns
        ]  # fmt: skip
    if workload.requests_max is not None:
        spec["requests_max"] = workload.requests_max
    if workload.replica_connections:
        assert replica is not None, "a plan without one is refused"
        spec["replica"] = {"connection": replica.spec(), "kinds": [*READS],
                           "connections": workload.replica_connections}  # fmt: skip
    if parts:
        spec["parts"] = [{"name": one.name, "connection": one.connection.spec()} for one in parts]
    elif workload.databases > 1:
        spec["parts"] = [
            {"name": name, "database": name, "options": {}}
            for name in database_names(connection.database, workload.databases)
        ]
    return spec
