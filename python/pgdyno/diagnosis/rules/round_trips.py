"""14: round trips: requests under way that no server process works on."""

from __future__ import annotations

from pgdyno.analysis.account_facts import IN_FLIGHT
from pgdyno.diagnosis import needs
from pgdyno.diagnosis.kernel_time import ROUND_TRIPS, asked, work_of
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
from pgdyno.model.units import digits_text, share_text


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Network, wake-ups, and the driver's handling, where the driver is not the limit itself."""
    work = work_of(seen, ROUND_TRIPS)
    share = seen.share(*rule.parts) + work
    taken, limit = float(share[0]), rule.limit("share")
    trips, wanted = seen.window.load.round_trips, seen.window.driver.wanted
    figures = evidence(
        seen.figure(
            "requests under way that the server does not work on, with the kernel's work",
            share,
            limit,
        ),
        seen.figure("of it the kernel's work for those beyond one a transaction", work)
        if work[0]
        else None,
        figure("round trips of a transaction", trips, "1"),
        figure("driver thread wanted", wanted, "share", rule.limit("wanted")),
    )
    between = f"requests are between client and server {share_text(taken)} of session time"
    if taken < limit:
        return Cleared(f"{between}, limit {share_text(limit)}", figures)
    if wanted is not None and wanted >= rule.limit("wanted"):
        return Cleared(f"{between}, but the driver's threads are what they wait for", figures)
    if trips is not None:
        between += f", {digits_text(trips)} round trips for each transaction"
    server = 1 - asked(seen.window).get(ROUND_TRIPS, 0.0)
    return Found(between, share, figures, caps_of(seen.window, server=server))


RULE = Rule(
    number=14,
    title="round trips between client and server",
    needs=(needs.sessions, needs.requests_under_way),
    thresholds={
        "share": Threshold(0.30, "of session time, with a request that nobody works on"),
        "wanted": Threshold(0.80, "of time, from which on the driver is the limit itself"),
    },
    confounders=(
        "Who is woken on a full host waits for a CPU on both sides; the server's part is taken"
        " out, the client's is not.",
    ),
    knobs=(
        Knob("face = pipeline", "The same statements in as few round trips as the data allow."),
        Knob("face = procedure", "One round trip for each transaction."),
        Knob("transport = socket", "A Unix socket instead of TCP, on one host."),
        Knob("more connections", "While one waits for its round trip, another one is served."),
    ),
    answer=answer,
    parts=(IN_FLIGHT,),
    may_save="the CPU time that each round trip takes on both sides",
)
