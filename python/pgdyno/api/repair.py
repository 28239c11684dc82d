"""A crashed cluster repaired or made a standby, and that taken back: parts of `Guard`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from pgdyno.catalog.contract import require_release
from pgdyno.folders import Folder
from pgdyno.guard import journal
from pgdyno.guard.data_directory import DataDirectory, claim
from pgdyno.guard.interlock import is_copy, kernel_lived, read_armed, shut
from pgdyno.guard.rejoin import RejoinAsked, rejoin, require_no_rejoin, require_not_started
from pgdyno.guard.repair import RepairAsked, repair
from pgdyno.guard.state import folder_at, state_path
from pgdyno.guard.writing import write_old
from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.model.repair import RedoBegin, RejoinReport, RepairReport
from pgdyno.pages.redo import redo_begin
from pgdyno.target.leftover_server import require_no_server

_LOCK = "lock"
_PATIENCE_S = 5.0  # for a daemon that looks whether the interlock may be opened


def repaired(
    directory: DataDirectory,
    standby: Connection,
    standby_data: str | Path | None,
    journals: str | Path | None,
    asked: RepairAsked,
    on_event: Callable[[str], None],
    *,
    same_boot: bool = False,
) -> RepairReport:
    """Repair the cluster of a data directory; see `Guard.repair`.

    With `same_boot` also where the kernel lived on.
    """
    require_release()
    with _held(directory, journals) as (data, kept, begin), ExitStack() as stack:
        require_no_rejoin(data)
        _require_cut(directory, asked, same_boot=same_boot)
        target = None
        if standby_data is not None:
            held = Folder.hold(Path(standby_data), "Name the standby's data directory.")
            target = stack.enter_context(held)
        still = partial(_require_still, directory, data, begin)
        return repair(data, begin, standby, asked, kept, standby_data=target, still=still,
                      on_event=on_event)  # fmt: skip


def rejoined(
    directory: DataDirectory,
    primary: Connection,
    journals: str | Path | None,
    asked: RejoinAsked,
    on_event: Callable[[str], None],
) -> RejoinReport:
    """Make the cluster of a data directory a standby; see `Guard.rejoin`."""
    require_release()
    with _held(directory, journals) as (data, kept, begin):
        still = partial(_require_still, directory, data, begin)
        return rejoin(data, begin, primary, asked, kept, still=still, on_event=on_event)


def undone(directory: DataDirectory, journals: str | Path | None) -> str:
    """Put back what was overwritten last, and tell its journal; see `Guard.undo`."""
    with _held(directory, journals) as (data, kept, begin):
        found = journal.latest(kept, data)
        if found is None:
            raise TargetError(
                f"there is no repair or rejoin of {directory.path} to be undone",
                f"Journals lie in {kept.path}.",
            )
        folder, head = found
        with folder:
            if journal.is_rejoin(folder):
                require_not_started(data, begin, folder, head)
            else:
                journal.require_of(folder, head, begin)
            shut(directory)
            write_old(data, folder, head, partial(_require_still, directory, data, begin))
            return str(folder.path)


def _require_cut(directory: DataDirectory, asked: RepairAsked, *, same_boot: bool) -> None:
    """Refuse armed data that may be started, and are being started by others meanwhile.

    Raises:
        TargetError: The kernel lived on, and nobody says that pages may be torn all the same.
    """
    armed = read_armed(directory)
    if armed is None or is_copy(directory, armed) or not kernel_lived(directory, armed):
        return
    if not same_boot:
        raise TargetError(
            f"nothing of {directory.path} can be torn: the kernel has not stopped since it was"
            " armed",
            "Start the server; `pgdyno guard watch` opens the interlock. If the storage lost what"
            " was written while the kernel lived on: --accept same-boot.",
        )
    if not asked.dry_run:
        shut(directory)


@contextmanager
def _held(
    directory: DataDirectory, journals: str | Path | None
) -> Iterator[tuple[Folder, Folder, RedoBegin]]:
    """The data directory, on which no server runs, and its journals, which nobody else uses."""
    with ExitStack() as stack:
        data = stack.enter_context(directory.opened())
        if not claim(data, _PATIENCE_S):
            raise TargetError(
                f"another repair or rejoin works on {directory.path}", "Wait for its end."
            )
        _require_none(directory, data)
        begin = redo_begin(data)
        path = Path(journals) if journals is not None else state_path() / begin.system_identifier
        kept = stack.enter_context(folder_at(path.absolute()))
        lock = kept.lock(_LOCK)
        if lock is None:
            raise TargetError(f"another repair holds {path}", "Wait for it.")
        stack.callback(os.close, lock)
        yield data, kept, begin


def _require_none(directory: DataDirectory, data: Folder) -> None:
    """Refuse data on which a server runs."""
    with directory.server() as server:
        if server is not None:
            raise TargetError(
                f"a server runs on {directory.path}: process {server.pid}",
                "A cluster is repaired before its server is started.",
            )
    require_no_server(data, directory.user)


def _require_still(directory: DataDirectory, data: Folder, begin: RedoBegin) -> None:
    """Refuse data on which a server was started since they were looked at.

    Nothing keeps one from that on data that are not armed, or whose kernel lived on.
    """
    _require_none(directory, data)
    if (now := redo_begin(data)) != begin:
        raise TargetError(
            f"the server on {directory.path} was started meanwhile: it was {begin.state} with redo"
            f" from {begin.redo_lsn}, and is {now.state} with redo from {now.redo_lsn}",
            "Nothing of it was written. Call it again, if it still may be torn.",
        )
