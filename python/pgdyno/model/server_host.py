"""Where a server is, as far as that can be seen from here; what is not known is None."""

from __future__ import annotations

from dataclasses import dataclass

BY_SOCKET = "a Unix socket"
"""How a server that is not ours is reached, where it is no network."""
HOST_HERE = "this one"
"""How what a server says of its host begins, where that is the machine of the driver's head."""


@dataclass(frozen=True, slots=True)
class Area:
    """A folder of the server's on a file system of this host."""

    path: str
    device: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class ServerHost:
    """A server's memory and disk, and who else uses it."""

    memory_bytes: int | None = None  # that it may use; None: it runs elsewhere
    data: Area | None = None  # where a database's tables go
    sort: Area | None = None  # where temporary files go
    wal: Area | None = None
    wal_limit_bytes: int | None = None  # WAL that is kept, about; None: nothing bounds it
    wal_there_bytes: int | None = None  # WAL files that are there, and used again
    sessions_of_others: int = 0
