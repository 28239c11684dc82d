"""Loads a workload's rows by the Rust core, telling how far it is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pgdyno import _core
from pgdyno.catalog.contract import fact_and_hint
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError, Interrupted, PlanError
from pgdyno.model.loading import LoadEstimate, LoadReport
from pgdyno.model.progress import LoadProgress
from pgdyno.model.record_json import JsonObject, from_json
from pgdyno.model.workload import Workload
from pgdyno.workload.spec import workload_spec

POLL_S = 0.2

Intent = Literal["drop_ours", "resume", "top_up"]
"""What becomes of an earlier load of ours."""


@dataclass(frozen=True, slots=True)
class How:
    """How a load goes about it; nothing of this shapes the data."""

    connections: int | None = None  # how many stream and build at the same time; None: by cores
    server_memory_bytes: int | None = None  # of a server of ours; None: it gives what it has set
    copies: Literal["tables", "batches"] | None = None  # how rows are cut; None: chosen
    intent: Intent | None = None  # None: the database is empty


def load(
    connection: Connection,
    workload: Workload,
    how: How = How(),
    *,
    loaded_at_unix_s: int | None = None,
    progress: Callable[[LoadProgress], None] = lambda _: None,
) -> LoadReport:
    """Create and fill all tables, build the indexes, vacuum.

    Args:
        connection: An empty database, or one with a load of ours if the intent says so.
        workload: Whose rows; how it would be driven does not matter.
        how: Sessions, memory, and what becomes of an earlier load.
        loaded_at_unix_s: The time that loaded orders carry; None: now. A load that goes on, or is
            added to, keeps its own.
        progress: Told five times a second.

    Returns:
        What was done.

    Raises:
        PlanError: A pooler stands in between.
        DriveError: A table exists already, the server failed, the disk is full, ...
        Interrupted: Ctrl-C; what is left behind is named.
    """
    spec = _spec(connection, workload, how, loaded_at_unix_s)
    try:
        loader = _core.Load(json.dumps(spec))
        loader.start()
        try:
            while True:
                state = from_json(LoadProgress, loader.poll())
                progress(state)
                if state.phase == "done":
                    break
                time.sleep(POLL_S)
        except KeyboardInterrupt:
            loader.stop()
            raise Interrupted(*_what_is_left(loader)) from None
        return from_json(LoadReport, loader.result())
    except _core.CoreError as error:
        raise DriveError(*fact_and_hint(error)) from error


def estimate(connection: Connection, workload: Workload, how: How = How()) -> LoadEstimate:
    """What a load would need; nothing is changed. Takes a tenth of a second.

    Raises:
        DriveError: The load would be refused, or the server failed.
    """
    try:
        spec = json.dumps(_spec(connection, workload, how, None))
        return from_json(LoadEstimate, _core.estimate_load(spec))
    except _core.CoreError as error:
        raise DriveError(*fact_and_hint(error)) from error


def _spec(
    connection: Connection, workload: Workload, how: How, loaded_at_unix_s: int | None
) -> JsonObject:
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
    }
    return {
        "version": 1,
        "workload": workload_spec(workload),
        "connection": connection.spec(),
        "loaded_at_unix_s": loaded_at_unix_s or int(time.time()),
        **{name: value for name, value in chosen.items() if value is not None},
        **({how.intent: True} if how.intent else {}),
    }


def _what_is_left(loader: _core.Load) -> tuple[str, str | None]:
    """Fact and hint of a load that was stopped: the core names what it leaves behind."""
    try:
        loader.result()
    except _core.CoreError as error:
        return fact_and_hint(error)
    return "the load was stopped after its last step", None
