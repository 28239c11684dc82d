"""The hosts that a load comes from, looked at before anything is driven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgdyno.api.host_ceilings import measured_ceilings
from pgdyno.api.host_names import require_named
from pgdyno.api.kept_ceilings import ceilings_of
from pgdyno.api.planning import Plan
from pgdyno.drive.fleet import look
from pgdyno.model.calibration import Ceiling
from pgdyno.model.errors import PlanError
from pgdyno.model.fleet import Fleet
from pgdyno.model.fleet_check import FleetLooked, HostLooked
from pgdyno.model.plan import Workload
from pgdyno.stats.ceiling import ceiling_per_s, ceiling_that_fits
from pgdyno.stats.fleet import ceiling_remarks


def fleet(hosts: Plan | Fleet, *, calibrate: bool = False) -> FleetLooked:
    """Look at the hosts that a load is to come from: no server is reached.

    Each is reached as a trial would reach it. Versions have to be the same, no host may be there
    twice, and each must be allowed to open its connections.

    Args:
        hosts: A plan with `[fleet]`, or the hosts themselves: `Fleet(("local:a", "ssh://b"))`.
        calibrate: Measure the ceiling of each host that was not calibrated for the plan's load,
            against a server that does nothing, one host after the other; they keep it.

    Returns:
        What each host is, how far its steady clock is from this host's, and, for a plan, what its
        driver reaches.

    Raises:
        PlanError: The plan names no hosts, or a host is not named as one can be.
        DriveError: A host cannot be reached, or is not as the others are.
    """
    if isinstance(hosts, Plan):
        if hosts.record.protocol.fleet is None:
            raise PlanError(
                f"plan {hosts.name} has no [fleet]: its load comes from one process of this host",
                'Name hosts there: hosts = ["local:a", "ssh://b"].',
            )
        workloads = tuple(stage.workload for stage in hosts.stages)
        looked = look(hosts.record.protocol.fleet, workloads)
        return _with_ceilings(looked, hosts, measure=calibrate)
    if calibrate:
        raise PlanError(
            "there is no plan, and so no load to calibrate hosts for",
            "Name a plan with [fleet].",
        )
    require_named(hosts)
    return look(hosts)


def _with_ceilings(found: FleetLooked, plan: Plan, *, measure: bool) -> FleetLooked:
    """What the drivers of each host reach, and which host is unlike the others by it."""
    fleet_, workloads = plan.record.protocol.fleet, [stage.workload for stage in plan.stages]
    assert fleet_ is not None
    known = (measured_ceilings if measure else ceilings_of)(fleet_, workloads)
    found_ceilings = {one.name: ceiling for one in found.hosts
                      if (ceiling := _ceiling(one, known[one.name], workloads))}  # fmt: skip
    per_thread = {name: rate / threads for name, (rate, threads) in found_ceilings.items()}
    asked = max((one.asked_per_s or 0.0 for one in workloads), default=0.0)
    hosts = []
    for one in found.hosts:
        rate, _ = found_ceilings.get(one.name, (None, 1))
        remarks = ceiling_remarks(one.name, rate, per_thread, asked / len(found.hosts))
        hosts.append(replace(one, ceiling_per_s=rate, remarks=tuple(remarks)))
    return FleetLooked(tuple(hosts))


def _ceiling(
    host: HostLooked, known: Sequence[Ceiling], workloads: Sequence[Workload]
) -> tuple[float, int] | None:
    """The least of those that fit, with how many threads the host's driver has for it."""
    found = []
    for one in workloads:
        connections = max(1, host.connections or one.connections)
        if (fits := ceiling_that_fits(known, one, connections)) is not None:
            threads = min(one.threads or host.machine.cpus, host.machine.cpus, connections)
            found.append((ceiling_per_s(fits, threads), threads))
    return min(found, default=None)
