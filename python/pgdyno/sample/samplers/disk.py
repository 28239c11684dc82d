"""Every block device: requests, bytes, time, queue, flushes. `disk`: the one below the clusters.

`device.<name>.read_s`, `write_s`, `flush_s` are the requests' times together, from when they were
queued: over requests they give the mean wait. `weighted_s` over time is the queue's mean length.
`busy_s` over time is the share in which there was any request: of a device that serves many at
once, a full share does not mean that it is full.

Devices that never had a request are left out, and partitions, but for that which holds the data. Of
one that is taken away, and of another that comes under its name, nothing more is told.
Source: Linux, Documentation/admin-guide/iostats.rst; discards since 4.18, flushes since 5.5: where
the kernel does not count them there is no such column. Sectors are 512 bytes there, whatever the
device's own. Cost: 130 µs beside a full load, three in use.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from pgdyno.sample.kernel_file import KernelFile
from pgdyno.sample.same_ones import SameOnes
from pgdyno.sample.sampler import Column, Found, Missing, Row, Sampler, Subject

SECTOR_BYTES = 512
_FIELDS = (  # name, place after the device's name, what one is worth
    ("reads", 0, 1), ("read_bytes", 2, SECTOR_BYTES), ("read_s", 3, 1e-3),
    ("writes", 4, 1), ("write_bytes", 6, SECTOR_BYTES), ("write_s", 7, 1e-3),
    ("in_flight", 8, 1), ("busy_s", 9, 1e-3), ("weighted_s", 10, 1e-3),
    ("discards", 11, 1), ("discard_bytes", 13, SECTOR_BYTES), ("discard_s", 14, 1e-3),
    ("flushes", 15, 1), ("flush_s", 16, 1e-3),
)  # fmt: skip
_KNOWN_BY = ("reads", "read_bytes", "writes", "write_bytes")  # times run over after 49 days
_UNITS = {"bytes": "B", "s": "s"}
_SYS = Path("/sys")
_NO_DEVICE = Missing(
    "reads and writes of the device below the data",
    "their file system is on no block device that the kernel counts by itself, as btrfs, ZFS, tmpfs"
    " and overlays are",
    "Keep the data on a disk with ext4 or XFS, by PGDYNO_HOME or the `folder` of the stage; below"
    " memory there is no device.",
)


def parse(text: str, names: Collection[str] | None = None) -> dict[str, Row]:
    """The counters of devices since boot.

    Args:
        text: Of /proc/diskstats.
        names: The kernel's names of those that are wanted; None: of all.

    Returns:
        By the kernel's name: `reads`, `read_bytes`, ... as far as this kernel counts them.
    """
    found = {}
    for line in text.splitlines():
        _major, _minor, name, *rest = line.split()
        if names is None or name in names:
            found[name] = {
                field: value if worth == 1 else value * worth
                for field, place, worth in _FIELDS
                if place < len(rest)
                for value in (int(rest[place]),)
            }
    return found


def _columns(prefix: str, row: Row) -> list[Column]:
    return [
        Column(f"{prefix}.{field}", _UNITS.get(field.rpartition("_")[2], "1"),
               "gauge" if field == "in_flight" else "counter")
        for field in row
    ]  # fmt: skip


def _device_below(folder: Path | None, sys: Path) -> str | None:
    """The kernel's name of the device that holds a folder; None where it is no block device."""
    if folder is None:
        return None
    number = folder.stat().st_dev
    link = sys / f"dev/block/{os.major(number)}:{os.minor(number)}"
    return link.resolve().name if link.exists() else None


def sampler(subject: Subject, path: Path = Path("/proc/diskstats"), sys: Path = _SYS) -> Found:
    """All devices in use, and once more, as `disk`, the one that holds the data, if it is one."""
    file = KernelFile(path)
    there = parse(file.text())
    below = _device_below(subject.data_folder, sys)
    prefixes = {
        name: f"device.{name}"
        for name, row in there.items()
        if (row["reads"] or row["writes"])
        and not (sys / "class/block" / name / "partition").exists()
    }
    wanted = {*prefixes, *({below} & there.keys() if below else ())}
    lacking = [_NO_DEVICE] if subject.data_folder and below not in there else []
    if not wanted:
        return lacking or None
    columns = [c for name, prefix in prefixes.items() for c in _columns(prefix, there[name])]
    if below in there:
        columns += _columns("disk", there[below])

    same = SameOnes(_KNOWN_BY)

    def take() -> Row:
        found = same.of(parse(file.text(), wanted))
        row = {
            f"{prefixes[name]}.{field}": value
            for name, one in found.items()
            if name in prefixes
            for field, value in one.items()
        }
        if below in found:
            row |= {f"disk.{field}": value for field, value in found[below].items()}
        return row

    found = Sampler("disk", tuple(columns), take)
    return [found, *lacking] if lacking else found
