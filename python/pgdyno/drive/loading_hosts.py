"""Hosts that fill the tables of one load together, each with the rows of its own warehouses.

They are reached as those that drive are, and run the same program. Each is told the whole load and
which part of it is its own (`crates/load/src/share.rs`). The head creates the tables before them,
and does after them what is done once; what was copied stands in the load's ledger, so that nothing
depends on which host it was. No clock matters.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from pgdyno.drive.fleet import Head, require_alike, require_reachable
from pgdyno.drive.host_link import SAME_WHEEL, HostLink
from pgdyno.drive.host_results import share_of
from pgdyno.drive.transport import transports
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError
from pgdyno.model.fleet import Fleet
from pgdyno.model.loading import COPY, HostLoaded, LoadReport
from pgdyno.model.progress import LoadProgress
from pgdyno.model.record_json import JsonObject, from_plain, json_object

_TOLD_S = 0.2
NOTHING = LoadProgress(COPY, 0, 0, 0, 0.0, 0.0, 0.0)
"""How far a load is before any row is copied."""


class LoadingHosts:
    """The hosts of a load of tables, from when they are reached until it has ended."""

    def __init__(self, fleet: Fleet, connection: Connection) -> None:
        """Of a fleet that is to load into a database.

        Raises:
            DriveError: Some hosts would look for the server on their own.
        """
        require_reachable(fleet, connection)
        self._head = Head(fleet, transports())

    def __enter__(self) -> LoadingHosts:
        """Reach all hosts.

        Raises:
            DriveError: They are of other versions, or one is there twice.
            HostLostError: One cannot be reached.
        """
        self._head.__enter__()
        try:
            require_alike(self._head.links)
        except BaseException:
            self._head.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End what still runs on any host."""
        self._head.__exit__()

    def reach(self, spec: JsonObject, connections: int | None) -> None:
        """Have each host connect to the server, which changes nothing.

        Args:
            spec: The load as the core wants it.
            connections: Of all hosts together; None: each by its cores.

        Raises:
            DriveError: One cannot, or there are fewer connections than hosts.
            HostLostError: One is lost.
        """
        hosts = len(self._head.links)
        if connections is not None and connections < hosts:
            raise DriveError(
                f"connections are {connections}, hosts are {hosts}",
                "Every host takes one at least: raise them, or take fewer hosts.",
            )
        parts = [spec | {"part": "reach"}] * hosts
        self._do(parts, "reach the server", lambda _: None)

    def copy(
        self,
        spec: JsonObject,
        connections: int | None,
        progress: Callable[[LoadProgress], None] = lambda _: None,
    ) -> tuple[HostLoaded, ...]:
        """Have each host copy its part of the rows into the tables that are there.

        Args:
            spec: The load as the core wants it.
            connections: Of all hosts together; None: each by its cores.
            progress: Told five times a second, of all hosts together.

        Returns:
            What each copied.

        Raises:
            DriveError: A host failed.
            HostLostError: A host was lost.
        """
        hosts = len(self._head.links)
        parts = []
        for number in range(hosts):
            part = spec | {"part": {"copy": {"host": number, "hosts": hosts}}}
            if connections is not None:
                part["connections"] = share_of(connections, number, hosts)
            parts.append(part)
        return self._do(parts, "copy its rows", progress)

    def _do(
        self, parts: Sequence[JsonObject], what: str, progress: Callable[[LoadProgress], None]
    ) -> tuple[HostLoaded, ...]:
        """Tell each host its part, and hear them until all have done it."""
        links = self._head.links
        for link, part in zip(links, parts, strict=True):
            link.result = link.loading = None
            link.say({"load": part})
        told_s = 0.0
        while not all(link.result is not None for link in links):
            self._head.hear(_TOLD_S)
            self._head.require_all(what)
            if time.monotonic() - told_s >= _TOLD_S:
                progress(together([link.loading or NOTHING for link in links]))
                told_s = time.monotonic()
        done = tuple(_loaded(link) for link in links)
        progress(
            together([_whole(link, one.report) for link, one in zip(links, done, strict=True)])
        )
        return done


def _loaded(link: HostLink) -> HostLoaded:
    try:
        return HostLoaded(link.name, from_plain(LoadReport, json_object(link.result or "")))
    except ValueError as error:
        raise DriveError(f"what {link.name} says of its load is not understood", SAME_WHEEL) from (
            error
        )


def _whole(link: HostLink, report: LoadReport) -> LoadProgress:
    """How far a host is in the end, of which it tells no progress."""
    last = link.loading or NOTHING
    return replace(last, rows=report.rows, rows_total=report.rows, bytes=report.bytes, share=1.0)


def together(told: Sequence[LoadProgress]) -> LoadProgress:
    """How far the hosts are: of all together, in the phase of rows."""
    work = sum(one.work for one in told)
    return LoadProgress(
        phase=COPY,
        rows=sum(one.rows for one in told),
        rows_total=sum(one.rows_total for one in told),
        bytes=sum(one.bytes for one in told),
        bytes_per_s=sum(one.bytes_per_s for one in told),
        seconds=max(one.seconds for one in told),
        share=sum(one.share * one.work for one in told) / work if work else 0.0,
        steps=tuple(step for one in told for step in one.steps),
        work=work,
    )
