"""Loads a workload's rows by the Rust core, telling how far it is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from pgdyno import _core
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError, Interrupted

POLL_S = 0.2


def describe(workload: dict[str, Any]) -> dict[str, Any]:
    """What a workload is: tables, statements, kinds, mix, conditions, deviations, size.

    Raises:
        DriveError: The workload's parameters are out of range.
    """
    try:
        described: dict[str, Any] = json.loads(_core.describe(json.dumps(workload)))
    except _core.CoreError as error:
        raise DriveError(*_fact_and_hint(error)) from error
    return described


def load(
    connection: Connection,
    workload: dict[str, Any],
    *,
    connections: int | None = None,
    loaded_at_unix_s: int | None = None,
    drop_ours: bool = False,
    progress: Callable[[dict[str, Any]], None] = lambda _: None,
) -> dict[str, Any]:
    """Create and fill all tables, build the indexes, vacuum.

    Args:
        connection: An empty database.
        workload: The workload's parameters (`TpccSpec` in `crates/workload`).
        connections: How many stream at the same time; None: chosen from the cores.
        loaded_at_unix_s: The time that loaded orders carry; None: now.
        drop_ours: Drop the tables of an earlier load of ours first.
        progress: Told five times a second.

    Returns:
        The loader's report: seconds of each phase, rows and bytes of each table, the C constants.

    Raises:
        DriveError: A table exists already, the server failed, the disk is full, ...
        Interrupted: Ctrl-C; what is left behind is named.
    """
    spec = {
        "version": 1,
        "workload": workload,
        "connection": connection.spec(),
        "connections": connections,
        "index_connections": None,
        "maintenance_work_mem_bytes": None,
        "loaded_at_unix_s": loaded_at_unix_s or int(time.time()),
        "drop_ours": drop_ours,
    }
    try:
        loader = _core.Load(json.dumps(spec))
        loader.start()
        try:
            while True:
                state = json.loads(loader.poll())
                progress(state)
                if state["phase"] == "done":
                    break
                time.sleep(POLL_S)
        except KeyboardInterrupt:
            loader.stop()
            raise Interrupted(*_what_is_left(loader)) from None
        report: dict[str, Any] = json.loads(loader.result())
    except _core.CoreError as error:
        raise DriveError(*_fact_and_hint(error)) from error
    return report


def _what_is_left(loader: _core.Load) -> tuple[str, str | None]:
    """Fact and hint of a load that was stopped: the core names what it leaves behind."""
    try:
        loader.result()
    except _core.CoreError as error:
        return _fact_and_hint(error)
    return "the load was stopped after its last step", None


def _fact_and_hint(error: _core.CoreError) -> tuple[str, str | None]:
    _kind, fact, hint = error.args
    return fact, hint


def require_release() -> None:
    """Refuse to measure with a debug build of the core.

    Raises:
        DriveError: The core was built without optimisation.
    """
    if not _core.is_release():
        raise DriveError(
            "the Rust core is a debug build",
            hint="Build it with `make build` (maturin develop --release); a debug build is slow.",
        )
