"""Disks that a power cut may leave, made of a record: as of an instant, by a seed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pgdyno import core
from pgdyno.folders import Folder
from pgdyno.model.drill import Device, Made, Spared
from pgdyno.model.errors import TargetError
from pgdyno.model.record_json import from_plain

_Answer = TypeVar("_Answer")
_NS = 1_000_000_000
_NOTHING = Spared()


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of a record."""

    bytes: int
    full: bool  # there was no room for all: it ends earlier than the load
    met: int = 0  # calls that met a fault


@dataclass(frozen=True, slots=True)
class RecordSpan:
    """When cuts are possible, in ns of `time.monotonic_ns`."""

    begun_ns: int
    until_ns: int
    full: bool
    ended: bool


def record_span(folder: Folder, record: str) -> RecordSpan:
    """Between which instants a record knows everything.

    Raises:
        TargetError: It cannot be read.
    """
    return answered(RecordSpan, lambda: core.record_span(path_of(folder), record))


def make_disk(
    folder: Folder,
    record: str,
    disk: str,
    instant_ns: int,
    seed: int,
    device: Device | None = None,
    spared: Spared = _NOTHING,
) -> Made:
    """Make a disk as of an instant; the same instant, seed and device make the same disk.

    Args:
        folder: A folder of ours that nobody else can change.
        record: Name of the record in it.
        disk: Name of the disk, which is made in it; it is no disk if this fails.
        instant_ns: When the power goes, by `time.monotonic_ns`.
        seed: Which disk of those that are possible.
        device: What it is like; None: honest, with sectors of 512 bytes.
        spared: What is not lost, though the seed has it so.

    Raises:
        TargetError: The record does not reach so far, or the disk cannot be written.
    """
    folder.require_closed()
    spec = _spec(folder, record, disk, instant_ns, seed, device or Device(), spared)
    return answered(Made, lambda: core.make_disk(json.dumps(spec)))


def hand_back(
    folder: Folder, record: str, data: str, instant_ns: int, seed: int, device: Device
) -> Made:
    """Bring the folder that was recorded to what the power left of it, in place.

    It becomes equal to the disk that `make_disk` makes of the same.

    Args:
        folder: See `make_disk`.
        record: Of this folder; it was cut at the instant, and nobody has changed it since.
        data: The folder.
        instant_ns: See `make_disk`.
        seed: The same.
        device: The same.

    Raises:
        TargetError: The record is of another folder, or that cannot be changed: it is no disk then.
    """
    folder.require_closed()
    spec = _spec(folder, record, data, instant_ns, seed, device, _NOTHING)
    return answered(Made, lambda: core.hand_back(json.dumps(spec)))


def _spec(
    folder: Folder, record: str, disk: str, instant_ns: int, seed: int, of: Device, spared: Spared
) -> dict[str, Any]:
    return {
        "folder": path_of(folder), "record": record, "disk": disk, "instant_ns": instant_ns,
        "seed": seed, "sector_bytes": of.sector_bytes, "forgets_ns": round(of.forgets_s * _NS),
        "written_back_ns": None if of.written_back_s is None else round(of.written_back_s * _NS),
        "names_ordered": of.names_ordered, "names_spared": spared.names,
        "blocks_spared": spared.blocks, "named_max": spared.named_max,
    }  # fmt: skip


def answered(kind: type[_Answer], call: Callable[[], str]) -> _Answer:
    """What a call of the core answers, as a record.

    Raises:
        TargetError: It fails.
    """
    try:
        return from_plain(kind, json.loads(call()))
    except core.CoreError as error:
        raise TargetError(core.fact_and_hint(error)[0]) from error


def path_of(folder: Folder) -> str:
    """A path that leads the core to a folder, whatever its name is by now."""
    return f"/proc/self/fd/{folder.handle}"
