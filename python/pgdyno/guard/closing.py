"""A data directory closed while it is written: no server starts on it, by whatever way.

Its PG_VERSION says another version, and a server looks at that before all else. It is journalled as
the rest is: so it stands there before any other byte is written, and the true one comes back last.
What is broken off stays closed, until it is carried out or taken back.
"""

from __future__ import annotations

import os

from pgdyno.folders import Folder
from pgdyno.guard.journal import REJOIN, REPAIR, JournalWriter, Step
from pgdyno.guard.relations import opened
from pgdyno.model.errors import TargetError
from pgdyno.pages.files import text_of

VERSION_FILE = "PG_VERSION"
_TEXTS = {
    kind: f"0 until a pgdyno guard {kind} that was broken off is called again\n"
    for kind in (REPAIR, REJOIN)
}


def closed_by(data: Folder) -> str | None:
    """What closed it, `repair` or `rejoin`; None: it is open.

    Raises:
        TargetError: PG_VERSION cannot be read.
    """
    found = text_of(data, VERSION_FILE)
    return next((kind for kind, text in _TEXTS.items() if found == text), None)


def close_and_open(data: Folder, writer: JournalWriter, kind: str, major: int) -> None:
    """Write down that it is closed while the rest of a journal is written, and open after that.

    It is open then also if an earlier call left it closed, of which there is no journal here.

    Args:
        data: The data directory.
        writer: Of the journal.
        kind: Of it, `repair` or `rejoin`.
        major: PostgreSQL's, of these data.

    Raises:
        TargetError: PG_VERSION is missing, or the journal cannot be written.
    """
    with opened(data, VERSION_FILE, writes=False) as handle:
        if handle is None:
            raise TargetError(f"{VERSION_FILE} is missing")
        before = os.pread(handle, os.fstat(handle).st_size, 0)
    closed, after = _TEXTS[kind].encode(), before
    if before.decode(errors="replace") in _TEXTS.values():
        after = f"{major}\n".encode()
    for old, new, step in ((before, closed, Step.closed), (closed, after, Step.opened)):
        writer.add(VERSION_FILE, 0, 0, old, new, ends=(len(old), len(new)), step=step)
