"""The hosts that a load comes from, looked at before anything is driven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgdyno.api.planning import Plan
from pgdyno.drive.fleet import look
from pgdyno.model.calibration import Ceiling
from pgdyno.model.errors import PlanError
from pgdyno.model.fleet import Fleet
from pgdyno.model.fleet_check import FleetLooked, HostLooked
from pgdyno.model.host_address import BadAddress, host_address
from pgdyno.model.plan import Workload
from pgdyno.model.wording import plural
from pgdyno.stats.ceiling import fitting
from pgdyno.store.calibration import calibration_of
from pgdyno.target.home import home
from pgdyno.target.host_facts import this_machine


def fleet(hosts: Plan | Fleet) -> FleetLooked:
    """Look at the hosts that a load is to come from: nothing is driven, no server is reached.

    Each is reached as a trial would reach it. Versions have to be the same, no host may be there
    twice, and each must be allowed to open its connections.

    Args:
        hosts: A plan with `[fleet]`, or the hosts themselves: `Fleet(("local:a", "ssh://b"))`.

    Returns:
        What each host is, and how far its steady clock is from this host's.

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
        return _with_ceilings(look(hosts.record.protocol.fleet, workloads), workloads)
    for name in hosts.hosts:
        try:
            host_address(name)
        except BadAddress as error:
            raise PlanError(f"host {name!r} {error}") from error
        if hosts.hosts.count(name) > 1:
            times = plural(hosts.hosts.count(name), "time")
            raise PlanError(f"host {name!r} is named {times}")
    return look(hosts)


def _with_ceilings(found: FleetLooked, workloads: Sequence[Workload]) -> FleetLooked:
    """What drivers of this host reach; the calibrations of others lie on those."""
    kinds = list(dict.fromkeys(one.kind for one in workloads))
    known = calibration_of(home(), this_machine(), kinds)
    return FleetLooked(
        tuple(
            replace(one, ceiling_per_s=_ceiling(one, known, workloads))
            if host_address(one.name).is_here
            else one
            for one in found.hosts
        )
    )


def _ceiling(
    host: HostLooked, known: Sequence[Ceiling], workloads: Sequence[Workload]
) -> float | None:
    """The least of those that fit."""
    found = [
        # A run file keeps the ceilings of its own machine only, and so does this list.
        fitting(known, known[0].machine, one.kind, one.face, host.connections or one.connections)
        for one in workloads
        if known
    ]
    rates = [one.transactions_per_s.centre for one in found if one is not None]
    return min(rates, default=None)
