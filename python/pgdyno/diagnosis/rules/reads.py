"""8: pages that are read: of tables and indexes, from storage or from the kernel's cache."""

from __future__ import annotations

from pgdyno.analysis.diagnosis_facts import Figure
from pgdyno.diagnosis import needs
from pgdyno.diagnosis.rule import (
    Cleared,
    Found,
    Knob,
    NotKnown,
    Rule,
    Seen,
    Threshold,
    caps_of,
    percent,
)


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Waits for reads; whether the device below was asked tells from where."""
    share = seen.share(*rule.parts)
    taken, limit = float(share[0]), rule.limit("share")
    asked, device = seen.window.per_s("database.blocks_read"), seen.window.per_s("disk.reads")
    told = [
        Figure("pages asked for", asked, "1/s") if asked is not None else None,
        Figure("reads of the device below", device, "1/s") if device is not None else None,
    ]
    figures = (seen.figure("waiting for reads", share, limit), *(one for one in told if one))
    if taken < limit:
        return Cleared(f"reads take {percent(taken)} of session time, limit {percent(limit)}",
                       figures)  # fmt: skip
    fact = f"sessions wait until pages are read, {percent(taken)} of session time"
    if asked and device is not None and device < asked * rule.limit("device"):
        fact += "; nearly all come from the kernel's cache, not from the device"
    return Found(fact, share, figures, caps_of(seen.window))


RULE = Rule(
    number=8,
    title="reading pages",
    needs=(needs.sessions, needs.sessions_of_others),
    thresholds={
        "share": Threshold(0.25, "of session time, that waits for reads"),
        "device": Threshold(0.10, "reads of the device a page: with fewer, the kernel had them"),
    },
    confounders=(
        "What the kernel has in its cache is copied: CPU time, and no disk.",
        "A cache that is still warming up reads more than it will.",
        "From version 18 on, workers read for the session that waits.",
    ),
    knobs=(
        Knob("shared_buffers"),
        Knob("effective_io_concurrency"),
        Knob("io_method"),
        Knob("io_workers"),
        Knob("huge_pages"),
        Knob("more memory", "What fits is not read."),
    ),
    answer=answer,
    parts=("read",),
)
