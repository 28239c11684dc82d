"""Reads a plan file: TOML, `[quick]` and `--set` to a checked draft. Needs no server."""

from __future__ import annotations

import os
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from pgdyno.catalog import profile_names
from pgdyno.model.errors import PlanError
from pgdyno.plan.complaint import Complaint, refuse, shown
from pgdyno.plan.document import KINDS, PlanDocument, TargetTable
from pgdyno.plan.override import (
    Override,
    Path,
    apply_overrides,
    parse_override,
    quick_values,
    with_quick,
)
from pgdyno.plan.schema_errors import complaints_of

TWIN_SUFFIX = "-twin"
_SIZE_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class PlanDraft:
    """A plan whose file is in order; whether a server and a host can do it is not known yet."""

    document: PlanDocument
    source: str  # path, as given
    text: str  # the TOML
    quick: bool
    aa: bool
    overrides: tuple[str, ...]
    origins: Mapping[str, str]  # dotted key of target, workload, protocol -> who chose its value
    set_settings: frozenset[tuple[str, str]]  # (stage, setting) that --set chose


def read_plan(
    path: str | os.PathLike[str],
    overrides: Sequence[str] = (),
    quick: bool = False,
    aa: bool = False,
) -> PlanDraft:
    """Read and check a plan file.

    Args:
        path: The TOML file.
        overrides: Of `--set`, in order: `a.b=c`.
        quick: Use what `[quick]` changes.
        aa: Measure the first stage twice in every round, to learn the noise floor.

    Raises:
        PlanError: It cannot be read, or something in it is wrong; everything that is wrong is told.
    """
    source = os.fspath(path)
    text = _text(source)
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(
            f"{source}: not TOML: {_lower(str(error))}", "Nothing was touched."
        ) from error
    parsed = [parse_override(override) for override in overrides]
    complaints = [one for one in parsed if isinstance(one, Complaint)]
    chosen = [one for one in parsed if isinstance(one, Override)]
    quick_by_path, wrong_quick = quick_values(raw)
    complaints += wrong_quick
    if quick and not raw.get("quick"):
        complaints.append(Complaint("--quick", "the plan has no table quick"))
    final = with_quick(raw, quick_by_path) if quick else raw
    final, wrong_set = apply_overrides(final, chosen)
    complaints += wrong_set
    by_path: dict[Path, str] = dict.fromkeys(quick_by_path, "quick") if quick else {}
    by_path |= {one.path: f"--set {one.text}" for one in chosen}
    document = _document(final, by_path, complaints)
    if quick_by_path and not quick:  # a mistake there should not wait for the first --quick
        quick_paths = dict.fromkeys(quick_by_path, "quick")
        _document(with_quick(raw, quick_by_path), quick_paths, complaints)
    if document is not None:
        complaints += _meaning(document, aa)
    refuse(source, complaints)
    assert document is not None
    return PlanDraft(
        document=document,
        source=source,
        text=text,
        quick=quick,
        aa=aa,
        overrides=tuple(overrides),
        origins=_origins(document, source, set(quick_by_path) if quick else set(), chosen),
        set_settings=frozenset(
            (one.path[1], ".".join(one.path[3:]))
            for one in chosen
            if len(one.path) > 3 and one.path[0] == "stage" and one.path[2] == "settings"
        ),
    )


def _text(source: str) -> str:
    try:
        data = FilePath(source).read_bytes()
    except OSError as error:
        raise PlanError(
            f"plan {source} cannot be read: {_lower(error.strerror or str(error))}",
            "Name a TOML file; plans/ holds examples.",
        ) from error
    if len(data) > _SIZE_MAX_BYTES:
        raise PlanError(f"plan {source} has {len(data)} bytes, allowed are {_SIZE_MAX_BYTES}")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PlanError(f"plan {source} is not UTF-8: byte {error.start} is wrong") from error


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _document(
    raw: dict[str, Any], by_path: Mapping[Path, str], complaints: list[Complaint]
) -> PlanDocument | None:
    """The checked document; what is wrong is added to the complaints, with who chose the value."""
    try:
        return PlanDocument.model_validate(raw)
    except ValidationError as error:
        for loc, complaint in complaints_of(error, raw):
            path = _named(loc, raw)
            chooser = next((who for at, who in by_path.items() if path[: len(at)] == at), None)
            told = complaint
            if chooser == "quick":
                told = Complaint(f"quick.{complaint.where}", complaint.text)
            elif chooser is not None:
                told = Complaint(chooser, f"{complaint.where}: {complaint.text}")
            if told not in complaints:
                complaints.append(told)
        return None


def _named(loc: tuple[int | str, ...], raw: dict[str, Any]) -> Path:
    """A place in the document with the stage's name for its number, as `--set` has it."""
    if loc[:1] == ("stage",) and len(loc) > 1 and isinstance(loc[1], int):
        stage = raw["stage"][loc[1]]
        name = stage.get("name") if isinstance(stage, dict) else None
        return ("stage", str(name), *map(str, loc[2:]))
    return tuple(map(str, loc))


def _meaning(document: PlanDocument, aa: bool) -> list[Complaint]:
    """What the types alone do not say."""
    complaints = _target(document.target)
    workload = document.workload
    terminals = workload.terminals
    if terminals is not None and terminals < workload.connections:
        complaints.append(
            Complaint(
                "workload.terminals",
                f"{terminals} are fewer than connections = {workload.connections}, so that some"
                " would never be used; allowed: as many or more",
            )
        )
    if workload.threads is not None and workload.threads > workload.connections:
        complaints.append(
            Complaint(
                "workload.threads",
                f"{workload.threads} are more than connections = {workload.connections}, so that"
                " some would have nothing to do; allowed: as many or fewer",
            )
        )
    if not any(getattr(workload.mix, kind) for kind in KINDS):
        complaints.append(Complaint("workload.mix", "all weights are 0; allowed: one above 0"))
    names = [stage.name for stage in document.stage]
    if aa:
        names.append(names[0] + TWIN_SUFFIX)
    for name, count in Counter(names).items():
        if count > 1:
            complaints.append(Complaint(f"stage {name}", f"{count} stages have this name"))
    for stage in document.stage:
        if stage.profile is not None and stage.profile not in profile_names():
            complaints.append(
                Complaint(
                    f"stage {stage.name}: profile",
                    f"{shown(stage.profile)} is unknown; allowed: {', '.join(profile_names())}",
                )
            )
    return complaints


_FOREIGN_KEYS = {
    "embedded": ("bindir", "conninfo"),
    "installed": ("conninfo",),
    "running": ("bindir", "initdb"),
}
_NEEDED_KEY = {"installed": "bindir", "running": "conninfo"}


def _target(target: TargetTable) -> list[Complaint]:
    complaints = [
        Complaint(f"target.{key}", f"does not go with target.kind = {shown(target.kind)}")
        for key in _FOREIGN_KEYS[target.kind]
        if getattr(target, key)
    ]
    needed = _NEEDED_KEY.get(target.kind)
    if needed and not getattr(target, needed):
        complaints.append(
            Complaint(f"target.{needed}", f"is missing, {shown(target.kind)} needs it")
        )
    if target.conninfo and _holds_password(target.conninfo):
        complaints.append(
            Complaint(
                "target.conninfo",
                "holds a password, which would be stored with the results",
                "Set PGPASSWORD, or use ~/.pgpass.",
            )
        )
    return complaints


def _holds_password(conninfo: str) -> bool:
    if re.search(r"(^|[\s?&])(ssl)?password\s*=", conninfo):
        return True
    try:
        return "://" in conninfo and urlsplit(conninfo).password is not None
    except ValueError:
        return False


def _origins(
    document: PlanDocument, source: str, quick: set[Path], chosen: Sequence[Override]
) -> dict[str, str]:
    """Who chose each value of target, workload and protocol."""
    result: dict[str, str] = {}
    tables = {"target": document.target, "workload": document.workload}
    for name, table in {**tables, "protocol": document.protocol}.items():
        for field, info in type(table).model_fields.items():
            key = f"{name}.{info.alias or field}"
            result[key] = source if field in table.model_fields_set else "default"
    for path in quick:
        result[".".join(path)] = "quick"
    for one in chosen:
        if one.path[0] in ("target", "workload", "protocol") and len(one.path) > 1:
            result[".".join(one.path[:2])] = f"--set {one.text}"
    return result
