"""What is said of the hosts of a load before it is driven: which would be the limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pgdyno.api import fleets
from pgdyno.api.planning import Plan
from pgdyno.model import calibration
from pgdyno.model.calibration import Ceiling, Estimate
from pgdyno.model.fleet import Fleet, Offset
from pgdyno.model.fleet_check import FleetLooked, HostLooked
from pgdyno.model.workload import Arrivals, Step, Workload
from pgdyno.plan.resolve.builds import NO_BUILDS
from tests.data.hosts import MACHINE
from tests.data.miniature import CHARACTERS, a_plan
from tests.data.servers import HOST, running
from tests.data.workloads import tpcc

HOSTS = ("local:a", "local:b")
RAMP = (Step(5, 1, 1), Step(5, 1, 2.5))
OPEN = Arrivals("open", 20_000.0)
VALUE = Estimate(30_000.0, None, None, 3, 0.95)
CEILING = Ceiling(
    workload="tpcc", face="statement", connections=4, threads=4, transactions_per_s=VALUE,
    round_trips_per_s=VALUE, cpu_s_per_transaction=VALUE, cpu_s_per_round_trip=VALUE,
    round_trips_per_transaction=13.0, driver_wanted=0.98, server_wanted=0.5, limit="driver",
    driver_cpus=(0, 1, 2, 3), server_cpus=(4,), window_s=3.0, pgdyno="0.1.0", measured_unix_ns=1,
    machine=calibration.Machine("a processor", 8, "6.1"),
)  # fmt: skip


def driven_by_both(workload: Workload) -> Plan:
    """A plan of one stage, whose load comes from two hosts."""
    record = a_plan(CHARACTERS[:1], 1)
    stage = replace(record.stages[0], workload=workload)
    protocol = replace(record.protocol, fleet=Fleet(HOSTS))
    record = replace(record, workload=workload, stages=(stage,), protocol=protocol)
    return Plan(record, running(18), HOST, (), NO_BUILDS, record.source)


def looked(_fleet: Fleet, _workloads: Sequence[Workload] = ()) -> FleetLooked:
    """Both hosts, reached."""
    return FleetLooked(tuple(HostLooked(name, MACHINE, Offset(0, 0, 0), 4) for name in HOSTS))


def known(_fleet: Fleet, _workloads: Sequence[Workload]) -> dict[str, tuple[Ceiling, ...]]:
    """What each reaches."""
    return dict.fromkeys(HOSTS, (CEILING,))


@pytest.mark.parametrize(
    ("workload", "part"),
    [
        (replace(tpcc(2), arrivals=OPEN), None),
        (replace(tpcc(2), arrivals=OPEN, databases=4), "40,000/s, is 133%"),
        (replace(tpcc(2), arrivals=OPEN).over(4, "alike"), "40,000/s, is 133%"),
        (replace(tpcc(4), arrivals=OPEN).over(4, "block"), None),
        (replace(tpcc(2), arrivals=OPEN, steps=RAMP), "25,000/s, is 83%"),
        (replace(tpcc(2), steps=(Step(10, 1, 1),)), None),
    ],
    ids=["one database", "four databases", "four servers", "four shards", "a ramp", "closed"],
)
def test_a_host_makes_its_part_of_the_rate_in_all_databases(
    workload: Workload, part: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleets, "look", looked)
    monkeypatch.setattr(fleets, "ceilings_of", known)

    found = fleets.fleet(driven_by_both(replace(workload, threads=4)))

    assert [one.ceiling_per_s for one in found.hosts] == [30_000.0] * 2
    said = () if part is None else (
        f"its part of the rate, {part} of its ceiling: it would be the limit",
    )  # fmt: skip
    assert [one.remarks for one in found.hosts] == [said] * 2
