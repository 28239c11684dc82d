"""Several servers in one window: each is sampled and counted for itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import count

import psycopg

from pgdyno.drive.result import Driven
from pgdyno.model.connection import Connection
from pgdyno.model.plan import Workload
from pgdyno.model.run import TelemetryReport
from pgdyno.model.server_result import ServerResult
from pgdyno.model.settings import OriginKind
from pgdyno.model.wording import plural
from pgdyno.sample.link import Found, Link, Session
from pgdyno.sample.positions import Positions
from pgdyno.sample.recorder import Recorder
from pgdyno.sample.sampler import Replica, Subject
from pgdyno.sample.samplers import samplers_of_server
from pgdyno.sample.session import CountingSession
from pgdyno.session import own_session_of
from pgdyno.target.interface import Ready, on_server
from pgdyno.trial.sampled import Named, Sampled, growth, named_by

# A broken network is noticed within some 15 s by who only waits for an answer.
_ALIVE = {"keepalives_idle": "5", "keepalives_interval": "3", "keepalives_count": "3"}
ALONE = ""
"""The name of a server that has none beside it."""


def recorders_of_servers(
    ready: Ready, workload: Workload, subject: Subject, own: set[int], stack: ExitStack
) -> list[tuple[str, Recorder]]:
    """A recorder for each server, a replica and a pooler, begun: none of them waits for another.

    Args:
        ready: The servers.
        workload: What they are asked for.
        subject: What is read of this host.
        own: Its `own_pids`, to which backends of sessions that are opened are added.
        stack: Ends recorders and sessions.

    Returns:
        With the names of the servers; what belongs to a server that is alone is `ALONE`.
    """
    found: list[tuple[str, Recorder]] = []

    def begin(server: str, link: Link) -> None:
        recorder = Recorder(stack.enter_context(link).found(), subject.telemetry, link=link)
        found.append((server, stack.enter_context(recorder)))

    # Sessions that look on are known before any server is asked for those of its load.
    if ready.replica is not None and workload.replica_connections:
        begin(ALONE, _replica_link(ready, ready.replica, subject, own))
    if ready.pooled is not None:
        begin(ALONE, _pooler_link(ready.pooled.console, subject))
    for one in ready.each:
        of_server, looking = subject, own
        if ready.others:
            looking = own if one is ready else set()
            of_server = replace(subject, databases=[one.connection.database], own_pids=looking)
        with on_server(one.name):
            begin(one.name if ready.others else ALONE, _server_link(one, of_server, looking))
    return found


def _server_link(ready: Ready, subject: Subject, own: set[int]) -> Link:
    def samplers(session: Session) -> Found:
        return samplers_of_server(replace(subject, session=session))

    quiet = subject.ours and not ready.connection.pooled
    return Link(_looking_on(ready.connection, own), samplers=samplers, quiet=quiet)


def _replica_link(ready: Ready, replica: Connection, subject: Subject, own: set[int]) -> Link:
    """To look how far a replica that answers is behind: with a session of its own on both."""
    seen = Positions()  # by sessions that were lost, too

    def samplers(there: Session, here: Session) -> Found:
        return samplers_of_server(replace(subject, replica=Replica(there, here, seen)))

    return Link(_looking_on(replica), _looking_on(ready.beside, own), samplers=samplers)


def _pooler_link(console: Connection, subject: Subject) -> Link:
    """To the console of a pooler, which takes no statement that is prepared, and no limit."""

    def opened() -> Session:
        arguments = console.arguments() | {"prepare_threshold": None}
        return psycopg.connect(**arguments, autocommit=True)

    def samplers(session: Session) -> Found:
        return samplers_of_server(replace(subject, pooler=session))

    return Link(opened, samplers=samplers, limited=False)


def _looking_on(connection: Connection, own: set[int] | None = None) -> Callable[[], Session]:
    """What opens a session for samplers, and adds its backend to those of ours."""
    alive = connection.with_parameters(_ALIVE | dict(connection.parameters))

    several = count()

    def opened() -> Session:
        session = own_session_of(CountingSession, alive)
        if alive.pooled:
            session.unsure = "a pooler stands in between, which may change the server's session"
        elif next(several):
            session.unsure = "a session was lost, and what it had ended last is not known"
        if own is not None:
            own.add(session.info.backend_pid)
        return session

    return opened


def with_servers(sampled: Sampled, recorders: Sequence[tuple[str, Recorder]]) -> Sampled:
    """What was sampled, with each server's own under its name, and that of one alone as it is."""
    for server, recorder in recorders:
        sampled = replace(
            sampled,
            tallies=(*sampled.tallies, *_named(server, recorder.tallies())),
            snapshots=(*sampled.snapshots, *_named(server, recorder.snapshots())),
            telemetry=_joined(sampled.telemetry, server, recorder.telemetry()),
        )
        own = recorder.series()
        if server == ALONE:
            sampled = replace(sampled, series=(*sampled.series, *own))
        else:
            sampled = replace(sampled, servers={**sampled.servers, server: own})
    return sampled


def _named(server: str, own: Sequence[Named]) -> Sequence[Named]:
    return own if server == ALONE else named_by(server, own)


def _joined(before: TelemetryReport | None, server: str, own: TelemetryReport) -> TelemetryReport:
    assert before is not None, "this host is read first"
    return replace(
        before,
        seconds=max(before.seconds, own.seconds),
        cpu_s=before.cpu_s + own.cpu_s,
        samplers=(*before.samplers, *_named(server, own.samplers)),
        missing=(*before.missing, *_named(server, own.missing)),
    )


def server_results(
    ready: Ready, workload: Workload, sampled: Sampled, driven: Driven
) -> tuple[ServerResult, ...]:
    """What each of several servers did; nothing where there is one."""
    if not ready.others:
        return ()
    return tuple(
        ServerResult(
            one.name,
            one.server,
            held_text(workload, number),
            growth(sampled.servers[one.name], driven, sampled.anew(one.name)),
            {own.name: own.value for own in one.settings if own.origin == OriginKind.SERVER},
        )
        for number, one in enumerate(ready.each)
    )


def held_text(workload: Workload, server: int) -> str:
    """What of a workload's data a server has, counted from 0."""
    if workload.tpcc is not None:
        size = workload.of_part(workload.tpcc.warehouses)
        if workload.blocks == 1:
            return plural(size, "warehouse")
        first, last = server * size + 1, (server + 1) * size
        return f"warehouse {first}" if size == 1 else f"warehouses {first} to {last}"
    kind, scale = workload.data.kind, workload.data.scale
    return {"tpcb": f"scale {scale}", "tpcc": plural(scale, "warehouse")}.get(kind, "its tables")


def with_violations(
    servers: Sequence[ServerResult], violations: Sequence[int]
) -> tuple[ServerResult, ...]:
    """The same with the rows against conditions that were found on each."""
    if not servers:
        return ()
    return tuple(
        replace(one, violations=count) for one, count in zip(servers, violations, strict=True)
    )
