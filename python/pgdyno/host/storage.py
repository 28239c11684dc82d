"""Block devices and the file systems on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pgdyno.catalog import entries, machine_knobs
from pgdyno.host.advice import Line
from pgdyno.host.file_tree import system, text
from pgdyno.host.knob_location import devices
from pgdyno.linter import Finding, Severity, System, check
from pgdyno.linter.source import parse
from pgdyno.model.units import bytes_text
from pgdyno.target.file_systems import mounts

_DISKS = frozenset(("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "nfs", "nfs4"))
_SECTOR = 512  # of /sys/block/*/size, whatever the device has


def disks(root: Path) -> Iterator[Line]:
    """What they are; their queues stand among the settings."""
    for name in devices(machine_knobs()["queue/scheduler"], root):
        folder = root / "sys/block" / name
        queue = folder / "queue"
        size = int(text(folder / "size") or 0) * _SECTOR
        kind = "says that it rotates" if text(queue / "rotational") == "1" else "does not rotate"
        model = text(folder / "device/model") or text(folder / "loop/backing_file")
        logical = text(queue / "logical_block_size")
        physical = text(queue / "physical_block_size")
        atomic = text(queue / "atomic_write_unit_max_bytes")
        facts = [bytes_text(size), model, kind, f"blocks of {logical}/{physical} B"]
        if atomic and atomic != "0":
            facts.append(f"writes {bytes_text(int(atomic))} whole or not at all")
        yield Line(name, ", ".join(part for part in facts if part))


def file_systems(root: Path) -> Iterator[Line]:
    """Where they are and how they are mounted; what the linter says of it."""
    table = root / "proc/mounts"
    findings = _findings(text(table), system(root))
    for number, (device, mount, kind, options) in enumerate(mounts(table), start=1):
        # Containers have single files of the host mounted over their own.
        if kind not in _DISKS or (root / mount.lstrip("/")).is_file():
            continue
        better = "" if "noatime" in options.split(",") else "noatime"
        why = entries()["noatime"].why if better else ""
        yield Line(mount, f"{kind} on {device}: {options}", advised=better, why=why)
        for one in findings.get(number, ()):
            yield Line("", one.at.shown, advised="without it", why=f"{one.text}.")


def _findings(mounts: str, where: System) -> dict[int, list[Finding]]:
    """What is dangerous or ill-advised, by line; /proc/mounts is written like fstab.

    Defaults are spelled out there, so what only has no effect is no matter.
    """
    found: dict[int, list[Finding]] = {}
    for one in check([parse("/proc/mounts", "fstab", mounts)], where):
        if one.rule or one.severity is Severity.DANGEROUS:
            found.setdefault(one.at.line, []).append(one)
    return found
