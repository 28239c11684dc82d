"""Writes TPC-C's initial rows into CSV files by the Rust core, without a server.

The core is given the folder held open, not its name: files are made in the very folder that was
looked at, whoever swaps names above it.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pgdyno import core
from pgdyno.core import fact_and_hint
from pgdyno.folders import Folder
from pgdyno.loader.copy import POLL_S
from pgdyno.loader.reports import read_report
from pgdyno.loader.spec import export_spec
from pgdyno.model.errors import DriveError, Interrupted, TargetError
from pgdyno.model.loading import ExportReport
from pgdyno.model.progress import ExportProgress
from pgdyno.model.record_json import from_json
from pgdyno.model.units import bytes_text
from pgdyno.model.workload import Workload
from pgdyno.workload.describe import describe_tpcc

LOADED_AT_UNIX_S = 1_577_836_800
"""2020-01-01: rows of an export carry this time unless told otherwise, so that the same seed gives
the same files."""
_ROOM = 1.02  # of the estimate
_ANOTHER = "Name one that is not there yet."


def export(
    folder: Path,
    workload: Workload,
    *,
    loaded_at_unix_s: int = LOADED_AT_UNIX_S,
    threads: int | None = None,
    progress: Callable[[ExportProgress], None] = lambda _: None,
) -> ExportReport:
    """Write a file for each table, as BenchmarkSQL 5 does with its option `fileLocation`.

    Args:
        folder: Empty, or not there yet.
        workload: TPC-C of some size, seed and schema.
        loaded_at_unix_s: The time that rows carry, seconds since 1970.
        threads: Files written at the same time; None: one for each core.
        progress: Told five times a second.

    Returns:
        What was written.

    Raises:
        DriveError: The folder is not empty, the disk has not enough room, writing failed; what was
            written is removed.
        Interrupted: Ctrl-C; what was written is removed.
    """
    _, tpcc = describe_tpcc(workload)
    _require_room(folder, sum(file.bytes for file in tpcc.csv.files))
    with _empty_folder(folder) as held:
        spec = export_spec(folder, held.handle, workload, loaded_at_unix_s, threads)
        return _run(json.dumps(spec), progress)


@contextmanager
def _empty_folder(path: Path) -> Iterator[Folder]:
    """The folder, held open; one that was made for this goes again if nothing stays in it."""
    place = path.absolute()
    try:
        with Folder.made(place.parent) as above:
            is_new = not (place.name and above.has(place.name))
            try:
                with Folder.made(place) as held:
                    held.require_closed()
                    if held.names():
                        raise DriveError(f"folder {path} is not empty", _ANOTHER)
                    yield held
            except BaseException:
                if is_new:
                    with suppress(OSError):  # others came first, or something stays in it
                        os.rmdir(place.name, dir_fd=above.handle)
                raise
    except TargetError as error:
        raise DriveError(f"cannot create folder {path}: {error.fact}", error.hint) from error


def _run(spec: str, progress: Callable[[ExportProgress], None]) -> ExportReport:
    try:
        job = core.Export(spec)
        job.start()
        try:
            while not (state := from_json(ExportProgress, job.poll())).done:
                progress(state)
                time.sleep(POLL_S)
        except KeyboardInterrupt:
            job.stop()
            raise Interrupted(*_what_is_left(job)) from None
        return read_report(ExportReport, job.result())
    except core.CoreError as error:
        raise DriveError(*fact_and_hint(error)) from error


def _what_is_left(job: core.Export) -> tuple[str, str | None]:
    try:
        job.result()
    except core.CoreError as error:
        return fact_and_hint(error)
    return "the export was stopped after its last row", None


def _require_room(folder: Path, bytes_: int) -> None:
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free < bytes_ * _ROOM:
        raise DriveError(
            f"the files take about {bytes_text(bytes_)}, {existing} has {bytes_text(free)} free",
            "Name a folder on another disk, or export fewer warehouses.",
        )
