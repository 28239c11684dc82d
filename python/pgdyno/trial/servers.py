"""Several servers in one window: each is sampled and counted for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from pgdyno.drive.result import Driven
from pgdyno.model.plan import Workload
from pgdyno.model.run import TelemetryReport
from pgdyno.model.server_result import ServerResult
from pgdyno.model.settings import OriginKind
from pgdyno.model.wording import plural
from pgdyno.sample.recorder import Recorder
from pgdyno.sample.sampler import Subject
from pgdyno.sample.samplers import samplers_of_server
from pgdyno.session import own_session
from pgdyno.target.interface import Ready, on_server
from pgdyno.trial.sampled import Sampled, growth, named_by


def recorders_of_servers(ready: Ready, subject: Subject, stack: ExitStack) -> dict[str, Recorder]:
    """A recorder for each of several servers, begun; none where there is one.

    Args:
        ready: The servers.
        subject: What is read where there is one.
        stack: Ends recorders and sessions.
    """
    found = {}
    for one in ready.each if ready.others else ():
        with on_server(one.name):
            session = stack.enter_context(own_session(one.connection))
        beside = subject.own_pids if one is ready else ()
        own = replace(
            subject,
            session=session,
            databases=[one.connection.database],
            own_pids=frozenset({*beside, session.info.backend_pid}),
        )
        with on_server(one.name):
            recorder = Recorder(samplers_of_server(own), subject.telemetry)
        found[one.name] = stack.enter_context(recorder)
    return found


def with_servers(sampled: Sampled, recorders: Mapping[str, Recorder]) -> Sampled:
    """What was sampled, with each server's own under its name."""
    for server, recorder in recorders.items():
        sampled = replace(
            sampled,
            tallies=(*sampled.tallies, *named_by(server, recorder.tallies())),
            snapshots=(*sampled.snapshots, *named_by(server, recorder.snapshots())),
            telemetry=_joined(sampled.telemetry, server, recorder.telemetry()),
            servers={**sampled.servers, server: recorder.series()},
        )
    return sampled


def _joined(before: TelemetryReport | None, server: str, own: TelemetryReport) -> TelemetryReport:
    assert before is not None, "this host is read first"
    return replace(
        before,
        seconds=max(before.seconds, own.seconds),
        cpu_s=before.cpu_s + own.cpu_s,
        samplers=(*before.samplers, *named_by(server, own.samplers)),
        missing=(*before.missing, *named_by(server, own.missing)),
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
