"""Reading a run file while it is being written, without a lock.

A reader's lock makes the writer wait, and one that hangs would make it fail. So the file is read as
bytes, and used if nobody wrote meanwhile. SQLite with a rollback journal, as run files have it,
changes the counter in the file's head in every transaction, and its journal is there from before
the first page is written until the last is.

Source: SQLite, "Database File Format", sections 1.3.7 and 3.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from pgdyno.model.errors import StoreError
from pgdyno.model.system_errors import told
from pgdyno.model.wording import plural
from pgdyno.plan.schema.files import BadFile, require_regular
from pgdyno.store.run_file import SQLITE_FAILS, RunFile, noticed, require_known

_COUNTER = slice(24, 28)  # of the head
_HEAD_BYTES = 100
_TRIES = 100
_PAUSE_S = 0.05


def read_unlocked(path: Path, pause: Callable[[float], None] = time.sleep) -> RunFile:
    """A run file as it is now, in memory.

    Args:
        path: The file.
        pause: Waits between two tries.

    Raises:
        StoreError: It cannot be read, or is written all the time.
    """
    try:
        require_regular(path)
        content = _content(path, pause)
        connection = sqlite3.connect(":memory:")
        if content:  # SQLite takes no empty one, though an empty file is a database to it
            connection.deserialize(content)
    except BadFile as error:
        raise StoreError(f"run file {path} {error}") from error
    except SQLITE_FAILS as error:
        raise StoreError(f"run file {path} cannot be read: {noticed(error)}") from error
    except OSError as error:
        raise StoreError(f"run file {path} cannot be read: {told(error)}") from error
    require_known(path, connection)
    return RunFile(path, connection)


def _content(path: Path, pause: Callable[[float], None]) -> bytes:
    journal = path.with_name(f"{path.name}-journal")
    for _ in range(_TRIES):
        with path.open("rb", buffering=0) as file:  # what is read is what lies there now
            # In this order: a transaction that began before the first look at the counter, and of
            # which pages are still missing, has a journal at the first look for one.
            before = file.read(_HEAD_BYTES)[_COUNTER]
            if not journal.exists():
                file.seek(0)
                content = file.read()
                file.seek(0)
                after = file.read(_HEAD_BYTES)[_COUNTER]
                if not journal.exists() and before == content[_COUNTER] == after:
                    return content
        pause(_PAUSE_S)
    looks = plural(_TRIES, "look")
    raise StoreError(f"run file {path} was written at each of {looks} at it")
