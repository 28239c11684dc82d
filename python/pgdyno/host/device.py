"""Block devices as they are found: which, how large, of what grain, and whether they hold anything.

What a probing program does not answer is not known, and what is not known is refused: nothing is
ever taken for empty because nobody could look.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.record_json import json_value
from pgdyno.model.system_errors import reason, told
from pgdyno.shell import run

_COLUMNS = "NAME,PATH,TYPE,SIZE,LOG-SEC,PHY-SEC,MOUNTPOINTS,RO,SERIAL,WWN"
# They stand among the options of mount, of mkfs and in fstab, where these mean something else.
_PATH = re.compile(r"/dev/[\w./+:@=-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Device:
    """One block device."""

    path: str
    size_bytes: int
    logical_block_bytes: int
    physical_block_bytes: int
    holds: tuple[str, ...]  # what would be destroyed, each in words; empty: nothing
    busy: tuple[str, ...]  # why it cannot be touched at all
    parts: tuple[str, ...] = ()  # paths of its partitions
    identity: tuple[str, ...] = ()  # another device under the same path has another one


def device(path: str) -> Device:
    """Look at a device; nothing is written.

    Raises:
        PlanError: It is not a block device, or its name means something else to mount or mkfs.
        TargetError: What it is or holds cannot be found out.
    """
    try:
        real = os.path.realpath(path, strict=True)
        found = os.stat(real)
    except (OSError, ValueError) as error:
        raise PlanError(f"device {path}: {told(error)}", "`lsblk` lists them.") from error
    if not stat.S_ISBLK(found.st_mode):
        raise PlanError(f"{path} is not a block device", "`lsblk` lists them.")
    if not _PATH.fullmatch(real):
        raise PlanError(f"device {real!r} has a name that other programs would misread")
    own, *below = _listed(real)
    signatures = [f"{one['type']} signature" for one in _signatures(real)]
    return Device(
        path=real,
        size_bytes=int(own["size"]),
        logical_block_bytes=int(own["log-sec"]),
        physical_block_bytes=int(own["phy-sec"]),
        holds=(*(f"{row['type']} {row['name']}" for row in below), *signatures),
        busy=tuple(_why_busy(real, found.st_rdev, own, below)),
        parts=tuple(str(row["path"]) for row in below if row["type"] == "part"),
        identity=_identity(found.st_rdev, own),
    )


def _listed(path: str) -> list[dict[str, Any]]:
    """The device and all that is built on it, as lsblk tells."""
    return rows_of(run(["lsblk", "--json", "--bytes", "--output", _COLUMNS, path]).stdout, path)


def rows_of(listing: str, path: str) -> list[dict[str, Any]]:
    """The rows of lsblk's JSON on a device: it, then what is on it, with all that is read of them.

    Raises:
        TargetError: It is not what lsblk writes, or of another device.
    """
    try:
        rows = _flat(json_value(listing)["blockdevices"])
        for row in rows:
            _ = row["name"], row["type"], row["ro"], row["path"], [*(row.get("mountpoints") or ())]
            _ = int(row["size"]), int(row["log-sec"]), int(row["phy-sec"])
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise TargetError(
            f"what {path} is cannot be found out: lsblk printed {listing[:200]!r}", _NOT_KNOWN
        ) from error
    if not rows or rows[0]["path"] != path:
        raise TargetError(f"lsblk says nothing about {path}", _NOT_KNOWN)
    return rows


def _flat(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for row in rows:
        children = row.pop("children", [])
        found += [row, *_flat(children)]
    return found


def _why_busy(
    path: str, number: int, own: dict[str, Any], below: list[dict[str, Any]]
) -> list[str]:
    busy = []
    for row in (own, *below):
        mounts = [mount for mount in row.get("mountpoints") or () if mount]
        if mounts:
            busy.append(f"{row['name']} is in use: {', '.join(mounts)}")
    if own["ro"]:
        busy.append("it is read only")
    holders = _sysfs(number) / "holders"
    if not holders.is_dir():
        raise TargetError(f"whether something is built on {path} cannot be found out", _NOT_KNOWN)
    busy += [f"{one.name} is built on it" for one in sorted(holders.iterdir())]
    return busy or _claimed(path)


def _claimed(path: str) -> list[str]:
    """What only the kernel knows: mounts of other namespaces, swap, arrays, logs elsewhere."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        return [f"it is in use: {reason(error)}"]
    return []


def _sysfs(number: int) -> Path:
    return Path("/sys/dev/block", f"{os.major(number)}:{os.minor(number)}").resolve()


def _identity(number: int, own: dict[str, Any]) -> tuple[str, ...]:
    folder = _sysfs(number)
    identity = [f"{os.major(number)}:{os.minor(number)}", str(own["size"])]
    identity += [str(own[name]) for name in ("serial", "wwn") if own.get(name)]
    for sequence in (folder / "diskseq", folder.parent / "diskseq"):  # of a partition: its disk's
        if sequence.is_file():
            return (*identity, sequence.read_text(encoding="utf-8").strip())
    return tuple(identity)


_NOT_KNOWN = "It is not touched: what cannot be looked at is never taken for empty."


def _signatures(path: str) -> list[dict[str, str]]:
    """File systems, partition tables, parts of volumes: all that wipefs knows."""
    done = run(["wipefs", "--no-act", "--json", path], check=False)
    tree = done.stdout.strip()
    try:
        if done.code != 0:
            raise ValueError(f"code {done.code}")
        if not tree and not done.stderr.strip():
            return []  # older ones say nothing of nothing
        found: list[dict[str, str]] = json_value(tree)["signatures"]
        return [one for one in found if one["type"]]
    except (ValueError, KeyError, TypeError) as error:
        said = (done.stderr.strip() or tree)[:200]
        raise TargetError(
            f"what {path} holds cannot be found out: wipefs ended with {error}: {said}", _NOT_KNOWN
        ) from error
