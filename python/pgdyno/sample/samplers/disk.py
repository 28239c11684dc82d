"""Counters of the block device below the clusters, from /proc/diskstats.

Source: Linux, Documentation/admin-guide/iostats.rst. Sectors are 512 bytes there, whatever the
device's own sector size. Flush counters need Linux 5.5.
"""

from __future__ import annotations

import os
from pathlib import Path

from pgdyno.sample.sampler import Column, Row, Sampler, Subject

SECTOR_BYTES = 512
_COLUMNS = (
    Column("disk.reads", "1"),
    Column("disk.read_bytes", "B"),
    Column("disk.writes", "1"),
    Column("disk.write_bytes", "B"),
    Column("disk.busy_s", "s"),
    Column("disk.in_flight", "1", "gauge"),
    Column("disk.flushes", "1"),
    Column("disk.flush_s", "s"),
)


def parse(text: str, device: str) -> Row | None:
    """The counters of `device` (its kernel name), or None where it is not listed."""
    for line in text.splitlines():
        _major, _minor, name, *rest = line.split()
        if name == device:
            counts = [int(field) for field in rest] + [0] * 17
            return {
                "disk.reads": counts[0],
                "disk.read_bytes": counts[2] * SECTOR_BYTES,
                "disk.writes": counts[4],
                "disk.write_bytes": counts[6] * SECTOR_BYTES,
                "disk.in_flight": counts[8],
                "disk.busy_s": counts[9] / 1000,
                "disk.flushes": counts[15],
                "disk.flush_s": counts[16] / 1000,
            }
    return None


def sampler(subject: Subject) -> Sampler | None:
    """Counters of the device that holds the data; None where it is not known or no block device."""
    if (folder := subject.data_folder) is None:
        return None
    number = folder.stat().st_dev
    link = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not link.exists():
        return None
    device = link.resolve().name
    path = Path("/proc/diskstats")
    if parse(path.read_text(), device) is None:
        return None

    def take() -> Row:
        row = parse(path.read_text(), device)
        assert row is not None, f"device {device} vanished"
        return row

    return Sampler("disk", _COLUMNS, take)
