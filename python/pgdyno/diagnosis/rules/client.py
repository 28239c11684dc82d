"""1: the client. Its threads, or its share of a host that it fills together with the server."""

from __future__ import annotations

import numpy as np

from pgdyno.analysis.account_facts import IDLE, IN_FLIGHT
from pgdyno.analysis.diagnosis_facts import Figure
from pgdyno.diagnosis import needs
from pgdyno.diagnosis.host import host_idle, host_use
from pgdyno.diagnosis.rule import (
    Cleared,
    Found,
    Knob,
    NotKnown,
    Rule,
    Seen,
    Threshold,
    caps_of,
    evidence,
    figure,
)
from pgdyno.model.host_time import host_cpu_s
from pgdyno.model.units import share_text


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """A thread that is always wanted while sessions wait for it; or a full host that it shares."""
    driver = seen.window.driver
    # Without the client its own waiting for a CPU goes, too, which roots count as the CPU's.
    share = np.maximum(seen.share(IN_FLIGHT, IDLE), seen.share(IN_FLIGHT, IDLE, root=False))
    share = share * _not_behind_others(seen)
    waits, wanted = float(share[0]), driver.wanted
    figures = evidence(
        seen.figure("waiting for the client", share, rule.limit("share")),
        figure("driver thread wanted", wanted, "share", rule.limit("wanted")),
        figure("share of the driver's ceiling", driver.ceiling_share, "share",
               rule.limit("ceiling")),
    )  # fmt: skip
    is_busy = any(one.value >= (one.limit or 1) for one in figures[1:])
    if not is_busy and wanted is None and driver.ceiling_share is None:
        return NotKnown("how much the driver's threads were wanted is not known", figures)
    if not is_busy or waits < rule.limit("share"):
        shared = _shared_host(seen, rule, figures)
        if not isinstance(shared, Cleared):
            return shared
        fact = (
            f"the driver was busy, but only {share_text(waits)} of session time waited for it,"
            f" limit {share_text(rule.limit('share'))}"
            if is_busy else
            f"the busiest driver thread was wanted {share_text(wanted or 0.0)} of the time,"
            f" limit {share_text(rule.limit('wanted'))}"
        )  # fmt: skip
        return Cleared(f"{fact}; {shared.fact}", figures)
    told = wanted if wanted is not None else driver.ceiling_share
    fact = (
        f"sessions wait for the client {share_text(waits)} of session time, and its busiest thread"
        f" was wanted {share_text(told or 0.0)} of the time"
    )
    return Found(fact, share, figures, caps_of(seen.window, client=False))


def _not_behind_others(seen: Seen) -> float:
    """Of the time that its busiest thread is wanted: it runs, or waits for a CPU that we have."""
    driver, use = seen.window.driver, host_use(seen.window)
    if not driver.wanted or driver.busiest is None or use is None:
        return 1.0
    waiting = max(0.0, driver.wanted - driver.busiest) / driver.wanted
    return 1 - waiting * (1 - use.own_part)


def _shared_host(seen: Seen, rule: Rule, figures: tuple[Figure, ...]) -> Found | Cleared | NotKnown:
    """On a full host of both, what the client takes is not the server's."""
    use, idle = host_use(seen.window), host_idle(seen.window)
    if use is None and (idle is None or idle < rule.limit("idle")):
        return _host_of_unknown(seen, rule, figures, idle)
    if use is None or use.idle >= rule.limit("idle"):
        return Cleared("the host had CPU time to spare")
    if use.own_part < rule.limit("own"):
        return Cleared("others than client and server fill the host")
    own = use.server + use.driver
    part = use.driver / own if own > 0 else 0.0
    of_both = Figure("client's part of our CPU time", part, "share", limit=rule.limit("host_part"))
    if part < rule.limit("host_part"):
        return Cleared(f"of our CPU time on a full host it took {share_text(part)}")
    fact = f"the client takes {share_text(part)} of the CPU time that it shares with the server"
    # What it leaves, others on the host take their part of.
    share = np.full(1, part * use.own_part)
    return Found(fact, share, (*figures, of_both), is_cpu_work=True)


def _host_of_unknown(
    seen: Seen, rule: Rule, figures: tuple[Figure, ...], idle: float | None
) -> Cleared | NotKnown:
    """A host of which is not known what the server took; of little, the client's part is little."""
    driver_s = seen.window.driver.cpu_s
    if idle is None or driver_s is None:
        return Cleared("its host was not looked at")
    took = driver_s / host_cpu_s(seen.window.grown, seen.window.window_s)
    fact = (
        f"the host's CPUs were idle {share_text(idle)} of the time, and the client took"
        f" {share_text(took)} of them"
    )
    if took < rule.limit("own") * rule.limit("host_part") * (1 - idle):
        return Cleared(fact, figures)
    return NotKnown(f"{fact}: how much the server took is not known", figures)


RULE = Rule(
    number=1,
    title="the client",
    needs=(needs.sessions, needs.requests_under_way),
    thresholds={
        "share": Threshold(0.25, "of session time, that waits for the client"),
        "wanted": Threshold(0.80, "of time, that the busiest driver thread ran or wanted to"),
        "ceiling": Threshold(0.80, "of the rate that the driver reaches on this machine"),
        "idle": Threshold(0.05, "of the host's CPU time: with less it is full"),
        "own": Threshold(0.50, "of what fills the host, that is ours"),
        "host_part": Threshold(0.20, "of our CPU time on a full host, that is the client's"),
    },
    confounders=(
        "On a full host everybody waits for a CPU, so that a thread may be wanted without being"
        " the cause.",
        "A paced load leaves sessions waiting for a client that has nothing to ask.",
    ),
    knobs=(
        Knob("more driver threads", "A thread that is always wanted makes requests wait for it."),
        Knob("a host for the client", "What it takes of a shared host is not the server's."),
        Knob("face = pipeline or procedure", "Fewer round trips are less work for the client."),
    ),
    answer=answer,
    parts=(IN_FLIGHT, IDLE),
    may_save="the CPU time of the client",
)
