"""What the redo of a crashed cluster needs: its files opened here, read by the core."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from pgdyno import core
from pgdyno.core import fact_and_hint, require_written
from pgdyno.folders import Folder
from pgdyno.model.errors import TargetError
from pgdyno.model.record_json import from_json, from_plain
from pgdyno.model.repair import RedoBegin, RedoNeeds
from pgdyno.pages.files import CONTROL, held, histories_in, segments_in, text_of

NEEDS_VERSION = 1
"""Of what the core writes: the one that this reads."""
_LABEL = "backup_label"


@dataclass(frozen=True, slots=True)
class Crashed:
    """A cluster that is not running."""

    begin: RedoBegin
    needs: RedoNeeds | None  # None: it was shut down in good order


def read_redo(data: Folder, *, on_segment: Callable[[str], None] = lambda _: None) -> Crashed:
    """Read from a data directory what recovery of it needs.

    Args:
        data: The data directory; no server runs on it.
        on_segment: Told the name of each segment of WAL before it is read.

    Raises:
        TargetError: It is no data directory, or its WAL or pg_control is damaged or missing.
    """
    with _opened(data) as (redo, wal):
        return _read(redo, wal, on_segment)


def redo_begin(data: Folder) -> RedoBegin:
    """What a cluster says of itself, and where its redo begins; its WAL is not read.

    Raises:
        TargetError: As `read_redo`.
    """
    with _opened(data) as (redo, _):
        return from_json(RedoBegin, redo.begin())


@contextmanager
def _opened(data: Folder) -> Iterator[tuple[core.Redo, Folder]]:
    with ExitStack() as stack:
        names = set(data.names())
        if not {"global", "pg_wal"} <= names:
            raise TargetError(
                f"folder {data.path} is no data directory: it has no global or no pg_wal",
                "Name the folder that `SHOW data_directory` tells.",
            )
        inside = stack.enter_context(data.into("global"))
        # It may lie elsewhere, by a link that its owner made: followed where none other could.
        wal = stack.enter_context(Folder.hold(data.path / "pg_wal"))
        control = stack.enter_context(held(inside, CONTROL))
        spec = {
            "names": segments_in(wal, "Recover from a backup."),
            "histories": histories_in(wal),
            "control": {"name": CONTROL, "handle": control},
            "backup_label": text_of(data, _LABEL) if _LABEL in names else None,
        }
        try:
            yield core.Redo(json.dumps(spec)), wal
        except core.CoreError as error:
            fact, hint = fact_and_hint(error)
            raise TargetError(f"{data.path}: {fact}", hint) from error


def _read(redo: core.Redo, wal: Folder, on_segment: Callable[[str], None]) -> Crashed:
    begin = from_json(RedoBegin, redo.begin())
    if begin.is_shut_down:
        return Crashed(begin, None)
    for name in redo.segments():
        on_segment(name)
        with held(wal, name) as handle:
            if not redo.read(name, handle):
                break
    plain = json.loads(redo.result())
    require_written("what redo needs", plain.get("version"), NEEDS_VERSION)
    return Crashed(begin, from_plain(RedoNeeds, plain))
