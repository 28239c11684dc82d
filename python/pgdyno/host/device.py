"""Block devices as they are found: how large, of what grain, and whether they hold anything."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno.model.errors import PlanError
from pgdyno.shell import run


@dataclass(frozen=True, slots=True)
class Device:
    """One block device."""

    path: str
    size_bytes: int
    logical_block_bytes: int
    physical_block_bytes: int
    holds: tuple[str, ...]  # what would be destroyed, each in words; empty: nothing
    busy: tuple[str, ...]  # why it cannot be touched at all


def device(path: str) -> Device:
    """Look at a device; nothing is written.

    Raises:
        PlanError: It is no block device.
        TargetError: lsblk or wipefs failed.
    """
    try:
        real = os.path.realpath(path, strict=True)
        mode = os.stat(real).st_mode
    except OSError as error:
        raise PlanError(f"{path}: {error.strerror}") from error
    if not stat.S_ISBLK(mode):
        raise PlanError(f"{path} is no block device", "`lsblk` lists them.")
    columns = "NAME,TYPE,SIZE,LOG-SEC,PHY-SEC,MOUNTPOINTS,FSTYPE,PTTYPE,RO"
    told = run(["lsblk", "--json", "--bytes", "--output", columns, real]).stdout
    own, *below = _flat(json.loads(told)["blockdevices"])
    holds, busy = [], []
    for row in (own, *below):
        mounts = [place for place in row.get("mountpoints") or () if place]
        if mounts:
            busy.append(f"{row['name']} is in use: {', '.join(mounts)}")
    for row in below:
        holds.append(f"{row['type']} {row['name']}")
    if own["ro"]:
        busy.append("it is read only")
    holders = Path("/sys/class/block", Path(real).name, "holders")
    busy += [f"{path.name} is built on it" for path in sorted(holders.glob("*"))]
    holds += [f"{one['type']} signature" for one in _signatures(real)]
    return Device(
        path=real,
        size_bytes=int(own["size"]),
        logical_block_bytes=int(own["log-sec"]),
        physical_block_bytes=int(own["phy-sec"]),
        holds=tuple(holds),
        busy=tuple(busy),
    )


def _flat(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for row in rows:
        children = row.pop("children", [])
        assert isinstance(children, list)
        found += [row, *_flat(children)]
    return found


def _signatures(path: str) -> list[dict[str, str]]:
    """File systems, partition tables, parts of volumes: all that wipefs knows."""
    done = run(["wipefs", "--no-act", "--json", path], check=False)
    if done.code != 0 or not done.stdout.strip():
        return []
    found: list[dict[str, str]] = json.loads(done.stdout).get("signatures", [])
    return found
