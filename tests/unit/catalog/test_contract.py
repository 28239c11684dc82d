"""The contract with the core: records read what it writes, bounds and defaults are its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import pytest
from pydantic import TypeAdapter

from pgdyno import core
from pgdyno.catalog import contract
from pgdyno.disk.preloaded import Stocked
from pgdyno.disk.record import Recorded, RecordSpan
from pgdyno.drive.null import NullStatus
from pgdyno.drive.result import RunResult
from pgdyno.model.description import Description
from pgdyno.model.drill import Made
from pgdyno.model.loading import ExportReport, LoadEstimate, LoadReport
from pgdyno.model.progress import DriveProgress, ExportProgress, LoadProgress
from pgdyno.model.repair import RedoBegin, RedoNeeds
from pgdyno.model.wal import WalNamed, WalPart, WalSummary
from pgdyno.model.workload import Pgbench, Tpcc, Workload

Schema = dict[str, Any]
READ: dict[str, type] = {
    "RunResult": RunResult, "DriveProgress": DriveProgress, "LoadProgress": LoadProgress,
    "LoadReport": LoadReport, "LoadEstimate": LoadEstimate, "ExportProgress": ExportProgress,
    "ExportReport": ExportReport, "NullStatus": NullStatus, "Described": Description,
    "WalPart": WalPart, "WalNamed": WalNamed, "WalSummary": WalSummary,
    "RedoBegin": RedoBegin, "RedoNeeds": RedoNeeds,
    "Recorded": Recorded, "RecordSpan": RecordSpan, "Made": Made, "Stocked": Stocked,
}  # fmt: skip
UNREAD = {
    "RunResult": {"statements", "tally"},
    "RedoBegin": {"full_page_writes"},
    "RedoNeeds": {"blocks_visibility"},
}
"""What the core writes and nobody reads."""


@dataclass
class Held:
    """A schema of the core against one of a record: what the record would not accept."""

    core: Schema
    record: Schema
    complaints: list[str]
    unread: set[str]

    def accepts(self, record: Schema, core: Schema, path: str) -> bool:
        """Whether the record takes everything that the core may write there."""
        wanted = list(_alternatives(self.core, core))
        offered = list(_alternatives(self.record, record))
        for one in wanted:
            tries = [Held(self.core, self.record, [], set()) for _ in offered]
            fits = [
                held
                for held, other in zip(tries, offered, strict=True)
                if held._fits(other, one, path) and not held.complaints
            ]
            if fits:
                self.unread |= fits[0].unread
                continue
            nearest = min(tries, key=lambda held: len(held.complaints), default=None)
            self.complaints += (nearest.complaints if nearest else []) or [f"{path}: {one}"]
        return not self.complaints

    def _fits(self, record: Schema, core: Schema, path: str) -> bool:
        if not record:  # anything
            return True
        kinds = {record.get("type"), "integer"} if record.get("type") == "number" else None
        if core.get("type") not in (kinds or {record.get("type")}):
            self.complaints.append(f"{path}: {core.get('type')} instead of {record.get('type')}")
            return False
        words = record.get("enum")
        if words and not set(core.get("enum", ["any text"])) <= set(words):
            self.complaints.append(f"{path}: {core.get('enum')} instead of {words}")
            return False
        if record["type"] == "array":
            return self._array(record, core, path)
        return record["type"] != "object" or self._object(record, core, path)

    def _array(self, record: Schema, core: Schema, path: str) -> bool:
        if "prefixItems" not in record:
            items = core.get("items") or {"anyOf": core["prefixItems"]}
            return self.accepts(record.get("items", {}), items, f"{path}[]")
        size = len(record["prefixItems"])
        if core.get("minItems") != size or core.get("maxItems") != size:
            self.complaints.append(f"{path}: not exactly {size} items")
            return False
        theirs = core.get("prefixItems") or [core["items"]] * size
        pairs = zip(record["prefixItems"], theirs, strict=True)
        return all(self.accepts(ours, their, f"{path}[]") for ours, their in pairs)

    def _object(self, record: Schema, core: Schema, path: str) -> bool:
        known, others = record.get("properties", {}), record.get("additionalProperties")
        theirs = core.get("properties", {})
        for name in set(record.get("required", ())) - set(core.get("required", ())):
            self.complaints.append(f"{path}.{name}: is not always written")
        for name in set(known) - set(theirs):
            self.complaints.append(f"{path}.{name}: is never written")
        for name, schema in theirs.items():
            if name in known:
                self.accepts(known[name], schema, f"{path}.{name}")
            elif isinstance(others, dict) or others is True:
                self.accepts(others if isinstance(others, dict) else {}, schema, f"{path}.{name}")
            else:
                self.unread.add(name)
        if isinstance(more := core.get("additionalProperties"), dict):
            self.accepts(others if isinstance(others, dict) else {}, more, f"{path}.*")
        return not self.complaints


def _alternatives(root: Schema, schema: Schema | bool) -> Iterator[Schema]:
    """The schema without references and unions: each of what it may be."""
    if schema is True:
        yield {}
        return
    assert isinstance(schema, dict)
    if reference := schema.get("$ref"):
        yield from _alternatives(root, root["$defs"][reference.rpartition("/")[2]])
        return
    if several := schema.get("anyOf") or schema.get("oneOf"):
        for one in several:
            yield from _alternatives(root, one)
        return
    if "const" in schema:
        yield {"type": "string", "enum": [schema["const"]]}
        return
    if isinstance(kinds := schema.get("type"), list):
        for kind in kinds:
            yield schema | {"type": kind}
        return
    yield schema


def held(name: str, kind: type) -> Held:
    """A record against what the core says of it."""
    record = TypeAdapter(kind).json_schema()
    found = Held(contract.schema(name), record, [], set())
    found.accepts(record, found.core, name)
    return found


@pytest.mark.parametrize("name", sorted(READ))
def test_records_read_what_the_core_writes(name: str) -> None:
    found = held(name, READ[name])

    assert not found.complaints
    assert found.unread == UNREAD.get(name, set())


@dataclass(frozen=True)
class Wrong:
    """Not a progress of the core."""

    phase: int
    connected: int
    told: str


def test_a_record_of_another_shape_is_noticed() -> None:
    complaints = held("DriveProgress", Wrong).complaints

    assert any("phase" in one for one in complaints)
    assert any("told: is not always written" in one for one in complaints)


def test_every_shape_that_is_written_has_its_record() -> None:
    written = {name for name in contract.shapes() if not name.endswith("Spec")}

    assert written == set(READ)


DIGESTS = {
    1: "e74025b5d6c1046e",
    2: "e74025b5d6c1046e",
    3: "4cc144b008c8d2d7",
    4: "14e7e47c01a0865c",
    5: "653cbc61cd1cc571",
    6: "8eb19272c53cde72",
    7: "920c0eb565c25374",
    8: "39564c2d64855bba",
    9: "8ee9ca2733b208d3",
    10: "e5f058874892827f",
    11: "a6a095b2bbd510df",
    12: "4087e336baa51da0",
    13: "319306ffb1cb8877",
    14: "5bb42d1d916a06fb",
    15: "2afdb8191dbbf397",
    16: "a9850296a4986e73",
    17: "a9850296a4986e73",
}
"""Of the shapes of each version of the contract, without what they say for people.

Version 2 gives them one by one, version 3 more of the bounds, version 4 the functions of a load,
version 5 WAL, version 6 exchanges that are slower on purpose, version 7 recorded disks and
the ledger of a load, version 8 witnesses of mixes and scripts, and faults of a part of a disk,
version 9 what redo of a crashed cluster needs, and pages for it, and hosts that drive a part of a
load, version 10 records of disks that a library writes, and blocks that WAL names, version 11
servers that have a part of a load, and a replica that answers reads, version 12 a load that hosts
share, version 13 what is said of tables that a load leaves behind, version 14 what transactions of
each kind wrote, version 15 response times over time, version 16 judges of pages, whose answers are
no JSON, version 17 those that read the crashed cluster's files themselves.
"""


def test_shapes_that_change_raise_the_version() -> None:
    shapes = {name: contract.schema(name) for name in contract.shapes()}
    text = json.dumps(_silent(shapes), sort_keys=True)

    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    assert digest == DIGESTS[core.VERSION], "raise VERSION in both cores, note its digest"


def _silent(schema: object) -> object:
    if isinstance(schema, dict):
        return {key: _silent(one) for key, one in schema.items() if key != "description"}
    return [_silent(one) for one in schema] if isinstance(schema, list) else schema


def test_bounds_and_defaults_are_the_cores() -> None:
    assert contract.limits("DriveSpec", "terminals") == (1, 10_000_000)
    assert contract.limits("DriveSpec", "arrivals.per_s") == (0.001, 10_000_000)
    assert contract.limits("DriveSpec", "steps.factor") == (0, 1000)
    assert contract.limits("TpccSpec", "partitions.count") == (1, 10_000)
    assert contract.greatest("DriveSpec", "share.hosts") == 1000
    assert contract.default("TpccSpec", "warehouses") == 10
    with pytest.raises(LookupError):
        contract.limits("DriveSpec", "windows")


@pytest.mark.parametrize(
    ("shape", "record"), [("TpccSpec", Tpcc(10)), ("PgbenchSpec", Pgbench(10))]
)
def test_records_have_the_cores_defaults(shape: str, record: Tpcc | Pgbench) -> None:
    known = contract.schema(shape)["properties"]

    for name, value in asdict(record).items():
        assert value == known[name].get("default"), name


@pytest.mark.parametrize("shape", ["TpccSpec", "PgbenchSpec", "MixSpec", "ScriptSpec"])
@pytest.mark.parametrize("key", ["face", "isolation"])
def test_a_workload_is_asked_for_as_the_core_would(shape: str, key: str) -> None:
    assert getattr(Workload("tpcc", 1), key) == contract.default(shape, key)
