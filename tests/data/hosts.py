"""Hosts of a fleet, made up: two alike, and one far away whose requests take longer."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.model.client import Client
from pgdyno.model.fleet import (
    FleetResult,
    HostKind,
    HostResult,
    Machine,
    NetworkCard,
    Offset,
    Surroundings,
)

SECOND_NS = 1_000_000_000
MACHINE = Machine("0.1.0", 8, "c0ffee", "3.11.2", "6.1.0-18", "boot-a", "net:[1]", 8, 65_536)
CLIENT = Client(4.0, 2.0, 60.0, 8, 0.0125, 1, 1, 0.5, 2, 1000, (3.0, 2.5), (0.2, 0.3))


CARD = NetworkCard("eth0", 900_000_000, 2_100_000_000, 10_000_000_000)


def summary(p50_ns: int) -> dict[str, int]:
    """Latencies around a median."""
    shares = {"p50": 1.0, "p90": 2.0, "p95": 2.5, "p99": 4.0, "p999": 8.0, "max": 20.0, "mean": 1.2}
    return {name: round(p50_ns * share) for name, share in shares.items()}


def host(name: str, p50_ns: int = 4_000_000, ended: int = 90_000, bound_ns: int = 9_000,
         ahead_ns: int = 0) -> HostResult:  # fmt: skip
    """One host in a window of a minute."""
    own = HostKind("new_order", ended, "", "", "", summary(p50_ns), summary(p50_ns), summary(10))
    offsets = (
        Offset(0, ahead_ns, bound_ns),
        Offset(80 * SECOND_NS, ahead_ns + 400_000, bound_ns * 2),
    )
    window = (10 * SECOND_NS, 70 * SECOND_NS)
    return HostResult(name, MACHINE, 8, 300, offsets, window, 2_500_000, (own,), CLIENT,
                      summary(50_000), ended * 3, "0f")  # fmt: skip


FAR = replace(
    host("ssh://bench@client-of-another-rack.example.org:2222", 6_000_000, 60_000, 310_000, 10**12),
    client=replace(CLIENT, thread_cpu_s=(55.0, 40.0), user_s=80.0, system_s=15.0),
    machine=replace(MACHINE, boot="boot-b"),
    late_ns=summary(3_000_000),
    around=Surroundings(60.2, 110.0, 480.0, 95.0, {"ssh": 0.3}, (CARD,)),
)
DRIVEN = FleetResult((host("local:a"), host("netns:client"), FAR))
