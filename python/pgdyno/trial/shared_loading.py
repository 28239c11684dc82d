"""A load of tables that several hosts do together: the order of its parts, and what they gave.

The head, this host, creates the tables; each host copies its own warehouses; and the head does what
is done once: indexes, vacuum, references, the record. In the database it is one load like any
other, whose ledger and record name all that it made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn

from pgdyno.drive.loading_hosts import NOTHING, LoadingHosts
from pgdyno.loader import copy
from pgdyno.loader.copy import How
from pgdyno.loader.spec import load_spec, remains
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError, Interrupted
from pgdyno.model.fleet import Fleet
from pgdyno.model.loading import (
    COPY,
    HostLoaded,
    LoadEstimate,
    LoadReport,
    PhaseSeconds,
    TableLoaded,
)
from pgdyno.model.progress import LoadProgress
from pgdyno.model.workload import Workload
from pgdyno.target.database_use import end_load


def estimate_from_hosts(connection: Connection, workload: Workload, how: How) -> LoadEstimate:
    """What a load from several hosts would need; how long they take is not known.

    Raises:
        DriveError: The load would be refused, or the server failed.
    """
    found = copy.estimate(connection, workload, replace(how, part="begin"))
    return replace(found, seconds=None)


def load_from_hosts(
    fleet: Fleet,
    connection: Connection,
    workload: Workload,
    how: How,
    progress: Callable[[LoadProgress], None] = lambda _: None,
    *,
    loaded_at_unix_s: int | None = None,
) -> tuple[LoadReport, tuple[HostLoaded, ...]]:
    """Fill a database that nobody else uses from several hosts.

    Args:
        fleet: The hosts.
        connection: The database, as all of them reach it.
        workload: Whose rows.
        how: Connections of all hosts together, and what becomes of an earlier load.
        progress: Told five times a second.
        loaded_at_unix_s: As `loader.copy.load` has it.

    Returns:
        What was done by all together, and what each host copied.

    Raises:
        DriveError: A host or the server failed, or hosts are not alike.
        HostLostError: A host cannot be reached, or was lost.
        Interrupted: Ctrl-C; what is left behind is named.
    """
    begun_s = time.monotonic()
    at_unix_s = loaded_at_unix_s or int(time.time())
    # Of what is left behind a host knows nothing, and says nothing.
    spec = load_spec(connection, workload, replace(how, intent=None, part="reach"), at_unix_s)
    shown = _Shown(progress)
    left: str | None = "Nothing was changed."
    try:
        with LoadingHosts(fleet, connection) as hosts:
            hosts.reach(spec, how.connections)
            left = None  # by this step, which says so itself
            begun = copy.load(
                connection, workload, replace(how, part="begin"),
                loaded_at_unix_s=at_unix_s, progress=shown.begin,
            )  # fmt: skip
            left = remains(connection.database, how)
            copied_s = time.monotonic()
            copied = hosts.copy(spec, how.connections, shown.copy)
            copied_s = time.monotonic() - copied_s
    except (DriveError, KeyboardInterrupt) as error:
        end_load(connection)
        _fail(error, left)
    ended = copy.load(connection, workload, replace(how, intent="resume"), progress=shown.end)
    phases = _phases(begun, copied, ended, copied_s)
    return _together(begun, copied, ended, phases, time.monotonic() - begun_s), copied


def _fail(error: DriveError | KeyboardInterrupt, left: str | None) -> NoReturn:
    """Say what is left of a load whose hosts did not come to their end."""
    if isinstance(error, KeyboardInterrupt):
        raise Interrupted("the load was stopped while hosts had it", left) from None
    if left is None:
        raise error
    hint = f"{error.hint.rstrip().removesuffix('.')}. " if error.hint else ""
    raise type(error)(error.fact, hint + left) from error


class _Shown:
    """How far the whole load is, from how far its parts are, one after the other."""

    def __init__(self, progress: Callable[[LoadProgress], None]) -> None:
        self._progress = progress
        self._begun_s = time.monotonic()
        self._work = 0  # of the whole load
        self._copied = NOTHING

    def begin(self, state: LoadProgress) -> None:
        """The tables are created."""
        self._work = state.work
        if state.phase != "done":
            self._progress(state)

    def copy(self, state: LoadProgress) -> None:
        """Hosts copy their rows."""
        self._copied = state
        self._tell(state, state.share * state.work)

    def end(self, state: LoadProgress) -> None:
        """What comes after the rows."""
        whole = replace(
            state, rows=self._copied.rows + state.rows, bytes=self._copied.bytes + state.bytes,
            rows_total=self._copied.rows_total + state.rows_total,
            bytes_per_s=self._copied.bytes_per_s,
        )  # fmt: skip
        # Before it has found what is left, it knows of no work.
        left = (1 - state.share) * (state.work or self._work - self._copied.work)
        self._tell(whole, self._work - left)

    def _tell(self, state: LoadProgress, done: float) -> None:
        seconds = time.monotonic() - self._begun_s
        share = min(max(done / self._work, 0.0), 1.0) if self._work else 0.0
        left = seconds * (1 - share) / share if share > 0.01 and state.phase != "done" else None
        self._progress(replace(state, share=share, seconds=seconds, seconds_left=left))


def _phases(
    begun: LoadReport, copied: Sequence[HostLoaded], ended: LoadReport, copied_s: float
) -> tuple[PhaseSeconds, ...]:
    """Those of the head, with the hosts' copying between: from when they were told to the last."""
    own = sum(
        phase.session_seconds or 0.0
        for one in copied
        for phase in one.report.phases
        if phase.name == COPY
    )
    after = tuple(one for one in ended.phases if one.name not in ("prepare", COPY))
    return (*begun.phases, PhaseSeconds(COPY, copied_s, own), *after)


def _together(
    begun: LoadReport,
    copied: Sequence[HostLoaded],
    ended: LoadReport,
    phases: tuple[PhaseSeconds, ...],
    seconds: float,
) -> LoadReport:
    """The one report of a load that was done in parts."""
    parts = [*(one.report for one in copied), ended]
    tables = tuple(
        TableLoaded(table.name, sum(one.tables[at].rows for one in parts),
                    sum(one.tables[at].bytes for one in parts))
        for at, table in enumerate(ended.tables)
    )  # fmt: skip
    return replace(
        ended, seconds=seconds, phases=phases, tables=tables, choices=begun.choices,
        rows=sum(one.rows for one in parts), bytes=sum(one.bytes for one in parts),
        steps_done_before=begun.steps_done_before, units_before=begun.units_before,
        client_cpu_seconds=sum(one.client_cpu_seconds or 0.0 for one in (begun, *parts)),
    )  # fmt: skip
