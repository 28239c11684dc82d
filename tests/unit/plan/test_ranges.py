"""Ranges and defaults of a plan's keys are those that the core publishes: none is stated twice."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from pgdyno.api.asked import Asked
from pgdyno.catalog.contract import limits, most, schema
from pgdyno.model.errors import PlanError
from pgdyno.plan.schema.plan_file import ProtocolTable
from pgdyno.plan.schema.workload_table import (
    ArrivalsTable,
    MixFileTable,
    PgbenchTable,
    ScriptTable,
    StepTable,
    TpccTable,
)

RANGES: list[tuple[type[BaseModel], str, str, str]] = [
    (TpccTable, "connections", "DriveSpec", "connections"),
    (TpccTable, "terminals", "DriveSpec", "terminals"),
    (TpccTable, "threads", "DriveSpec", "threads"),
    (TpccTable, "requests_max", "DriveSpec", "requests_max"),
    (TpccTable, "warehouses", "TpccSpec", "warehouses"),
    (PgbenchTable, "scale", "PgbenchSpec", "scale"),
    (MixFileTable, "scale", "PgbenchSpec", "scale"),
    (MixFileTable, "scale", "TpccSpec", "warehouses"),  # of whichever data
    (StepTable, "seconds", "DriveSpec", "steps.seconds"),
    (ArrivalsTable, "rate", "DriveSpec", "arrivals.per_s"),
    (ProtocolTable, "warmup_s", "DriveSpec", "warmup_s"),
    (ProtocolTable, "drain_s", "DriveSpec", "drain_s"),
]


@pytest.mark.parametrize(("table", "key", "shape", "name"), RANGES)
def test_a_key_has_the_range_of_the_core(
    table: type[BaseModel], key: str, shape: str, name: str
) -> None:
    found = table.model_json_schema()["properties"][key]
    [ranged] = [one for one in (found, *found.get("anyOf", ())) if "minimum" in one]
    low, high = limits(shape, name)

    assert low is not None
    assert high is not None
    assert (ranged["minimum"], ranged["maximum"]) == (low, high)


def test_a_replica_has_as_many_connections_as_the_core_takes() -> None:
    _, high = limits("DriveSpec", "replica.connections")
    assert high is not None

    TpccTable.model_validate({"replica_connections": high})
    with pytest.raises(ValidationError, match=f"less than or equal to {high}"):
        TpccTable.model_validate({"replica_connections": high + 1})


TABLES: list[tuple[type[BaseModel], str]] = [
    (TpccTable, "TpccSpec"),
    (PgbenchTable, "PgbenchSpec"),
    (MixFileTable, "MixSpec"),
    (ScriptTable, "ScriptSpec"),
    (ProtocolTable, "DriveSpec"),
]
OTHERWISE = {(ProtocolTable, "warmup_s")}  # the server of a trial has just been started


@pytest.mark.parametrize(("table", "shape"), TABLES)
def test_a_key_has_the_default_of_the_core(table: type[BaseModel], shape: str) -> None:
    known = schema(shape)["properties"]
    compared = set()
    for name, field in table.model_fields.items():
        key = field.alias or name
        if "default" not in known.get(key, {}) or (table, key) in OTHERWISE:
            continue
        ours = field.default
        if isinstance(ours, BaseModel):
            ours = ours.model_dump()
        assert (list(ours) if isinstance(ours, tuple) else ours) == known[key]["default"], key
        compared.add(key)
    assert len(compared) >= 2


def test_there_are_so_many_steps_and_databases_as_the_core_takes() -> None:
    step = {"seconds": 1, "factor": 1}
    steps, parts = most("DriveSpec", "steps"), most("DriveSpec", "parts")

    TpccTable.model_validate({"steps": [step] * steps, "databases": parts})
    with pytest.raises(ValidationError, match=f"at most {steps}"):
        TpccTable.model_validate({"steps": [step] * (steps + 1)})
    with pytest.raises(ValidationError, match=f"less than or equal to {parts}"):
        TpccTable.model_validate({"databases": parts + 1})


def test_a_script_has_any_weight_that_the_core_takes() -> None:
    _, high = limits("ScriptSpec", "scripts.weight")
    assert high is not None
    scripts = TypeAdapter(ScriptTable)

    scripts.validate_python({"kind": "script", "file": f"a.sql@{high}"})
    with pytest.raises(ValidationError, match=f"a weight of 0 to {high}"):
        scripts.validate_python({"kind": "script", "file": f"a.sql@{int(high) + 1}"})


@pytest.mark.parametrize("rate", [0.0, 0.0009, 10_000_001.0])
def test_a_rate_beyond_the_core_is_refused_with_both_limits(rate: float) -> None:
    low, high = limits("DriveSpec", "arrivals.per_s")

    with pytest.raises(PlanError, match=rf"rate is .*, allowed are {low} to {high}"):
        Asked("tpcb", rate=rate).refuse_strangers()
    for allowed in (low, high):
        Asked("tpcb", rate=allowed).refuse_strangers()
