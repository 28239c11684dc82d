"""8: pages that are read: of tables and indexes, from storage or from the kernel's cache."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.analysis.account_facts import RUNNING, WANTS_CPU, Draws
from pgdyno.diagnosis import needs
from pgdyno.diagnosis.kernel_time import READ, work_of
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

_WORKERS = "process.io_worker.cpu_s"


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Waits for reads, with the CPU time in them; whether the device was asked tells from where."""
    waits, inside = seen.share(*rule.parts), work_of(seen, READ)
    share = waits + inside
    asked, device = seen.window.per_s("database.blocks_read"), seen.window.per_s("disk.reads")
    figures = evidence(
        seen.figure("in reads", share, rule.limit("share")),
        seen.figure("of it running or wanting a CPU", inside) if inside[0] else None,
        figure("pages asked for", asked, "1/s"),
        figure("reads of the device below", device, "1/s"),
    )
    answered = by_share(
        seen, rule, share, figures,
        takes="reads take", found="sessions wait until pages are read,",
        server=_left_of_server(seen, inside),
    )  # fmt: skip
    cached = asked and device is not None and device < asked * rule.limit("device")
    if cached and isinstance(answered, Found):
        where = "nearly all come from the kernel's cache, not from the device"
        return replace(answered, fact=f"{answered.fact}; {where}")
    return answered


def _left_of_server(seen: Seen, inside: Draws) -> float:
    """Of the CPU time of the server: what sessions and I/O workers do not have in reads."""
    whole = seen.share(RUNNING, WANTS_CPU, root=False)
    sessions = 1 - float(inside[0] / whole[0]) if whole[0] > 0 else 1.0
    used, workers = seen.window.per_s("server.cpu_s"), seen.window.per_s(_WORKERS)
    return max(0.0, 1 - (workers or 0.0) / used) * sessions if used else sessions


RULE = Rule(
    number=8,
    title="reading pages",
    needs=(needs.sessions, needs.sessions_of_others),
    thresholds={
        "share": Threshold(0.25, "of session time, that reads or waits for reads"),
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
