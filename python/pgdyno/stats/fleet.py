"""Whether hosts that drove one load did so all the time, and which is unlike the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from pgdyno.model.fleet import OVERLAP_MIN, FleetResult, HostResult, Surroundings
from pgdyno.model.units import count_text, ns_text, share_text
from pgdyno.stats.client_limit import CEILING_SHARE_MAX

UNLIKE_SHARE = 0.20
"""A host whose median service time differs by more from that of all is named."""
CARD_SHARE_MAX = 0.80
"""Of a network card's speed in one direction: queues grow above."""
LATE_NS = 10_000_000
"""A host that notices due times so late, at its 99.9th percentile, is named."""


def fleet_reasons(fleet: FleetResult) -> Iterator[str]:
    """Why the numbers of a trial must not be used, as far as its hosts are to blame."""
    if fleet.lost and not fleet.went_on:
        yield from fleet.lost
        return
    if fleet.overlap >= OVERLAP_MIN:
        return
    yield (
        f"the hosts drove together for {fleet.overlap:.2%} of the window, {OVERLAP_MIN:.1%} are"
        f" needed: they began up to {ns_text(fleet.skew_ns)} apart"
    )


def ceiling_remarks(
    name: str, ceiling_per_s: float | None, per_thread: Mapping[str, float], part_per_s: float
) -> Iterator[str]:
    """What is to be known of a host's ceiling before it drives, each a clause.

    Args:
        name: The host.
        ceiling_per_s: Transactions that its driver reaches a second; None: not known.
        per_thread: Ceilings of all hosts that have one, for each thread of their drivers.
        part_per_s: Its part of the rate that is asked for; 0: as fast as the server answers.
    """
    if ceiling_per_s is None:
        return
    usual = median(per_thread.values())
    if len(per_thread) > 1 and abs(off := per_thread[name] / usual - 1) > UNLIKE_SHARE:
        what = "more" if off > 0 else "less"
        yield f"each of its threads drives {share_text(abs(off))} {what} than those of the others"
    if part_per_s > CEILING_SHARE_MAX * ceiling_per_s:
        share = share_text(part_per_s / ceiling_per_s)
        yield (
            f"its part of the rate, {count_text(part_per_s)}/s, is {share} of its ceiling:"
            " it would be the limit"
        )


def card_limit(around: Surroundings | None) -> str | None:
    """Whether a host's network card was the limit, as a clause; None: it was not, or not known."""
    share = None if around is None else around.card_share
    if around is None or share is None or share < CARD_SHARE_MAX:
        return None
    card = around.cards[0]
    return (
        f"network card {card.name} carried {share:.0%} of its {card.speed_bits_s / 1e9:g} Gbit/s,"
        f" limit {CARD_SHARE_MAX:.0%}"
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
