"""Hashes of what shapes the data of a fixture, and of what shapes the result of a trial.

A loaded database is used again exactly when its hash is the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pgdyno.model.plan import Protocol, Stage, Target, Workload
from pgdyno.model.settings import ServerFacts
from pgdyno.plan.values import BadValue, canonical

_IDENT_LETTERS = 16
_CHECKSUMS_BY_DEFAULT = 18  # major version of PostgreSQL


def fixture_shape(target: Target, workload: Workload, server: ServerFacts) -> dict[str, Any]:
    """What shapes the data of a plan's database, and nothing else."""
    block = server.knobs.get("block_size")
    return {
        "workload": workload.kind,
        "schema": workload.schema,
        "warehouses": workload.warehouses,
        "seed": workload.seed,
        "foreign_keys": workload.foreign_keys,
        "postgres_major": server.major,
        "block_size": int(block.default) if block and block.default else 8192,
        "checksums": _checksums(target, server),
        "initdb": list(target.initdb),
    }


def fixture_ident(shape: Mapping[str, Any]) -> str:
    """The name of a fixture, from its shape."""
    return _digest(shape)


def trial_ident(
    target: Target,
    server: ServerFacts,
    workload: Workload,
    protocol: Protocol,
    stage: Stage,
    round_number: int,
) -> str:
    """The name of what one trial measures.

    Reasons, notes and how results are judged are left out; so is the spelling of values: 1GB and
    1024MB are the same.
    """
    return _digest({
        "target": asdict(target),
        "server": server.version_num,
        "workload": asdict(workload),
        "protocol": {
            key: getattr(protocol, key) for key in ("warmup_s", "window_s", "drain_s", "prewarm")
        },
        "stage": stage.name,
        "settings": {one.name: _spelt(one.name, one.value, server) for one in stage.settings},
        "round": round_number,
    })  # fmt: skip


def _checksums(target: Target, server: ServerFacts) -> bool:
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
