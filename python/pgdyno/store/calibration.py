"""The file of ceilings, `calibration.json`: read, and added to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from pgdyno.folders import write_file
from pgdyno.model.calibration import Ceiling, Machine
from pgdyno.model.errors import StoreError, TargetError
from pgdyno.model.record_json import json_value
from pgdyno.plan.schema.files import BadFile, text_file

_VERSION = 1
_NAME = "calibration.json"
_BYTES_MAX = 64 << 20
_CEILINGS = TypeAdapter(tuple[Ceiling, ...])


def read_ceilings(home: Path) -> tuple[Ceiling, ...]:
    """All ceilings in the folder, of every machine and version; none where there is no file.

    Raises:
        StoreError: The file cannot be read.
    """
    path = calibration_path(home)
    try:
        text = text_file(path, _BYTES_MAX)
    except BadFile as error:
        if not path.exists():
            return ()
        raise StoreError(f"{path} {error}") from error
    try:
        document = json_value(text)
        if document["version"] != _VERSION:
            raise StoreError(f"{path} has version {document['version']}, expected {_VERSION}")
        return _CEILINGS.validate_python(document["ceilings"])
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise StoreError(
            f"{path} does not hold ceilings: {str(error).splitlines()[0]}",
            hint="Remove it and measure again: `pgdyno calibrate`.",
        ) from error


def calibration_of(home: Path, machine: Machine, kinds: Sequence[str]) -> tuple[Ceiling, ...]:
    """What a run file keeps: the ceilings of this machine for these kinds of workload.

    Raises:
        StoreError: The file cannot be read.
    """
    found = read_ceilings(home)
    return tuple(one for one in found if one.machine == machine and one.workload in kinds)


def calibration_path(home: Path) -> Path:
    """Where the ceilings of a home are kept."""
    return home / _NAME


def add_ceilings(home: Path, measured: Sequence[Ceiling]) -> Path:
    """Add ceilings to the file; those of the same key are replaced.

    Returns:
        The file.

    Raises:
        StoreError: It cannot be read or written; it is as it was then.
    """
    fresh = {ceiling.key for ceiling in measured}
    kept = [ceiling for ceiling in read_ceilings(home) if ceiling.key not in fresh]
    document = {"version": _VERSION, "ceilings": [asdict(c) for c in (*kept, *measured)]}
    path = calibration_path(home)
    try:
        write_file(path, json.dumps(document, indent=1))
    except TargetError as error:
        raise StoreError(f"{path} cannot be written: {error}") from error
    return path
