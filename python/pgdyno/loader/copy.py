"""Loads a workload's rows by the Rust core, telling how far it is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from pgdyno import core
from pgdyno.core import fact_and_hint
from pgdyno.loader.reports import read_report
from pgdyno.loader.spec import How, Intent, load_spec
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError, Interrupted
from pgdyno.model.loading import LoadEstimate, LoadReport
from pgdyno.model.progress import LoadProgress
from pgdyno.model.record_json import from_json
from pgdyno.model.workload import Workload

__all__ = ["How", "Intent", "estimate", "load"]

POLL_S = 0.2
_AS_CHOSEN = How()


def load(
    connection: Connection,
    workload: Workload,
    how: How = _AS_CHOSEN,
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
    spec = load_spec(connection, workload, how, loaded_at_unix_s or int(time.time()))
    try:
        loader = core.Load(json.dumps(spec))
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
        return read_report(LoadReport, loader.result())
    except core.CoreError as error:
        raise DriveError(*fact_and_hint(error)) from error


def estimate(connection: Connection, workload: Workload, how: How = _AS_CHOSEN) -> LoadEstimate:
    """What a load would need; nothing is changed. Takes a tenth of a second.

    Raises:
        DriveError: The load would be refused, or the server failed.
    """
    try:
        spec = json.dumps(load_spec(connection, workload, how, int(time.time())))
        return read_report(LoadEstimate, core.estimate_load(spec))
    except core.CoreError as error:
        raise DriveError(*fact_and_hint(error)) from error


def _what_is_left(loader: core.Load) -> tuple[str, str | None]:
    """Fact and hint of a load that was stopped: the core names what it leaves behind."""
    try:
        loader.result()
    except core.CoreError as error:
        return fact_and_hint(error)
    return "the load was stopped after its last step", None
