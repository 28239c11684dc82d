"""A whole journal carried out on the cluster, or taken back, step after step."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TypeAlias

from pgdyno.folders import Folder, failing
from pgdyno.guard import journal
from pgdyno.guard.closing import closed_by
from pgdyno.guard.relations import made, opened, removed, sync_file, sync_folder
from pgdyno.model.errors import TargetError

Page: TypeAlias = tuple[journal.Run, memoryview]
Still: TypeAlias = Callable[[], None]
"""Raises where a cluster is not what was looked at any more: a server was started on it since."""


def unasked() -> None:
    """Nobody else could start a server on it."""


def write_new(
    data: Folder, folder: Folder, head: journal.JournalHead, still: Still = unasked
) -> float:
    """Write the new bytes of a whole journal, and sync what they are in; returns the seconds.

    Args:
        data: The data directory.
        folder: The journal.
        head: What it says of itself.
        still: Asked once no server can be started any more, before any other byte is written.

    Raises:
        TargetError: A file cannot be written, the journal is damaged, or as `still`: then nothing
            was written, and the journal is not carried out any more.
    """
    began = time.monotonic()
    steps = journal.steps_of(folder, head)
    _begin(data, folder, head, steps, still, is_new=True)
    for step in steps[1:]:
        _put(data, folder, head, step, is_new=True)
    journal.said(folder, head, "written")
    return time.monotonic() - began


def write_old(
    data: Folder, folder: Folder, head: journal.JournalHead, still: Still = unasked
) -> None:
    """Put back the old bytes of a journal; see `write_new`.

    Raises:
        TargetError: As `write_new`.
    """
    steps = journal.steps_of(folder, head)[::-1]
    _begin(data, folder, head, steps, still, is_new=False)
    for step in steps[1:]:
        _put(data, folder, head, step, is_new=False)
    journal.said(folder, head, "undone")


def _begin(
    data: Folder, folder: Folder, head: journal.JournalHead, steps: Sequence[int], still: Still,
    *, is_new: bool,
) -> None:  # fmt: skip
    """The first step, which closes the cluster; it is open again where that came too late."""
    closes = len(steps) > 1  # journals of before this was have one
    was_open = closes and closed_by(data) is None
    for step in steps[:1]:
        _put(data, folder, head, step, is_new=is_new)
    if not closes:
        return
    try:
        still()
    except BaseException:
        if was_open:
            _put(data, folder, head, steps[0], is_new=not is_new)
            if is_new:
                journal.said(folder, head, "undone")
        raise


def _put(
    data: Folder, folder: Folder, head: journal.JournalHead, step: int, *, is_new: bool
) -> None:
    """Bring the files of a step to what they were, or to what they shall be."""
    paths: dict[str, journal.Ends | None] = {}
    runs = ((run, new if is_new else old) for run, old, new in journal.runs_of(folder, head, step))
    for (path, ends), pages in groupby(runs, lambda one: (one[0].path, one[0].ends)):
        paths[path] = ends
        if ends is None:
            _overwrite(data, path, pages)
        else:
            _make(data, path, pages, ends[is_new])
    for path, ends in paths.items():
        with opened(data, path, writes=True) as handle:
            if handle is not None:
                sync_file(handle, path)
        if ends is not None and None in ends:
            sync_folder(data, path)
            sync_folder(data, path.rpartition("/")[0])  # which may be new itself


def _overwrite(data: Folder, path: str, pages: Iterable[Page]) -> None:
    """Bytes of a file that is there, and keeps its length."""
    with opened(data, path, writes=True) as handle:
        if handle is None:
            raise TargetError(f"{path} is gone, of which the journal has blocks")
        for run, page in pages:
            _write(handle, run, page)


def _make(data: Folder, path: str, pages: Iterable[Page], bytes_: int | None) -> None:
    """Bytes of a file that gets a length, or is no more."""
    if bytes_ is None:
        removed(data, path)
        return
    with made(data, path) as handle:
        for run, page in pages:
            _write(handle, run, page)
        with failing(f"write {path}"):
            os.ftruncate(handle, bytes_)


def _write(handle: int, run: journal.Run, page: memoryview) -> None:
    place = run.file_at
    with failing(f"write {run.path}"):
        while page:
            done = os.pwrite(handle, page, place)
            place, page = place + done, page[done:]
