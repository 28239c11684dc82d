"""The hosts that a load came from: what each did, which was the limit, which is unlike others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from pgdyno.analysis.host_facts import FleetFacts, FleetRow, HostRow
from pgdyno.analysis.judge import host_limit, most_doubtful
from pgdyno.model.fleet import FleetResult, HostResult, Machine
from pgdyno.model.run import TrialRecord, TrialResult
from pgdyno.model.units import ns_text, share_text
from pgdyno.model.wording import plural
from pgdyno.stats.fleet import LATE_NS, UNLIKE_SHARE, unlike

_Driven = tuple[TrialResult, FleetResult, HostResult]


def fleet_facts(
    names: Sequence[str], finished: Sequence[TrialRecord], *, server_on_host: bool
) -> FleetFacts | None:
    """The hosts of all stages; None: the load came from one process.

    Args:
        names: Of the stages, in order.
        finished: Trials whose numbers are used.
        server_on_host: Whether the server is on the host that the head runs on.
    """
    stages: list[FleetRow] = []
    rows: list[HostRow] = []
    machines: dict[str, str] = {}
    for name in names:
        results = [one.result for one in finished if one.stage == name and one.result]
        driven = [(result, result.fleet) for result in results if result.fleet]
        if not driven:
            continue
        fleets = [fleet for _, fleet in driven]
        stages.append(FleetRow(name, len(fleets[0].hosts), min(one.overlap for one in fleets),
                               max(one.skew_ns for one in fleets)))  # fmt: skip
        by_host: dict[str, list[_Driven]] = {}
        for result, fleet in driven:
            for host in fleet.hosts:
                by_host.setdefault(host.name, []).append((result, fleet, host))
                machines.setdefault(host.name, machine_text(host.machine))
        rows += [
            _row(name, host, all_of_it, server_on_host=server_on_host)
            for host, all_of_it in by_host.items()
        ]
    if not stages:
        return None
    return FleetFacts(tuple(stages), tuple(rows), tuple(machines.items()))


def machine_text(machine: Machine) -> str:
    """What a host is, in a line."""
    return (
        f"{plural(machine.cpus, 'CPU')}, Linux {machine.kernel}, Python {machine.python},"
        f" pgdyno {machine.pgdyno}"
    )


def _row(stage: str, name: str, driven: Sequence[_Driven], *, server_on_host: bool) -> HostRow:
    hosts = [host for _, _, host in driven]
    clients = [host.client for host in hosts]
    limits = [host_limit(result, host, server_on_host=server_on_host) for result, _, host in driven]
    differing = [found for _, fleet, host in driven if (found := unlike(host, fleet.hosts))
                 is not None]  # fmt: skip
    limit = most_doubtful(limits) or limits[0]
    drifting = max(hosts, key=lambda one: abs(one.drift_ppm))
    row = HostRow(
        stage=stage,
        host=name,
        connections=hosts[0].connections,
        terminals=hosts[0].terminals,
        rounds=len(hosts),
        per_s=median(one.ended / one.client.window_s for one in hosts),
        share=median(
            one.ended / max(1, sum(each.ended for each in fleet.hosts)) for _, fleet, one in driven
        ),
        cpu_share=median(one.cpu_s / (one.window_s * one.cpus) for one in clients),
        cpu_us=median(one.client.cpu_s * 1e6 / max(1, one.ended) for one in hosts),
        wanted=max(_wanted(one) for one in hosts),
        late_p999_ns=max(one.late_ns.get("p999", 0) for one in hosts),
        begun_late_ns=max(one.begun_late_ns for one in hosts),
        bound_ns=max(one.bound_ns for one in hosts),
        drift_ppm=drifting.drift_ppm,
        drift_bound_ppm=drifting.drift_bound_ppm,
        unlike=median(differing) if differing else None,
        limit=limit.verdict,
        limit_fact=limit.fact,
        remarks=(),
    )
    return _remarked(row)


def _wanted(host: HostResult) -> float:
    """The share of time that its busiest thread ran or waited for a CPU."""
    times = zip(host.client.thread_cpu_s, host.client.thread_wait_s, strict=True)
    return max((cpu + wait for cpu, wait in times), default=0.0) / host.client.window_s


def _remarked(row: HostRow) -> HostRow:
    return replace(row, remarks=tuple(_remarks(row)))


def _remarks(row: HostRow) -> Iterator[str]:
    if row.limit == "finding":
        yield f"it was the limit: {row.limit_fact}"
    if row.unlike is not None and abs(row.unlike) > UNLIKE_SHARE:
        time = "more" if row.unlike > 0 else "less"
        yield f"its requests took {share_text(abs(row.unlike))} {time} time than elsewhere"
    if row.late_p999_ns > LATE_NS:
        yield f"it noticed due times {ns_text(row.late_p999_ns)} late at p99.9"
