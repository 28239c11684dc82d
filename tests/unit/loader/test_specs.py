"""What Python writes for the core's loader, exporter and null server, held against its shapes."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pgdyno.catalog.contract import schema
from pgdyno.drive.null import Hold, null_spec
from pgdyno.loader.spec import How, Intent, export_spec, load_spec
from pgdyno.model.connection import Connection, Host
from pgdyno.model.record_json import JsonObject
from pgdyno.model.workload import Partitions, Tpcc, Workload
from tests.data.workloads import tpcb, tpcc

CONNECTION = Connection("/run", 5432, "u", "bench", others=(Host("b", 5433, "secret"),))
PARTS = Partitions("hash", 4)
PARTED = Workload("tpcc", 7, tpcc=Tpcc(8, "bmsql", "benchmarksql-5", True, PARTS, "arrival"))
WORKLOADS = {"tpcc": tpcc(2), "parted": PARTED, "tpcb": tpcb(3)}
INTENTS: tuple[Intent | None, ...] = (None, "drop_ours", "resume", "top_up")
HOWS = [
    *(How(intent=intent) for intent in INTENTS),
    How(connections=4, server_memory_bytes=1 << 30, copies="batches"), How(copies="tables"),
    How(part="reach"), How(intent="top_up", part="begin"), How(kept=False),
]  # fmt: skip
AT_UNIX_S = 1_700_000_000


def hold_against(shape: str, spec: JsonObject) -> None:
    """As it crosses; and that a key of another name would have been noticed."""
    crossing: dict[str, Any] = json.loads(json.dumps(spec, allow_nan=False))
    jsonschema.validate(crossing, schema(shape))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(copy.deepcopy(crossing) | {"told": 1}, schema(shape))


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("how", HOWS, ids=str)
def test_a_load_is_of_the_cores_shape(workload: str, how: How) -> None:
    spec = load_spec(CONNECTION, WORKLOADS[workload], how, AT_UNIX_S)

    hold_against("LoadSpec", spec)
    assert (how.intent is None) or spec[how.intent] is True


def test_what_becomes_of_tables_that_are_left_is_said_by_who_knows() -> None:
    def said(how: How) -> object:
        return load_spec(CONNECTION, tpcc(2), how, AT_UNIX_S).get("remains")

    ours = said(How())
    assert ours == said(How(part="begin")) == said(How(intent="resume"))
    assert str(ours).startswith(
        "The tables of the load remain in database bench, incomplete; go on"
    )
    assert said(How(kept=False)) == "What was loaded is removed."
    assert said(How(part="reach")) is None


def test_a_hosts_part_of_a_load_is_of_the_cores_shape() -> None:
    spec = load_spec(CONNECTION, tpcc(2), How(), AT_UNIX_S)

    hold_against("LoadSpec", spec | {"part": {"copy": {"host": 2, "hosts": 3}}})
    for part in ("whole", {"copy": {"host": 0, "hosts": 0}}, {"copy": {"host": 1001, "hosts": 1}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(spec | {"part": part}, schema("LoadSpec"))


@pytest.mark.parametrize("threads", [None, 1, 64])
@pytest.mark.parametrize("workload", ["tpcc", "parted"])
def test_an_export_is_of_the_cores_shape(workload: str, threads: int | None) -> None:
    spec = export_spec(Path("files"), 7, WORKLOADS[workload], AT_UNIX_S, threads)

    hold_against("ExportSpec", spec)
    assert str(spec["folder"]).startswith("/")


@pytest.mark.parametrize("hold", [None, Hold(3, 2.5), Hold(1, 1.0, exponential=True)])
def test_a_null_server_is_of_the_cores_shape(hold: Hold | None) -> None:
    for workload in WORKLOADS.values():
        hold_against("NullSpec", null_spec("/tmp/x", workload, 2, hold))


@pytest.mark.parametrize(
    ("shape", "spec"),
    [
        ("LoadSpec", load_spec(CONNECTION, tpcc(2), How(connections=0), AT_UNIX_S)),
        ("ExportSpec", export_spec(Path("x"), 7, tpcc(2), AT_UNIX_S, 65)),
        ("NullSpec", null_spec("/tmp/x", tpcc(2), 0, None)),
        ("NullSpec", null_spec("/tmp/x", tpcc(2), 1, Hold(1, 0.5))),
    ],
)
def test_what_the_core_would_refuse_is_out_of_its_published_range(
    shape: str, spec: JsonObject
) -> None:
    with pytest.raises(jsonschema.ValidationError, match=r"minimum|maximum"):
        jsonschema.validate(json.loads(json.dumps(spec)), schema(shape))
