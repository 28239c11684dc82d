"""What the core is told to drive, as JSON: `TpccSpec` and its like, and `drive::spec::Spec`.

Keys that say nothing are left out; the core's defaults are the same as the records'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from pgdyno.model.connection import Connection
from pgdyno.model.plan import Protocol, Workload
from pgdyno.model.workload import Arrivals, Data, SourceFile, Tpcc, database_names
from pgdyno.plan.schema.toml import parse_toml


def workload_spec(workload: Workload, c_load: dict[str, int] | None) -> dict[str, Any]:
    """The workload as the core wants it (`crates/workload`).

    Args:
        workload: What is driven.
        c_load: The constants that TPC-C's data were loaded with; None: not known yet.
    """
    spec: dict[str, Any] = {
        "kind": workload.kind,
        "seed": workload.seed,
        "face": workload.face,
        "isolation": workload.isolation,
    }
    if workload.tpcc is not None:
        return spec | _tpcc(workload.tpcc) | {"c_load": c_load}
    if workload.pgbench is not None:
        return spec | asdict(workload.pgbench)
    spec["scale"] = workload.data.scale
    if workload.mix is not None:
        return spec | parse_toml(workload.mix.file.text)
    assert workload.script is not None
    names = kind_names(workload.script.files)
    scripts = [
        {"name": name, "text": file.text, "weight": file.weight}
        for name, file in zip(names, workload.script.files, strict=True)
    ]
    return spec | {"scripts": scripts, "variables": workload.script.variables}


def _tpcc(tpcc: Tpcc) -> dict[str, Any]:
    spec = asdict(tpcc)
    for key, default in (("partitions", None), ("order", "warehouse"), ("rules", "text")):
        if spec[key] == default:
            del spec[key]
    return spec


def kind_names(files: Sequence[SourceFile]) -> list[str]:
    """What the transactions of script files are called: as the files, without their folders.

    Files that would be called alike keep their paths.
    """
    short = [PurePath(file.path).name for file in files]
    if len(set(short)) == len(short):
        return short
    return [file.path for file in files]


def data_spec(data: Data, seed: int) -> dict[str, Any] | None:
    """The workload whose tables a mix or a script works on; None: it has none of ours."""
    if data.kind == "tpcc":
        return {"kind": "tpcc", "seed": seed, "warehouses": data.scale}
    if data.kind == "tpcb":
        return {"kind": "tpcb", "seed": seed, "scale": data.scale}
    return None


def load_spec(workload: Workload) -> dict[str, Any] | None:
    """What is loaded for a workload; None: nothing of ours."""
    if workload.mix is None and workload.script is None:
        return workload_spec(workload, None)
    return data_spec(workload.data, workload.seed)


def drive_spec(
    connection: Connection,
    workload: Workload,
    protocol: Protocol,
    c_load: dict[str, int] | None,
) -> dict[str, Any]:
    """One window as the core wants it."""
    spec: dict[str, Any] = {
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
    if workload.requests_max is not None:
        spec["requests_max"] = workload.requests_max
    if workload.databases > 1:
        spec["parts"] = [
            {"name": name, "database": name, "options": {}}
            for name in database_names(connection.database, workload.databases)
        ]
    return spec
