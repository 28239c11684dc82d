"""A range of WAL out of its files: opened here, read by the core.

As root no file is opened that another user could have put there by a link; the core is given
descriptors, and opens nothing by name.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgdyno import core
from pgdyno.core import fact_and_hint, require_written
from pgdyno.folders import Folder
from pgdyno.model.errors import TargetError
from pgdyno.model.record_json import from_json, from_plain
from pgdyno.model.wal import WalPart, WalRecord, WalSummary

SUMMARY_VERSION = 1
"""Of the core's summaries: the one that this reads."""
_SEGMENT = re.compile(r"[0-9A-F]{24}")
_HISTORY = re.compile(r"[0-9A-F]{8}\.history")
_HISTORY_BYTES_MAX = 1 << 20
_CONTROL = "pg_control"


@dataclass(frozen=True, slots=True)
class WalRange:
    """Which records: those that begin at one place or later, and before another."""

    from_lsn: str | None = None  # None: from the oldest segment on
    to_lsn: str | None = None  # None: to the end of valid WAL
    timeline: int | None = None  # None: the newest


def read_wal(
    path: Path,
    wanted: WalRange,
    *,
    on_record: Callable[[WalRecord], None] | None = None,
    on_segment: Callable[[str], None] = lambda _: None,
) -> WalSummary:
    """Sum up a range of WAL.

    Args:
        path: A data directory, or a folder of segments.
        wanted: The range.
        on_record: Given each record.
        on_segment: Told the name of each segment before it is read.

    Raises:
        TargetError: It holds no WAL, a segment is missing, or WAL is damaged.
    """
    with _opened(path) as (folder, control):
        names = folder.names()
        segments = [name for name in names if _SEGMENT.fullmatch(name)]
        if not segments:
            raise TargetError(
                f"folder {path} holds no WAL: no file has a name of 24 hexadecimal digits",
                "Name a data directory, its pg_wal, or an archive whose files are not compressed.",
            )
        spec = {
            "names": segments,
            "histories": {name: _text(folder, name) for name in names if _HISTORY.fullmatch(name)},
            "control": control,
            "timeline": wanted.timeline,
            "from_lsn": wanted.from_lsn,
            "to_lsn": wanted.to_lsn,
            "records": on_record is not None,
        }
        try:
            return _summed(folder, segments[0], spec, on_record, on_segment)
        except core.CoreError as error:
            raise TargetError(*fact_and_hint(error)) from error


def _summed(
    folder: Folder,
    head: str,
    spec: Mapping[str, object],
    on_record: Callable[[WalRecord], None] | None,
    on_segment: Callable[[str], None],
) -> WalSummary:
    with _held(folder, head) as handle:
        wal = core.Wal(json.dumps({**spec, "head": {"name": head, "handle": handle}}))
    for name in wal.segments():
        on_segment(name)
        with _held(folder, name) as handle:
            part = from_json(WalPart, wal.read(name, handle))
        for record in part.records:
            assert on_record is not None
            on_record(record)
        if part.done:
            break
    plain = json.loads(wal.result())
    require_written("the summary of the WAL", plain.get("version"), SUMMARY_VERSION)
    return from_plain(WalSummary, plain)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Folder, dict[str, object] | None]]:
    """The folder of segments, and `pg_control` where the path is a data directory."""
    with ExitStack() as stack:
        top = stack.enter_context(Folder.hold(path))
        if not {"global", "pg_wal"} <= set(top.names()):
            yield top, None
            return
        inside = stack.enter_context(top.into("global"))
        handle = stack.enter_context(_held(inside, _CONTROL))
        # It may lie elsewhere, by a link that its owner made: followed where none other could.
        folder = stack.enter_context(Folder.hold(path / "pg_wal"))
        yield folder, {"name": _CONTROL, "handle": handle}


@contextmanager
def _held(folder: Folder, name: str) -> Iterator[int]:
    handle = folder.open_given(name)
    try:
        yield handle
    finally:
        os.close(handle)


def _text(folder: Folder, name: str) -> str:
    with os.fdopen(folder.open_given(name), "rb") as file:
        data = file.read(_HISTORY_BYTES_MAX + 1)
    if len(data) > _HISTORY_BYTES_MAX:
        raise TargetError(f"{folder.path / name} is longer than {_HISTORY_BYTES_MAX} bytes")
    return data.decode(errors="replace")
