"""What the client does in each stage: `[workload]`, with what `client = { … }` changes from there.

Reads no file and knows no server. A stage's client keys add to those of the stage before, as
settings do, or start afresh; only keys that do not shape the data may be changed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from pgdyno.catalog import workload_profile, workload_profile_names
from pgdyno.model.settings import Origin, Setting
from pgdyno.model.units import digits_text
from pgdyno.plan.schema.complaint import Complaint, shown
from pgdyno.plan.schema.errors import faults_of, unknown_key
from pgdyno.plan.schema.override import stage_origin
from pgdyno.plan.schema.pgbench_limits import unmapped
from pgdyno.plan.schema.plan_file import StageTable
from pgdyno.plan.schema.toml import toml_key
from pgdyno.plan.schema.workload import workload_of
from pgdyno.plan.schema.workload_table import (
    KINDS,
    SHAPES_DATA,
    TABLES,
    StepTable,
    TpccTable,
    WorkloadTable,
    keys_of,
    kind_of,
    path_and_weight,
)

_STEPS_TOLERANCE_S = 1e-6


@dataclass(frozen=True, slots=True)
class StageClient:
    """A stage's workload, checked, and the keys that stages chose for it."""

    table: WorkloadTable
    chosen: tuple[Setting, ...]  # sorted by name


def with_profile(raw: dict[str, Any], complaints: list[Complaint]) -> dict[str, Any]:
    """A document whose `[workload]` has the keys of its profile where it has none of its own."""
    workload = raw.get("workload")
    if not isinstance(workload, dict) or not isinstance(workload.get("profile"), str):
        return raw
    name, kind = workload["profile"], kind_of(workload)
    names = [one for one in workload_profile_names() if workload_profile(one).kind == kind]
    if name not in names:
        allowed = f"; allowed: {', '.join(names)}" if names else f"; {kind} has none"
        complaints.append(Complaint("workload.profile", f"{shown(name)} is unknown{allowed}"))
        return raw
    values = {key: one.value for key, one in workload_profile(name).key.items()}
    return {**raw, "workload": values | workload}


def stage_clients(
    raw: Mapping[str, Any],
    stages: tuple[StageTable, ...],
    source: str,
    by_set: frozenset[tuple[str, str]],
    window_s: float,
    complaints: list[Complaint],
) -> tuple[StageClient, ...]:
    """The workload of each stage; what is wrong is added to the complaints.

    Args:
        raw: `[workload]`, valid, with its profile's keys.
        stages: The stages.
        source: Path of the plan.
        by_set: (stage, key) that `--set` chose.
        window_s: Of the protocol, which steps must fill.
        complaints: Of the plan so far.
    """
    model = TABLES[kind_of(raw)]
    loaded = int(raw.get("databases", model.model_fields["databases"].default))
    result = []
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for stage in stages:
        if stage.afresh:
            values, origins = {}, {}
        wrong = _wrong_keys(stage, model)
        complaints += wrong
        values = {**values, **({} if wrong else stage.client)}
        for key in stage.client:
            origins = {**origins, key: stage_origin(stage.name, "client", key, source, by_set)}
        try:
            table = model.model_validate(_merged(raw, values))
        except ValidationError as error:
            for field, fault in faults_of(error, model):
                complaint = Complaint(f"stage {stage.name}", f"client.{field}: {fault}")
                if field.partition(".")[0].partition("[")[0] in stage.client:
                    complaints.append(complaint)
            continue
        complaints += [
            Complaint(f"stage {stage.name}: client.{key}", text)
            for key, text in (*impossible(table, window_s), *_too_many(table, loaded))
            if stage.client
        ]
        chosen = tuple(Setting(key, value_text(values[key]), origins[key])
                       for key in sorted(values))  # fmt: skip
        result.append(StageClient(table, chosen))
    return tuple(result)


def _merged(raw: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """What a stage drives; of the plan's witnesses those of the scripts that it does."""
    merged = {**raw, **values}
    if "file" in values and "witness" not in values and "witness" in raw:
        files = [values["file"]] if isinstance(values["file"], str) else values["file"]
        driven = {path_and_weight(str(one))[0] for one in files}
        merged["witness"] = {path: one for path, one in raw["witness"].items() if path in driven}
    return merged


def _too_many(table: WorkloadTable, loaded: int) -> list[tuple[str, str]]:
    if table.databases <= loaded:
        return []
    return [("databases", f"is {table.databases}, workload.databases loads {loaded}")]


def _wrong_keys(stage: StageTable, model: type[WorkloadTable]) -> list[Complaint]:
    allowed = [key for key in keys_of(model) if key not in SHAPES_DATA]
    wrong = []
    for key in stage.client:
        where = f"stage {stage.name}: client.{toml_key(key)}"
        if key in SHAPES_DATA and key in keys_of(model):
            text = f"shapes the data, which all stages share; allowed: {', '.join(allowed)}"
            wrong.append(Complaint(where, text, "Use another plan for other data."))
        elif key not in allowed:
            wrong.append(Complaint(where, unknown_key(key, allowed)))
    return wrong


def value_text(value: object) -> str:
    """A value as TOML has it; text without its quotes."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_nested(one)}" for key, one in value.items()) + " }"
    return _nested(value)


def _nested(value: object) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_nested(one) for one in value) + "]"
    if isinstance(value, dict):
        return value_text(value)
    return json.dumps(value, ensure_ascii=False)


def impossible(table: WorkloadTable, window_s: float) -> list[tuple[str, str]]:
    """What the types alone do not say, as (key, what is wrong)."""
    found = _impossible_steps(table, window_s) or _asks_nothing(table, window_s)
    many = f"connections = {table.connections}"
    if table.terminals is not None and table.terminals < table.connections:
        found.append((
            "terminals",
            f"{table.terminals} are fewer than {many}, so that some would never be used;"
            " allowed: as many or more",
        ))  # fmt: skip
    if table.threads is not None and table.threads > table.connections:
        found.append((
            "threads",
            f"{table.threads} are more than {many}, so that some would have nothing to do;"
            " allowed: as many or fewer",
        ))  # fmt: skip
    if table.arrivals is not None and table.requests_max is not None:
        found.append(("requests_max", "does not go with open arrivals; allowed: closed ones"))
    if isinstance(table, TpccTable):
        found += _impossible_tpcc(table)
    pgbench = unmapped(workload_of(table, defaultdict(str)))
    return found + [(one.key, f"{one.text}; allowed: {one.allowed}") for one in pgbench]


def _asks_nothing(table: WorkloadTable, window_s: float) -> list[tuple[str, str]]:
    """A schedule under which no request, or none at all for certain, is due in the window."""
    steps = [(step.seconds, *_ends(step)) for step in table.steps] or [(window_s, 1.0, 1.0)]
    if not any(start or end for _, start, end in steps):
        return [("steps", "have the factor 0 throughout, so that nothing is asked; allowed: one"
                 " above 0")]  # fmt: skip
    if table.arrivals is None:
        return []
    due = table.arrivals.rate * sum(seconds * (start + end) / 2 for seconds, start, end in steps)
    if due < 1:
        return [
            (
                "arrivals.rate",
                f"{table.arrivals.rate:g} lets {digits_text(due, 2)} requests be"
                f" due in the window of {window_s:g} s; allowed: so many that one is",
            )
        ]
    return []


def _ends(step: StepTable) -> tuple[float, float]:
    """Factors at the start and the end of a step."""
    if step.factor is not None:
        return step.factor, step.factor
    return step.from_ or 0.0, step.to or 0.0


def _impossible_steps(table: WorkloadTable, window_s: float) -> list[tuple[str, str]]:
    seconds = sum(step.seconds for step in table.steps)
    if table.steps and abs(seconds - window_s) > _STEPS_TOLERANCE_S:
        return [
            ("steps", f"last {seconds:g} s, protocol.window_s is {window_s:g}; allowed: the same")
        ]
    highest = max((max(_ends(one)) for one in table.steps), default=0.0)
    if table.arrivals is None and highest > 1:
        return [
            ("steps", f"have the factor {highest:g}, but with closed arrivals it is a share of the"
             " terminals; allowed: 0 to 1")
        ]  # fmt: skip
    return []


def _impossible_tpcc(table: TpccTable) -> list[tuple[str, str]]:
    found = []
    if not any(getattr(table.mix, kind) for kind in KINDS):
        found.append(("mix", "all weights are 0; allowed: one above 0"))
    if table.partitions is not None and table.partitions.count > table.warehouses:
        found.append((
            "partitions.count",
            f"{table.partitions.count} are more than warehouses = {table.warehouses}, so that some"
            " would stay empty; allowed: as many or fewer",
        ))  # fmt: skip
    for key in ("keying_multiplier", "think_multiplier"):
        value = getattr(table, key)
        if value and table.arrivals is not None:
            found.append((key, f"{value:g} does not go with open arrivals; allowed: 0"))
    return found
