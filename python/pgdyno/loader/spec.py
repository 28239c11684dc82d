"""A load and an export as the core wants them, as JSON: `LoadSpec` and `ExportSpec`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pgdyno.model.connection import Connection
from pgdyno.model.errors import PlanError
from pgdyno.model.record_json import JsonObject
from pgdyno.model.workload import Workload
from pgdyno.workload.spec import workload_spec

Intent = Literal["drop_ours", "resume", "top_up"]
"""What becomes of an earlier load of ours."""
Part = Literal["reach", "begin"]
"""Of a load that several hosts do together: is the server there, and what comes before the rows."""


@dataclass(frozen=True, slots=True)
class How:
    """How a load goes about it; nothing of this shapes the data."""

    connections: int | None = None  # how many stream and build at the same time; None: by cores
    server_memory_bytes: int | None = None  # of a server of ours; None: it gives what it has set
    copies: Literal["tables", "batches"] | None = None  # how rows are cut; None: chosen
    intent: Intent | None = None  # None: the database is empty
    part: Part | None = None  # None: all of it
    kept: bool = True  # False: who asks for it removes what a load that fails leaves behind


def remains(database: str, how: How) -> str:
    """What becomes of tables that a load leaves behind when it fails, as a sentence."""
    if not how.kept:
        return "What was loaded is removed."
    return (
        f"The tables of the load remain in database {database}, incomplete; go on with --resume, or"
        " begin again with --drop-ours, which removes them."
    )


def load_spec(
    connection: Connection, workload: Workload, how: How, loaded_at_unix_s: int
) -> JsonObject:
    """A load as the core wants it; holds the passwords.

    Raises:
        PlanError: A pooler stands in between.
    """
    if connection.pooled:
        # Its sessions hold locks from one transaction to the next.
        raise PlanError(
            "a pooler stands between the loader and the server",
            hint="Load over a direct connection; only `bench` works through a pooler.",
        )
    chosen = {
        "connections": how.connections,
        "server_memory_bytes": how.server_memory_bytes,
        "copies": how.copies,
        "part": how.part,
        # One that is only to be reached has made none.
        "remains": None if how.part == "reach" else remains(connection.database, how),
    }
    return {
        "version": 1,
        "workload": workload_spec(workload),
        "connection": connection.spec(),
        "loaded_at_unix_s": loaded_at_unix_s,
        **{name: value for name, value in chosen.items() if value is not None},
        **({how.intent: True} if how.intent else {}),
    }


def export_spec(
    folder: Path, handle: int, workload: Workload, loaded_at_unix_s: int, threads: int | None
) -> JsonObject:
    """An export as the core wants it.

    Args:
        folder: What it is called.
        handle: The folder itself, open until the export has ended.
        workload: TPC-C of some size, seed and schema.
        loaded_at_unix_s: The time that rows carry, seconds since 1970.
        threads: Files written at the same time; None: one for each core.
    """
    return {
        "version": 1,
        "workload": workload_spec(workload),
        "folder": str(folder.absolute()),
        "handle": handle,
        "loaded_at_unix_s": loaded_at_unix_s,
        "threads": threads,
    }
