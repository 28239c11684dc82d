"""One window as the core wants it, as JSON: `DriveSpec` of its contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from pgdyno.model.connection import Connection
from pgdyno.model.plan import Protocol, Workload
from pgdyno.model.proof import Slowdown
from pgdyno.model.record_json import JsonObject
from pgdyno.model.workload import Arrivals, database_names
from pgdyno.workload.spec import workload_spec


def drive_spec(
    connection: Connection,
    workload: Workload,
    protocol: Protocol,
    c_load: Mapping[str, int] | None,
    slowdowns: Sequence[Slowdown] = (),
) -> JsonObject:
    """One window as the core wants it; holds the passwords."""
    spec: JsonObject = {
        "version": 1,
        "workload": workload_spec(workload, c_load),
        "connection": connection.spec(),
        "connections": workload.connections,
        "terminals": workload.terminals,
        "threads": workload.threads,
        "warmup_s": protocol.warmup_s,
        "window_s": protocol.window_s,
        "drain_s": protocol.drain_s,
    }
    if workload.arrivals != Arrivals():
        spec["arrivals"] = asdict(workload.arrivals)
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
    if workload.databases > 1:
        spec["parts"] = [
            {"name": name, "database": name, "options": {}}
            for name in database_names(connection.database, workload.databases)
        ]
    return spec
