"""Hashes of what shapes the data of a fixture, and of what shapes the result of a trial.

A loaded database is used again exactly when its hash is the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from pgdyno.model.fixture_shape import FixtureShape
from pgdyno.model.plan import Protocol, Stage, Target, Workload
from pgdyno.model.settings import DiskFormat, ServerFacts
from pgdyno.model.workload import Tpcc
from pgdyno.plan.settings.values import BadValue, canonical

_IDENT_LETTERS = 16
_BLOCK_BYTES = 8192  # unless PostgreSQL was compiled otherwise
_COMPILED = {  # further ones of which a server wants its own in the control file
    "wal_block_size": _BLOCK_BYTES,
    "segment_size": 131_072,  # blocks
    "max_index_keys": 32,
    "max_identifier_length": 63,
}
# Major version to catalogue and control file of its releases; what is between releases has others.
_RELEASED = {
    12: DiskFormat(201909212, 1201),
    13: DiskFormat(202007201, 1300),
    14: DiskFormat(202107181, 1300),
    15: DiskFormat(202209061, 1300),
    16: DiskFormat(202307071, 1300),
    17: DiskFormat(202406281, 1700),
    18: DiskFormat(202506291, 1800),
}
_CHECKSUMS_BY_DEFAULT = 18  # major version of PostgreSQL


def fixture_shape(
    target: Target,
    workload: Workload,
    server: ServerFacts,
    rows_version: int | None = None,
    *,
    unlogged: bool = False,
) -> FixtureShape:
    """What shapes the data of a plan's database, and nothing else.

    Args:
        target: Of the plan.
        workload: Of the plan.
        server: What makes and runs the cluster.
        rows_version: Of the core's rows of this workload; None: none are loaded.
        unlogged: Whether its tables are unlogged.
    """  # fmt: skip
    return replace(
        _unreleased(_data_shape(workload), server),
        rows_version=rows_version,
        unlogged=unlogged or None,
        postgres_major=server.major,
        block_size=_compiled("block_size", server, _BLOCK_BYTES),
        checksums=_checksums(target, server),
        initdb=target.initdb,
    )


def _unreleased(shape: FixtureShape, server: ServerFacts) -> FixtureShape:
    """The shape with what a build stores otherwise than the releases of its major version.

    Two builds of one major version may refuse each other's data: two commits of a development
    branch, say. Told only where it matters, so that other fixtures keep their names.
    """
    compiled = {name: _compiled(name, server, usual) for name, usual in _COMPILED.items()}
    found = {name: value for name, value in compiled.items() if value != _COMPILED[name]}
    shape = replace(
        shape,
        wal_block_size=found.get("wal_block_size"),
        segment_size=found.get("segment_size"),
        max_index_keys=found.get("max_index_keys"),
        max_identifier_length=found.get("max_identifier_length"),
    )
    own = server.disk_format
    if own is None or own == _RELEASED.get(server.major):
        return shape
    return replace(shape, catalog_version=own.catalog_version, control_version=own.control_version)


def _compiled(name: str, server: ServerFacts, usual: int) -> int:
    knob = server.knobs.get(name)
    return int(knob.default) if knob and knob.default else usual


def _data_shape(workload: Workload) -> FixtureShape:
    """What of a workload shapes its data."""
    data = workload.data
    tpcc = workload.tpcc or (Tpcc(data.scale) if data.kind == "tpcc" else None)
    setup = None if data.setup is None else hashlib.sha256(data.setup.text.encode()).hexdigest()
    shape = FixtureShape(
        data.kind,
        workload.seed,
        setup=setup,
        databases=workload.databases if workload.databases > 1 else None,
    )
    if tpcc is not None:
        order = tpcc.order if tpcc.order != "warehouse" else None
        return replace(
            shape, schema=tpcc.schema, warehouses=tpcc.warehouses, foreign_keys=tpcc.foreign_keys,
            partitions=tpcc.partitions, order=order, blocks=tpcc.blocks,
        )  # fmt: skip
    if data.kind == "tpcb":
        own = workload.pgbench
        return replace(shape, scale=data.scale, foreign_keys=own.foreign_keys if own else False)
    return shape


def fixture_ident(shape: FixtureShape) -> str:
    """The name of a fixture, from what is in its shape."""
    return _digest({key: one for key, one in asdict(shape).items() if one is not None})


def trial_idents(
    target: Target,
    server: ServerFacts,
    protocol: Protocol,
    stage: Stage,
) -> list[str]:
    """The names of what the trials of a stage measure, by their rounds.

    Reasons, notes and how results are judged are left out; so is the spelling of values: 1GB and
    1024MB are the same.
    """
    kept = {key: getattr(protocol, key) for key in ("warmup_s", "window_s", "drain_s", "prewarm")}
    # What came later, only where it is used: other trials keep their names.
    kept |= {"crash_recovery": True} if protocol.crash_recovery else {}
    kept |= {} if protocol.checkpoint_before else {"checkpoint_before": False}
    kept |= {} if protocol.telemetry == "default" else {"telemetry": protocol.telemetry}
    kept |= {} if protocol.fleet is None else {"fleet": list(protocol.fleet.hosts)}
    shape = {
        "target": _target(target),
        "server": server.version_num,
        "workload": _without_paths(_driven(stage.workload)),
        "stage": stage.name,
        "settings": {one.name: _spelt(one.name, one.value, server) for one in stage.settings},
        # Only where one is named, so that other trials keep their names.
        **({"build": stage.build.ident} if stage.build else {}),
        **({"folder": stage.folder} if stage.folder else {}),
        **({"host": {one.name: one.value for one in stage.host}} if stage.host else {}),
        **({"pooler": asdict(stage.pooler)} if stage.pooler else {}),
        **{str(key): True for key, is_so in stage.flags.items() if is_so},
    }  # fmt: skip
    return [
        _digest({**shape, "protocol": kept | _followed(protocol, stage, one), "round": one})
        for one in range(1, protocol.rounds + 1)
    ]


def _target(target: Target) -> dict[str, Any]:
    """The target; what several servers have stands only where there are several."""
    kept = asdict(target)
    if not target.servers:
        del kept["servers"], kept["share"]
    for later in ("replica", "replicas"):
        if not kept[later]:
            del kept[later]
    return kept


def _followed(protocol: Protocol, stage: Stage, round_number: int) -> dict[str, Any]:
    if stage.checkpoints == "cycles":
        return {"cycles": protocol.cycles}
    if stage.checkpoints == "anchors" and round_number <= protocol.anchors:
        return {"anchor": True}
    return {}


def _driven(workload: Workload) -> dict[str, Any]:
    """The workload; a key that came later stands only where it matters."""
    driven = asdict(workload)
    if not workload.replica_connections:
        del driven["replica_connections"]
    if workload.tpcc is not None and workload.tpcc.blocks is None:
        del driven["tpcc"]["blocks"]
    if workload.engine == "pgdyno":
        del driven["engine"]
    if workload.script is not None:
        for key in ("witnesses", "invariants"):
            if not driven["script"][key]:
                del driven["script"][key]
    return driven


def _without_paths(node: Any) -> Any:  # noqa: ANN401  any JSON
    """Files count by what stands in them, not by where they lie."""
    if isinstance(node, dict):
        return {key: _without_paths(one) for key, one in node.items() if key != "path"}
    if isinstance(node, list | tuple):
        return [_without_paths(one) for one in node]
    return node


def _checksums(target: Target, server: ServerFacts) -> bool | None:
    if target.kind == "running":
        return None  # a server of somebody else has them, or not: they are none of the fixture's
    if "--no-data-checksums" in target.initdb:
        return False
    asked = any(argument in ("--data-checksums", "-k") for argument in target.initdb)
    return asked or server.major >= _CHECKSUMS_BY_DEFAULT


def _spelt(name: str, value: str, server: ServerFacts) -> str:
    knob = server.knobs.get(name)
    if knob is None:
        return value
    try:
        return canonical(knob, value)
    except BadValue:  # pragma: no cover  refused before
        return value


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_IDENT_LETTERS]
