"""Run files of earlier formats, read as today's: what was said otherwise then, and nothing else."""

from __future__ import annotations

import json
from typing import Any

from pgdyno.model.record_json import json_value

_NO_KNEES = 3
_NAMELESS = 4
_WRAPPED = 5
_TPCC_KEYS = (
    "warehouses", "schema", "foreign_keys", "mix", "delivery", "home", "keying_multiplier",
    "think_multiplier",
)  # fmt: skip


def head_of(version: int, text: str) -> str:
    """The head of a run file of a format, as today's format has it.

    Format 1 had one kind of workload, TPC-C, whose parameters stood beside those that every
    workload has, and the stages had no workload of their own. Up to format 3 storage alone was
    measured without a plan. Up to format 4 a run without a workload described an empty one. Up to
    format 5 a run without a plan had an empty one, ceilings had a mapping around them, figures
    of earlier reports stood under `then`, and a file system may be its type alone.
    """
    if version > _WRAPPED:
        return text
    head: dict[str, Any] = json_value(text)
    if isinstance(kind := head["host"].get("file_system"), str):
        head["host"]["file_system"] = {"type": kind}
    head["plan"] = plan = head["plan"] or None
    if plan:
        plan["earlier"] = plan.pop("then", None)
        for stage in plan["stages"]:
            stage["earlier"] = stage.pop("then", {})
    head["calibration"] = (head.get("calibration") or {}).get("ceilings", ())
    if version > _NAMELESS:
        return json.dumps(head)
    described = head["workload"]
    head["workload"] = {"name": "", "version": 0} | described if described else None
    if version > _NO_KNEES:
        return json.dumps(head)
    head["experiment"] = "plan" if head["plan"] else "storage"
    if version > 1 or not plan:
        return json.dumps(head)
    old = plan["workload"]
    tpcc = {key: old.pop(key) for key in _TPCC_KEYS}
    plan["workload"] = old | {"tpcc": tpcc}
    for stage in plan["stages"]:
        stage["workload"] = plan["workload"]
    return json.dumps(head)
