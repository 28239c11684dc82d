"""What `pg_waldump` says of each record, read from what it prints."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_RECORD = re.compile(
    r"rmgr: (?P<manager>\S+)\s+len \(rec/tot\):\s*(?P<rest>\d+)/\s*(?P<bytes>\d+),"
    r" tx:\s*(?P<xid>\d+), lsn: (?P<lsn>\S+), prev (?P<prev>\S+), desc: (?P<what>.*)"
)
_BLOCK = re.compile(
    r"\tblkref #(?P<id>\d+): rel (?P<relation>\d+/\d+/\d+) fork (?P<fork>\w+) blk (?P<block>\d+)"
    r"(?P<image> \(FPW(?P<check> for WAL verification)?\); hole: offset: (?P<hole_at>\d+),"
    r" length: (?P<hole_bytes>\d+)"
    r"(?:, compression saved: (?P<saved>\d+), method: (?P<method>\w+))?)?"
)
BLOCK_BYTES = 8192


def place(lsn: str) -> int:
    """A place in the WAL as a number: versions write it with other zeroes."""
    high, low = lsn.split("/")
    return int(high, 16) << 32 | int(low, 16)


@dataclass(frozen=True, slots=True)
class DumpedBlock:
    """A block reference."""

    id: int
    relation: str
    fork: str
    block: int
    image: tuple[bool, int, int, int, str | None] | None
    """Whether replay applies it, place and bytes of the hole, bytes of the image, compression."""


@dataclass(slots=True)
class Dumped:
    """A record."""

    lsn: int
    prev: int
    manager: str
    what: str
    xid: int
    bytes: int
    image_bytes: int
    blocks: list[DumpedBlock] = field(default_factory=list)


def dumped(program: Path, wal: Path, first: str, last: str) -> Iterator[Dumped]:
    """All records of a range."""
    done = subprocess.run(
        [program, "--bkp-details", "-p", wal, "-s", first, "-e", last],
        capture_output=True, text=True, check=True, errors="replace",
    )  # fmt: skip
    record: Dumped | None = None
    for line in done.stdout.splitlines():
        if found := _RECORD.match(line):
            if record is not None:
                yield record
            record = Dumped(
                place(found["lsn"]), place(found["prev"]), found["manager"], found["what"],
                int(found["xid"]), int(found["bytes"]), int(found["bytes"]) - int(found["rest"]),
            )  # fmt: skip
        elif found := _BLOCK.fullmatch(line):
            assert record is not None
            record.blocks.append(_block(found))
        elif line.startswith("\tblkref"):
            raise AssertionError(f"not understood: {line!r}")
    if record is not None:
        yield record


def _block(found: re.Match[str]) -> DumpedBlock:
    image = None
    if found["image"]:
        hole = int(found["hole_bytes"])
        size = BLOCK_BYTES - hole - int(found["saved"] or 0)
        image = (not found["check"], int(found["hole_at"]), hole, size, found["method"])
    return DumpedBlock(
        int(found["id"]), found["relation"], found["fork"], int(found["block"]), image
    )
