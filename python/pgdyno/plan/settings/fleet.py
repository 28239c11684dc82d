"""Whether the stages of a plan can be driven from its hosts, and what cannot be had with them.

And which of them fill its tables, by how many connections.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pgdyno.model.fleet import Fleet
from pgdyno.model.host_address import host_address
from pgdyno.model.plan import Protocol, Stage, Target
from pgdyno.model.wording import listed, plural
from pgdyno.plan.schema.complaint import Complaint

POISSON_RATE_MAX = 1_000_000
"""Requests a second: every host draws the gaps of all arrivals, which takes a thread's time."""
LOADING_HOSTS_MAX = 16
"""So many hosts of a plan fill its tables: where more drive, the server has been the limit long."""
_SESSIONS_MAX = 16  # by which one machine loads, as where there is no fleet


def loading_fleet(fleet: Fleet, connections: int) -> tuple[Fleet, int]:
    """The hosts that fill a plan's tables, and their connections together.

    The server takes as many as are driven later, and no machine loads by more than it would alone:
    hosts of this one are processes that share its CPUs.

    Args:
        fleet: Of the plan.
        connections: That it drives.
    """
    hosts = fleet.hosts[:LOADING_HOSTS_MAX]
    here = [name for name in hosts if host_address(name).is_here]
    machines = len(hosts) - len(here) + bool(here)
    sessions = max(len(hosts), min(connections, _SESSIONS_MAX * machines))
    return replace(fleet, hosts=hosts), sessions


def fleet_text(fleet: Fleet, *, fills: bool) -> str:
    """Where a load comes from, and where its tables do, for people.

    Args:
        fleet: Of the plan.
        fills: Whether there are tables to be filled.
    """
    first = LOADING_HOSTS_MAX
    whose = "as well" if len(fleet.hosts) <= first else f"from the first {first} of them"
    return f"load from {listed(fleet.hosts)}{f', its tables {whose}' * fills}"


def fleet_complaints(
    target: Target, protocol: Protocol, stages: Sequence[Stage]
) -> Iterator[Complaint]:
    """What keeps a load from coming from the fleet."""
    fleet = protocol.fleet
    if fleet is None:
        return
    if protocol.profile_s:
        text = f"is {protocol.profile_s:g}, but the profile looks at one driver of this host"
        yield Complaint("protocol.profile_s", f"{text}; allowed with [fleet]: 0")
    yield from _unreached(target, fleet.hosts)
    for stage in stages:
        yield from _undriven(stage, len(fleet.hosts))


def _unreached(target: Target, hosts: Sequence[str]) -> Iterator[Complaint]:
    """A private cluster is there for this host alone, by its socket or by loopback."""
    if target.kind == "running":
        return
    apart = target.transport == "tcp"  # a namespace has its files here, and a loopback of its own
    addresses = [(name, host_address(name)) for name in hosts]
    far = [name for name, one in addresses
           if not one.is_here or (apart and one.scheme == "netns")]  # fmt: skip
    if far:
        how = "its socket" if target.transport == "socket" else "loopback"
        text = f"a private cluster is reached by {how}, and so not from {listed(far)}"
        yield Complaint("fleet.hosts", text, 'Use target.kind = "running", or hosts of this host.')


def _undriven(stage: Stage, hosts: int) -> Iterator[Complaint]:
    workload, where = stage.workload, f"stage {stage.name}"
    if workload.engine == "pgbench":
        text = "is pgbench, which drives from one host; allowed with [fleet]: pgdyno"
        yield Complaint(f"{where}: workload.engine", text)
        return
    of_part = workload.of_part(workload.connections), workload.of_part(workload.terminals)
    counts = {"connections": of_part[0], "terminals": of_part[1]}
    if workload.replica_connections:
        counts["replica_connections"] = workload.replica_connections
    for key, there in counts.items():
        if there < hosts:
            text = f"are {there}, fewer than the {plural(hosts, 'host')} of [fleet]"
            yield Complaint(f"{where}: workload.{key}", f"{text}; allowed: {hosts} or more")
    least = min(counts.values()) // hosts
    if workload.threads is not None and 0 < least < workload.threads:
        text = f"are {workload.threads} for each host, one of {hosts} has work for {least}"
        yield Complaint(f"{where}: workload.threads", text)
    rate, of_all = workload.arrivals.per_s, workload.asked_per_s
    if rate is None or of_all is None or workload.arrivals.spacing != "poisson":
        return
    if of_all > POISSON_RATE_MAX:
        text = f"is {rate:g} with spacing poisson, whose gaps every host draws"
        if of_all != rate:
            text = f"{text}, up to {of_all:g} a second in all databases"
        allowed = f"{POISSON_RATE_MAX * rate / of_all:g}, or spacing even"
        yield Complaint(
            f"{where}: workload.arrivals.rate", f"{text}; allowed with [fleet]: {allowed}"
        )
