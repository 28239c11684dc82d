"""A range of WAL out of its files: opened here, read by the core."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgdyno import core
from pgdyno.core import fact_and_hint, require_written
from pgdyno.folders import Folder
from pgdyno.model.errors import TargetError
from pgdyno.model.record_json import from_json, from_plain
from pgdyno.model.wal import WalNamed, WalPart, WalRecord, WalSummary
from pgdyno.pages.files import CONTROL, held, histories_in, segments_in

SUMMARY_VERSION = 2
"""Of the core's summaries: the one that this reads."""

_NAME_IT = "Name a data directory, its pg_wal, or an archive of segments."


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
    on_named: Callable[[WalNamed], None] | None = None,
) -> WalSummary:
    """Sum up a range of WAL.

    Args:
        path: A data directory, or a folder of segments.
        wanted: The range.
        on_record: Given each record.
        on_segment: Told the name of each segment before it is read.
        on_named: Given what all of it names.

    Raises:
        TargetError: It holds no WAL, a segment is missing, or WAL is damaged.
    """
    with _opened(path) as (folder, control):
        segments = segments_in(
            folder,
            "Name a data directory, its pg_wal, or an archive whose files are not compressed.",
        )
        spec = {
            "names": segments,
            "histories": histories_in(folder),
            "control": control,
            "timeline": wanted.timeline,
            "from_lsn": wanted.from_lsn,
            "to_lsn": wanted.to_lsn,
            "records": on_record is not None,
        }
        try:
            return _summed(folder, segments[0], spec, on_record, on_segment, on_named)
        except core.CoreError as error:
            raise TargetError(*fact_and_hint(error)) from error


def _summed(
    folder: Folder,
    head: str,
    spec: Mapping[str, object],
    on_record: Callable[[WalRecord], None] | None,
    on_segment: Callable[[str], None],
    on_named: Callable[[WalNamed], None] | None,
) -> WalSummary:
    with held(folder, head) as handle:
        wal = core.Wal(json.dumps({**spec, "head": {"name": head, "handle": handle}}))
    for name in wal.segments():
        on_segment(name)
        with held(folder, name) as handle:
            part = from_json(WalPart, wal.read(name, handle))
        for record in part.records:
            assert on_record is not None
            on_record(record)
        if part.done:
            break
    plain = json.loads(wal.result())
    if on_named is not None:
        on_named(from_json(WalNamed, wal.named()))
    require_written("the summary of the WAL", plain.get("version"), SUMMARY_VERSION)
    return from_plain(WalSummary, plain)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Folder, dict[str, object] | None]]:
    """The folder of segments, and `pg_control` where the path is a data directory."""
    with ExitStack() as stack:
        top = stack.enter_context(Folder.hold(path, _NAME_IT))
        if not {"global", "pg_wal"} <= set(top.names()):
            yield top, None
            return
        inside = stack.enter_context(top.into("global"))
        handle = stack.enter_context(held(inside, CONTROL))
        # It may lie elsewhere, by a link that its owner made: followed where none other could.
        folder = stack.enter_context(Folder.hold(path / "pg_wal"))
        yield folder, {"name": CONTROL, "handle": handle}
