"""The core's JSON for each kind of workload, from plans; and what it answers, read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pgdyno.catalog.contract import schema
from pgdyno.drive import driver
from pgdyno.drive.spec import drive_spec
from pgdyno.model.connection import Connection, Host
from pgdyno.model.plan import Plan
from pgdyno.model.proof import Slowdown
from pgdyno.model.workload import Tpcc, Workload
from pgdyno.plan import read_plan
from pgdyno.plan.resolve.plan import resolve
from pgdyno.workload.spec import workload_spec
from tests.data.builds import builds_of
from tests.data.servers import HOST, installed
from tests.data.workloads import tpcb, tpcc
from tests.unit.drive.test_driver import COUNTS, KIND, QUANTILES, RESULT

FOLDER = Path(__file__).parents[2] / "data" / "plans" / "good"
CONNECTION = Connection("/run", 5432, "u", "bench", others=(Host("b", 5433, "secret"),))
SHAPES = {
    "tpcc": "TpccSpec", "mix": "MixSpec", "script": "ScriptSpec", "tpcb": "PgbenchSpec",
    "select-only": "PgbenchSpec", "simple-update": "PgbenchSpec",
}  # fmt: skip


def resolved(name: str, *overrides: str) -> Plan:
    return resolve(read_plan(FOLDER / name, overrides), installed(18), HOST)


def spec_of(name: str, stage: str | None = None) -> dict[str, Any]:
    plan = resolved(name)
    workload = plan.stage(stage).workload if stage else plan.workload
    return drive_spec(CONNECTION, workload, plan.protocol, None)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_every_good_plan_has_a_specification(path: Path) -> None:
    draft = read_plan(path)
    plan = resolve(draft, installed(18), HOST, builds=builds_of(draft, installed(18)))
    for stage in plan.stages:
        spec: dict[str, Any] = {
            **drive_spec(
                CONNECTION,
                stage.workload,
                plan.protocol,
                {"c_last": 1},
                replica=CONNECTION if stage.workload.replica_connections else None,
            )
        }
        assert json.loads(json.dumps(spec, allow_nan=False)) == spec
        assert spec["workload"]["kind"] == stage.workload.kind
        jsonschema.validate(spec, schema("DriveSpec"))
        jsonschema.validate(spec["workload"], schema(SHAPES[stage.workload.kind]))


def test_slowdowns_are_told_and_are_what_the_core_reads() -> None:
    plan = resolved(min(FOLDER.glob("*.toml")).name)
    slower = (Slowdown(0.0, 4.0, spin_ns=5), Slowdown(4.0, 8.0, delay_ns=7))
    spec = drive_spec(CONNECTION, plan.workload, plan.protocol, None, slower)
    assert spec["slowdowns"] == [
        {"from_s": 0.0, "until_s": 4.0, "spin_ns": 5, "delay_ns": 0},
        {"from_s": 4.0, "until_s": 8.0, "spin_ns": 0, "delay_ns": 7},
    ]
    jsonschema.validate(spec, schema("DriveSpec"))
    assert "slowdowns" not in drive_spec(CONNECTION, plan.workload, plan.protocol, None)


def test_tpcc_is_told_with_its_constants() -> None:
    workload = Workload("tpcc", 7, tpcc=Tpcc(2))

    spec = workload_spec(workload, {"c_last": 100})

    assert spec["c_load"] == {"c_last": 100}
    assert (spec["warehouses"], spec["seed"], spec["face"]) == (2, 7, "statement")
    assert not {"arrivals", "steps", "parts"} & spec.keys()


def test_client_keys_reach_the_core() -> None:
    spec = spec_of("clients.toml", "crowd")

    assert spec["arrivals"] == {"kind": "open", "per_s": 250.5, "spacing": "poisson"}
    assert (spec["connections"], spec["terminals"]) == (6, 600)
    assert spec["workload"]["face"] == "pipeline"


def test_steps_and_databases_reach_the_core() -> None:
    spec = spec_of("tpcb.toml")

    assert spec["steps"] == [
        {"seconds": 20.0, "from": 0.5, "to": 0.5}, {"seconds": 40.0, "from": 0.5, "to": 1.0},
    ]  # fmt: skip
    assert [part["database"] for part in spec["parts"]] == ["bench", "bench_2", "bench_3"]
    assert spec["workload"]["scale"] == 5


def test_a_mix_is_read_and_a_script_is_sent_as_text() -> None:
    mix, script = spec_of("mix.toml")["workload"], spec_of("script.toml")["workload"]

    assert [one["name"] for one in mix["transactions"]] == ["take", "add"]
    assert mix["invariants"][0]["title"] == "states are 0 or 1"
    assert [one["weight"] for one in script["scripts"]] == [3.0, 1.0]
    assert "pgbench_accounts" in script["scripts"][0]["text"]
    assert script["scale"] == 2


def test_what_is_loaded_is_the_data_not_the_script() -> None:
    assert resolved("script.toml").workload.to_load == tpcb(2)
    assert resolved("mix.toml").workload.to_load is None
    assert resolved("script.toml", "workload.data=tpcc").workload.to_load == tpcc(2, seed=42)
    itself = resolved("smallest.toml").workload
    assert itself.to_load is itself


def test_what_a_newer_driver_tells_is_kept() -> None:
    statement = {"name": "BEGIN", "count": 9, "histogram": "aGk=", "ns": QUANTILES}
    kind = {"kind": "new_order", **KIND, "queue": "aGk=", "queue_ns": QUANTILES,
            "keying_mean_s": 0.1, "think_mean_s": 0.2, "statements": [statement]}  # fmt: skip
    step = {"unix_ns": [1, 2], "seconds": 1.0, "factor": [0.5, 1.0], "ended": 4, "kinds": [
        {"kind": "new_order", "counts": COUNTS, "response": "aGk=", "response_ns": QUANTILES},
    ]}  # fmt: skip
    seconds = RESULT["seconds"] | {"due": [3, 4], "skipped": [0, 1], "factor": [0.5, 1.0]}

    driven = driver.parse_result(RESULT | {
        "kinds": [kind], "seconds": seconds, "steps": [step], "late": "aGk=", "late_ns": QUANTILES,
        "parts": [{"name": "bench", "kinds": [kind]}],
        "gaps": [{"start_unix_ns": 5, "end_unix_ns": 9, "connections": 2}],
        "stream_digest": {"requests": 4, "sum": "00ff"},
    })  # fmt: skip

    assert driven.kinds[0].statements[0].name == "BEGIN"
    assert driven.kinds[0].queue_ns == QUANTILES
    assert driven.steps[0].kinds[0].kind == "new_order"
    assert driven.parts[0].kinds[0].response == "aGk="
    assert driven.gaps[0].end_unix_ns == 9
    assert driven.stream_digest is not None
    assert driven.stream_digest.sum == "00ff"
    series = {one.name: one for one in driven.series}
    assert series["driver.skipped"].values.tolist() == [0.0, 1.0]
    assert series["driver.factor"].kind == "gauge"


def test_rates_of_any_workload_are_per_second() -> None:
    driven = driver.parse_result(RESULT)

    assert driven.committed == 14
    assert driven.tps == 14 / 30
