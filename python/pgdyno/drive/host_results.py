"""What the hosts of a fleet measured, as one result that keeps each host's own account."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from pgdyno import core
from pgdyno.drive.checkpoint_pace import Pace
from pgdyno.drive.host_link import SAME_WHEEL, HostLink
from pgdyno.drive.result import Driven, RunResult, parse_result
from pgdyno.model.client import Client
from pgdyno.model.errors import DriveError, HostLostError
from pgdyno.model.fleet import FleetResult, HostKind, HostResult, Offset
from pgdyno.model.plan import Workload
from pgdyno.model.record_json import from_plain, json_object
from pgdyno.model.wording import listed

_Number = TypeVar("_Number", int, float)


def combined(
    links: Sequence[HostLink],
    workload_spec: object,
    workload: Workload,
    pace: Pace | None,
    *,
    went_on: bool = False,
) -> Driven:
    """Add up what the hosts measured.

    Args:
        links: All hosts; those that were lost gave no result.
        workload_spec: The workload as the core was told it.
        workload: What was driven by all together.
        pace: That said when the window ends.
        went_on: Whether the load went on without hosts that were lost; then nothing of theirs
            counts, whatever they gave.

    Raises:
        DriveError: The results are not of one load, or not understood.
        HostLostError: No host gave a result.
    """
    given = [
        (link, link.result)
        for link in links
        if link.result is not None and (link.lost is None or not went_on)
    ]
    lost = tuple(
        f"host {link.name} was lost: {link.lost}" for link in links if link.lost is not None
    )
    if not given:
        raise HostLostError("; ".join(lost) or "no host gave a result")
    text = _added_up(workload_spec, [text for _, text in given], links)
    try:
        driven = parse_result(json_object(text))
        hosts = tuple(
            host_result(
                link, from_plain(RunResult, json_object(result)), number, len(links), workload
            )
            for number, link in enumerate(links)
            if (result := link.result) is not None and (link, result) in given
        )
    except (ValueError, LookupError) as error:  # of one host alone nobody looked at it before
        names = listed([link.name for link, _ in given])
        raise DriveError(f"a result of {names} is not understood", SAME_WHEEL) from error
    asked = went_on or not lost
    if pace is not None and pace.has_stopped and driven.outcome == "stopped" and asked:
        # As it was asked for.
        ended = "complete" if driven.given_up_s is None else "unanswered"
        driven = replace(driven, outcome=ended)
    if pace is not None:
        driven = replace(driven, followed=pace.followed(driven.window_ns))
    gone = [number for number, link in enumerate(links) if link.lost is not None]
    fleet = FleetResult(
        hosts, lost, whole=workload.requests_max is None, went_on=went_on,
        terminals_lost=sum(
            share_of_parts(workload, workload.terminals, number, len(links)) for number in gone
        ),
        connections_lost=sum(connections_of(workload, number, len(links)) for number in gone),
    )  # fmt: skip
    return replace(driven, client=together(hosts), fleet=fleet)


def _added_up(workload_spec: object, results: list[str], links: Sequence[HostLink]) -> str:
    """The one result of all of them, as JSON."""
    if len(links) == 1:  # it was told to drive the whole load, so its result is that of the load
        return results[0]
    try:
        return core.merge_results(json.dumps(workload_spec), results)
    except core.CoreError as error:
        raise DriveError(*core.fact_and_hint(error)) from error


def host_result(
    link: HostLink, result: RunResult, number: int, hosts: int, workload: Workload
) -> HostResult:
    """One host's own account, its times by our steady clock."""
    assert link.machine is not None
    assert result.stream_digest is not None
    before, after = link.offsets[0], link.offsets[-1]
    start_ns = result.started_steady_ns
    begin_ns, end_ns = (
        start_ns + at_ns - result.started_unix_ns for at_ns in result.window_unix_ns
    )
    # Before its threads knew of the begin it drove nothing; with a warm-up that is over by then.
    begin_ns = max(begin_ns, min(start_ns + result.begun_late_ns, end_ns))
    kinds = (
        HostKind(one.kind, one.window.ended, one.response,
                 one.service, one.queue, one.response_ns, one.service_ns, one.queue_ns)
        for one in result.kinds
    )  # fmt: skip
    return HostResult(
        name=link.name,
        machine=link.machine,
        connections=connections_of(workload, number, hosts),
        terminals=share_of_parts(workload, workload.terminals, number, hosts),
        offsets=(before, after),
        window_ns=(_ours(begin_ns, before, after), _ours(end_ns, before, after)),
        begun_late_ns=result.begun_late_ns,
        kinds=tuple(kinds),
        client=result.client,
        late_ns=result.late_ns,
        requests=result.stream_digest.requests,
        digest=result.stream_digest.sum,
        around=link.around,
    )


def share_of(there: int, number: int, hosts: int) -> int:
    """How many of so many things a host has, as the core deals them."""
    return len(range(number, there, hosts))


def share_of_parts(workload: Workload, there: int, number: int, hosts: int) -> int:
    """How many of a workload's connections or terminals a host has: some of each part's."""
    return share_of(workload.of_part(there), number, hosts) * workload.parts


def connections_of(workload: Workload, number: int, hosts: int) -> int:
    """How many connections a host opens; those with a replica are beside those with the server."""
    own = share_of_parts(workload, workload.connections, number, hosts)
    return own + share_of(workload.replica_connections, number, hosts)


def _ours(host_ns: int, before: Offset, after: Offset) -> int:
    """An instant of a host's steady clock by ours: along the line between both offsets."""
    passed_ns = after.at_ns - before.at_ns
    share = (host_ns - before.offset_ns - before.at_ns) / passed_ns if passed_ns > 0 else 0.0
    share = min(max(share, 0.0), 1.0)
    return host_ns - before.offset_ns - round(share * (after.offset_ns - before.offset_ns))


def together(hosts: Sequence[HostResult]) -> Client:
    """What all drivers spent; processes of one machine share its CPUs.

    Whether one of them was the limit only its own account tells.
    """
    costs = [host.client for host in hosts]
    cpus = sum({host.machine.boot: host.client.cpus for host in hosts}.values())
    window_s = max(one.window_s for one in costs)
    cpu_s = _sum([one.cpu_s for one in costs])
    return Client(
        user_s=_sum([one.user_s for one in costs]),
        system_s=_sum([one.system_s for one in costs]),
        window_s=window_s,
        cpus=cpus,
        share_of_host=None if cpu_s is None or not window_s else cpu_s / (window_s * cpus),
        voluntary_switches=_sum([one.voluntary_switches for one in costs]),
        involuntary_switches=_sum([one.involuntary_switches for one in costs]),
        run_queue_wait_s=_sum([one.run_queue_wait_s for one in costs]),
        threads=sum(one.threads for one in costs),
        rss_max_bytes=sum(one.rss_max_bytes for one in costs),
        thread_cpu_s=tuple(value for one in costs for value in one.thread_cpu_s),
        thread_wait_s=tuple(value for one in costs for value in one.thread_wait_s),
    )


def _sum(told: Sequence[_Number | None]) -> _Number | None:
    """None where one of them is not known."""
    known = [one for one in told if one is not None]
    return sum(known[1:], known[0]) if len(known) == len(told) else None
