"""Several servers in one window: each is sampled and counted for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import psycopg

from pgdyno.drive.result import Driven
from pgdyno.model.plan import Workload
from pgdyno.model.run import TelemetryReport
from pgdyno.model.server_result import ServerResult
from pgdyno.model.settings import OriginKind
from pgdyno.model.wording import plural
from pgdyno.sample.link import Found, Link
from pgdyno.sample.recorder import Recorder
from pgdyno.sample.sampler import Subject
from pgdyno.sample.samplers import samplers_of_server
from pgdyno.session import own_session
from pgdyno.target.interface import Ready, on_server
from pgdyno.trial.sampled import Named, Sampled, growth, named_by

# A broken network is noticed within some 15 s by who only waits for an answer.
_ALIVE = {"keepalives_idle": "5", "keepalives_interval": "3", "keepalives_count": "3"}
ALONE = ""
"""The name of a server that has none beside it."""


def recorders_of_servers(ready: Ready, subject: Subject, stack: ExitStack) -> dict[str, Recorder]:
    """A recorder for each server, begun: none of them, nor that of the host, waits for another.

    Args:
        ready: The servers.
        subject: What is read of this host, and where there is one server, of that.
        stack: Ends recorders and sessions.

    Returns:
        By the names of the servers; a server that is alone is `ALONE`.
    """
    found = {}
    for one in ready.each:
        own = subject
        if ready.others:
            own = replace(
                subject,
                databases=[one.connection.database],
                own_pids=subject.own_pids if one is ready else (),
            )
        with on_server(one.name):
            link = stack.enter_context(_link(one, own))
            recorder = Recorder(link.found(), subject.telemetry, link=link)
        found[one.name if ready.others else ALONE] = stack.enter_context(recorder)
    return found


def _link(ready: Ready, subject: Subject) -> Link:
    connection = ready.connection.with_parameters(_ALIVE | dict(ready.connection.parameters))

    def samplers(session: psycopg.Connection[Any]) -> Found:
        pids = frozenset({*subject.own_pids, session.info.backend_pid})
        return samplers_of_server(replace(subject, session=session, own_pids=pids))

    quiet = subject.ours and not connection.pooled
    beside = () if subject.replica is None else (subject.replica,)
    consoles = () if subject.pooler is None else (subject.pooler,)
    return Link(lambda: own_session(connection), samplers, quiet=quiet, beside=beside,
                consoles=consoles)  # fmt: skip


def with_servers(sampled: Sampled, recorders: Mapping[str, Recorder]) -> Sampled:
    """What was sampled, with each server's own under its name, and that of one alone as it is."""
    for server, recorder in recorders.items():
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
