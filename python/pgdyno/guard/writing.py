"""A whole journal carried out on the cluster, or taken back, step after step."""

from __future__ import annotations

import os
import time

from pgdyno.folders import Folder, failing
from pgdyno.guard import journal
from pgdyno.guard.relations import made, opened, removed, sync_file, sync_folder
from pgdyno.model.errors import TargetError


def write_new(data: Folder, folder: Folder, head: journal.JournalHead) -> float:
    """Write the new bytes of a whole journal, and sync what they are in; returns the seconds.

    Raises:
        TargetError: A file cannot be written, or the journal is damaged.
    """
    began = time.monotonic()
    for step in journal.steps_of(folder, head):
        _put(data, folder, head, step, is_new=True)
    journal.said(folder, head, "written")
    return time.monotonic() - began


def write_old(data: Folder, folder: Folder, head: journal.JournalHead) -> None:
    """Put back the old bytes of a journal.

    Raises:
        TargetError: As `write_new`.
    """
    for step in reversed(journal.steps_of(folder, head)):
        _put(data, folder, head, step, is_new=False)
    journal.said(folder, head, "undone")


def _put(
    data: Folder, folder: Folder, head: journal.JournalHead, step: int, *, is_new: bool
) -> None:
    """Bring the files of a step to what they were, or to what they shall be."""
    paths: dict[str, journal.Ends | None] = {}
    for run, old, new in journal.runs_of(folder, head, step):
        paths[run.path] = run.ends
        if run.ends is None:
            _overwrite(data, run, new if is_new else old)
        else:
            _make(data, run, new if is_new else old, run.ends[is_new])
    for path, ends in paths.items():
        with opened(data, path, writes=True) as handle:
            if handle is not None:
                sync_file(handle, path)
        if ends is not None and None in ends:
            sync_folder(data, path)
            sync_folder(data, path.rpartition("/")[0])  # which may be new itself


def _overwrite(data: Folder, run: journal.Run, page: bytes) -> None:
    """Bytes of a file that is there, and keeps its length."""
    with opened(data, run.path, writes=True) as handle:
        if handle is None:
            raise TargetError(f"{run.path} is gone, of which the journal has blocks")
        _write(handle, run, page)


def _make(data: Folder, run: journal.Run, page: bytes, bytes_: int | None) -> None:
    """Bytes of a file that gets a length, or is no more."""
    if bytes_ is None:
        removed(data, run.path)
        return
    with made(data, run.path) as handle:
        _write(handle, run, page)
        with failing(f"write {run.path}"):
            os.ftruncate(handle, bytes_)


def _write(handle: int, run: journal.Run, page: bytes) -> None:
    with failing(f"write {run.path}"):
        place, view = run.file_at, memoryview(page)
        while view:
            done = os.pwrite(handle, view, place)
            place, view = place + done, view[done:]
