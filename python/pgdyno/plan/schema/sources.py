"""Files that a plan names: the plan itself, mixes, scripts, SQL of a setup."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from pgdyno.model.errors import PlanError
from pgdyno.model.text import visible
from pgdyno.plan.schema.complaint import Complaint
from pgdyno.plan.schema.errors import unknown_key
from pgdyno.plan.schema.files import BadFile, file_meant, text_file
from pgdyno.plan.schema.toml import BadToml, parse_toml, toml_key
from pgdyno.plan.schema.workload_table import (
    MixFileTable,
    ScriptTable,
    WorkloadTable,
    path_and_weight,
)

MIX_KEYS = ("transactions", "variables", "invariants")
"""Tables of a mix; how fast and how often it is driven, and its scale, the plan says."""

_WHERE = (
    "Paths are relative to the folder of the plan; what they name is stored in the run file, so"
    " it must lie in that folder."
)


def text_of(path: Path, what: str, hint: str, within: Path | None = None) -> str:
    """The text of a file; see `files.text_file`.

    Raises:
        PlanError: It cannot be read, is not a regular file, larger than a mebibyte, not UTF-8, or
            not below `within`.
    """
    try:
        return text_file(path, within=within)
    except BadFile as error:
        if near := file_meant(path):
            hint = f"Did you mean {visible(near.name)}?"
        raise PlanError(f"{what} {error}", hint) from error


def read_sources(
    tables: Iterable[WorkloadTable], folder: Path, complaints: list[Complaint]
) -> dict[str, str]:
    """The files that workloads name, by their paths as given; relative ones lie in `folder`."""
    found: dict[str, str] = {}
    refused: set[str] = set()
    for table in tables:
        for key, path in _paths(table):
            if path in found or path in refused:
                continue
            try:
                text = text_of(folder / path, path, _WHERE, within=folder)
                if isinstance(table, MixFileTable) and key == "file":
                    check_mix(path, text)
                found[path] = text
            except PlanError as error:
                refused.add(path)
                complaints.append(Complaint(f"workload.{key}", error.fact, error.hint))
    return found


def check_mix(path: str, text: str) -> None:
    """Look whether a mix is TOML with the tables of a mix; what stands in them the core checks.

    Raises:
        PlanError: It is not.
    """
    try:
        raw = parse_toml(text)
    except BadToml as error:
        raise PlanError(f"{path} is not TOML: {error}", error.hint) from error
    for key in raw:
        if key not in MIX_KEYS:
            raise PlanError(f"{path}: {toml_key(key)}: {unknown_key(key, list(MIX_KEYS))}")
    try:
        json.dumps(raw, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise PlanError(
            f"{path} holds a date, a time or a number that is not finite",
            "Write dates as text.",
        ) from error


def _paths(table: WorkloadTable) -> list[tuple[str, str]]:
    """(key, path) of the files of a workload."""
    if not isinstance(table, MixFileTable | ScriptTable):
        return []
    files = [table.file] if isinstance(table, MixFileTable) else table.file
    paths = [("file", path_and_weight(one)[0]) for one in files]
    return [*paths, ("setup", table.setup)] if table.setup else paths
