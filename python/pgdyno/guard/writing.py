"""A whole journal carried out on the cluster, or taken back."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from pgdyno.folders import Folder, failing
from pgdyno.guard import journal
from pgdyno.guard.relations import opened, sync_file
from pgdyno.model.errors import TargetError


def write_new(data: Folder, folder: Folder, head: journal.JournalHead) -> float:
    """Write the new bytes of a whole journal, and sync what they are in; returns the seconds.

    Raises:
        TargetError: A file cannot be written, or the journal is damaged.
    """
    began = time.monotonic()
    _put(data, ((run, new) for run, _, new in journal.runs_of(folder, head)))
    journal.said(folder, head, "written")
    return time.monotonic() - began


def write_old(data: Folder, folder: Folder, head: journal.JournalHead) -> None:
    """Put back the old bytes of a journal.

    Raises:
        TargetError: As `write_new`.
    """
    _put(data, ((run, old) for run, old, _ in journal.runs_of(folder, head)))
    journal.said(folder, head, "undone")


def _put(data: Folder, pages: Iterator[tuple[journal.Run, bytes]]) -> None:
    paths: dict[str, None] = {}
    for run, page in pages:
        with opened(data, run.path, writes=True) as handle:
            if handle is None:
                raise TargetError(f"{run.path} is gone, of which the journal has blocks")
            with failing(f"write {run.path}"):
                place, view = run.file_at, memoryview(page)
                while view:
                    done = os.pwrite(handle, view, place)
                    place, view = place + done, view[done:]
        paths[run.path] = None
    for path in paths:
        with opened(data, path, writes=True) as handle:
            if handle is not None:
                sync_file(handle, path)
