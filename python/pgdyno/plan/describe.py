"""Workloads and builds in words, for the dry run and the report."""

from __future__ import annotations

from pgdyno.model.build import Build
from pgdyno.model.wording import plural
from pgdyno.model.workload import Arrivals, Data, Script, SourceFile, Step, Workload


def build_text(build: Build) -> str:
    """A build in a line: `build fast: PostgreSQL 15.18, gcc -O3 (gcc (Debian …) 12.2.0)`."""
    return f"build {build.label}: {build.version}, {build.recipe_text} ({build.compiler_version})"


def workload_lines(workload: Workload) -> list[str]:
    """What is driven, in a few lines."""
    return [_who(workload), *_how(workload)]


def _who(workload: Workload) -> str:
    connections = plural(workload.connections, "connection")
    clients = f"{plural(workload.terminals, 'terminal')} over {connections}"
    each = f", each of {plural(workload.databases, 'database')}" if workload.databases > 1 else ""
    by = " driven by pgbench" if workload.engine == "pgbench" else ""
    return f"{workload.kind}{by}: {size_text(workload)}{each}, {clients},"


def size_text(workload: Workload) -> str:
    """How large the data are, e.g. `10 warehouses`."""
    if workload.tpcc is not None:
        return plural(workload.tpcc.warehouses, "warehouse")
    if workload.pgbench is not None:
        return f"scale {workload.pgbench.scale}"
    return _data(workload.data)


def _data(data: Data) -> str:
    if data.kind == "none" and data.setup:
        return f"tables of {data.setup.path}"
    tables = {
        "none": "no tables",
        "tpcb": f"pgbench's tables of scale {data.scale}",
        "tpcc": f"TPC-C's tables of {plural(data.scale, 'warehouse')}",
    }
    return tables[data.kind] + (f" and {data.setup.path}" if data.setup else "")


def _how(workload: Workload) -> list[str]:
    lines = []
    values = workload_values(workload)
    if workload.tpcc is not None:
        mix = "/".join(f"{weight:g}" for weight in workload.tpcc.mix.values())
        lines.append(
            f"mix {mix}, {workload.isolation}, face {workload.face},"
            f" delivery {workload.tpcc.delivery}, home {workload.tpcc.home}"
        )
        lines += _unusual_tpcc(workload)
    else:
        file = f"file {values['file']}, " if "file" in values else ""
        lines.append(f"{file}{workload.isolation}, face {workload.face}")
    for key in ("arrivals", "steps", "requests_max"):
        if values[key] not in ("closed", "[]", "none"):
            lines.append(f"{key} {values[key]}")
    return lines


def _unusual_tpcc(workload: Workload) -> list[str]:
    tpcc = workload.tpcc
    assert tpcc is not None
    parts = []
    if (tpcc.schema, tpcc.rules) != ("spec", "text"):
        parts.append(f"schema {tpcc.schema}, rules {tpcc.rules}")
    if workload.replica_connections:
        own = plural(workload.replica_connections, "connection")
        parts.append(f"Order-Status and Stock-Level over {own} with the replica")
    if tpcc.foreign_keys:
        parts.append("foreign keys")
    if tpcc.partitions is not None:
        parts.append(f"{plural(tpcc.partitions.count, 'partition')} by {tpcc.partitions.by}")
    if tpcc.order != "warehouse":
        parts.append(f"rows in order of {tpcc.order}")
    if tpcc.keying_multiplier or tpcc.think_multiplier:
        parts.append(f"keying ×{tpcc.keying_multiplier:g}, think time ×{tpcc.think_multiplier:g}")
    return [", ".join(parts)] if parts else []


def workload_values(workload: Workload) -> dict[str, str]:
    """The keys that a stage may change, with their values as text."""
    values = {
        "engine": workload.engine,
        "face": workload.face,
        "isolation": workload.isolation,
        "connections": str(workload.connections),
        "terminals": str(workload.terminals),
        "databases": str(workload.databases),
        "threads": "by connections" if workload.threads is None else str(workload.threads),
        "arrivals": arrivals_text(workload.arrivals),
        "steps": "[" + ", ".join(_step(one) for one in workload.steps) + "]",
        "requests_max": "none" if workload.requests_max is None else str(workload.requests_max),
    }
    if workload.tpcc is not None:
        tpcc = workload.tpcc
        values |= {
            "replica_connections": str(workload.replica_connections),
            "rules": tpcc.rules,
            "delivery": tpcc.delivery,
            "home": tpcc.home,
            "keying_multiplier": f"{tpcc.keying_multiplier:g}",
            "think_multiplier": f"{tpcc.think_multiplier:g}",
            "mix": ", ".join(f"{kind} = {weight:g}" for kind, weight in tpcc.mix.items()),
        }
    elif workload.mix is not None:
        values["file"] = workload.mix.file.path
    elif workload.script is not None:
        values["file"] = ", ".join(_weighted(one) for one in workload.script.files)
        values["variables"] = variables_text(workload.script)
        values["witness"] = ", ".join(workload.script.witnesses) or "none"
        values["invariants"] = str(len(workload.script.invariants) or "none")
    return values


def variables_text(script: Script) -> str:
    """Variables that are set beforehand, e.g. `amount = 5`."""
    return ", ".join(f"{name} = {value}" for name, value in script.variables.items()) or "none"


def _step(step: Step) -> str:
    factors = f"{step.start:g}" if step.start == step.end else f"{step.start:g} to {step.end:g}"
    return f"{step.seconds:g} s × {factors}"


def _weighted(file: SourceFile) -> str:
    return file.path if file.weight == 1 else f"{file.path}@{file.weight:g}"


def arrivals_text(arrivals: Arrivals) -> str:
    """`closed`, or the rate and its spacing."""
    if arrivals.kind == "closed":
        return "closed"
    return f"{arrivals.per_s:g}/s, {arrivals.spacing}"
