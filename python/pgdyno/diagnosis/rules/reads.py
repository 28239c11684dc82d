"""8: pages that are read: of tables and indexes, from storage or from the kernel's cache."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.diagnosis import needs
from pgdyno.diagnosis.rule import (
    Cleared,
    Found,
    Knob,
    NotKnown,
    Rule,
    Seen,
    Threshold,
    by_share,
    evidence,
    figure,
)


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Waits for reads; whether the device below was asked tells from where."""
    share = seen.share(*rule.parts)
    asked, device = seen.window.per_s("database.blocks_read"), seen.window.per_s("disk.reads")
    figures = evidence(
        seen.figure("waiting for reads", share, rule.limit("share")),
        figure("pages asked for", asked, "1/s"),
        figure("reads of the device below", device, "1/s"),
    )
    answered = by_share(
        seen, rule, share, figures,
        takes="reads take", found="sessions wait until pages are read,",
    )  # fmt: skip
    cached = asked and device is not None and device < asked * rule.limit("device")
    if cached and isinstance(answered, Found):
        where = "nearly all come from the kernel's cache, not from the device"
        return replace(answered, fact=f"{answered.fact}; {where}")
    return answered


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
    may_save="the CPU time of reading",
)
