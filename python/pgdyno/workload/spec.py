"""A workload as the core wants it, as JSON: `TpccSpec` and its like of its contract.

Keys that say what the core takes anyway are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import PurePath

from pydantic import JsonValue

from pgdyno.catalog.contract import default
from pgdyno.model.record_json import JsonObject
from pgdyno.model.workload import Script, SourceFile, Tpcc, Workload
from pgdyno.plan.schema.toml import parse_toml


def workload_spec(workload: Workload, c_load: Mapping[str, int] | None = None) -> JsonObject:
    """The workload as the core wants it (`crates/workload`).

    Args:
        workload: What is driven or loaded.
        c_load: The constants that TPC-C's data were loaded with; None: not known yet.
    """
    spec: JsonObject = {
        "kind": workload.kind,
        "seed": workload.seed,
        "face": workload.face,
        "isolation": workload.isolation,
    }
    if workload.tpcc is not None:
        return spec | _tpcc(workload.tpcc) | {"c_load": None if c_load is None else {**c_load}}
    if workload.pgbench is not None:
        return spec | asdict(workload.pgbench)
    spec["scale"] = workload.data.scale
    if workload.mix is not None:
        return spec | parse_toml(workload.mix.file.text)
    assert workload.script is not None
    return spec | _script(workload.script)


def _tpcc(tpcc: Tpcc) -> JsonObject:
    spec = asdict(tpcc)
    for key in ("partitions", "order", "rules"):
        if spec[key] == default("TpccSpec", key):
            del spec[key]
    if tpcc.blocks is None:
        del spec["blocks"]
    elif tpcc.blocks.held is None:
        spec["blocks"] = {"count": tpcc.blocks.count}
    return spec


def _script(script: Script) -> JsonObject:
    scripts: list[JsonValue] = []
    for name, file in zip(kind_names(script.files), script.files, strict=True):
        one: JsonObject = {"name": name, "text": file.text, "weight": file.weight}
        if file.path in script.witnesses:
            one["witness"] = script.witnesses[file.path]
        scripts.append(one)
    spec: JsonObject = {"scripts": scripts, "variables": {**script.variables}}
    if script.invariants:
        spec["invariants"] = [{"title": one.title, "sql": one.sql} for one in script.invariants]
    return spec


def kind_names(files: Sequence[SourceFile]) -> list[str]:
    """What the transactions of script files are called: as the files, without their folders.

    Files that would be called alike keep their paths.
    """
    short = [PurePath(file.path).name for file in files]
    if len(set(short)) == len(short):
        return short
    return [file.path for file in files]
