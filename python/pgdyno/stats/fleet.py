"""Whether hosts that drove one load did so all the time, and which is unlike the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from pgdyno.model.fleet import OVERLAP_MIN, FleetResult, HostResult
from pgdyno.model.units import ns_text

UNLIKE_SHARE = 0.20
"""A host whose median service time differs by more from that of all is named."""
LATE_NS = 10_000_000
"""A host that notices due times so late, at its 99.9th percentile, is named."""


def fleet_reasons(fleet: FleetResult) -> Iterator[str]:
    """Why the numbers of a trial must not be used, as far as its hosts are to blame."""
    yield from fleet.lost
    if fleet.lost or fleet.overlap >= OVERLAP_MIN:
        return
    yield (
        f"the hosts drove together for {fleet.overlap:.2%} of the window, {OVERLAP_MIN:.1%} are"
        f" needed: their begins lie up to {ns_text(fleet.skew_ns)} apart"
    )


def service_p50_ns(host: HostResult) -> dict[str, int]:
    """The median service time of each kind of transaction that the host had."""
    return {one.kind: one.service_ns["p50"] for one in host.kinds if one.ended}


def unlike(host: HostResult, hosts: Sequence[HostResult]) -> float | None:
    """By which share a host's requests take longer than those of the median host.

    Of the kind that is asked for most, so that another mix is no difference; None: nothing to
    compare.
    """
    counts: dict[str, int] = {}
    for one in hosts:
        for kind in one.kinds:
            counts[kind.kind] = counts.get(kind.kind, 0) + kind.ended
    if len(hosts) < 2 or not counts:
        return None
    kind_name = max(counts, key=lambda name: counts[name])
    times = [found[kind_name] for one in hosts if kind_name in (found := service_p50_ns(one))]
    own = service_p50_ns(host).get(kind_name)
    usual = median(times) if times else 0
    return own / usual - 1 if own is not None and usual > 0 else None
