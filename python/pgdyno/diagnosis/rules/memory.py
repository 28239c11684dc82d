"""15: memory that is too little: tasks that wait for it, swapping, reclaim."""

from __future__ import annotations

import numpy as np

from pgdyno.analysis.diagnosis_facts import Figure
from pgdyno.diagnosis import needs
from pgdyno.diagnosis.kernel_time import MEMORY, MEMORY_STALLED, READ, STALLED, work_of
from pgdyno.diagnosis.rule import (
    Cleared,
    Found,
    Knob,
    NotKnown,
    Rule,
    Seen,
    Threshold,
    evidence,
    figure,
)
from pgdyno.model.units import share_text

_SWAP = ("vm.swap_in_pages", "vm.swap_out_pages")
_RECLAIM = "vm.allocation_stalls"
_REFAULTED = "vm.refaulted_pages"


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Share of time in which a task waits for memory; swapping and reclaim tell as well.

    A page that is read again since it was thrown away too early is memory's, though it is read.
    """
    window = seen.window
    stalled, swapped = window.per_s(MEMORY_STALLED), window.per_s(*_SWAP)
    reclaimed, again = window.per_s(_RECLAIM), window.per_s(_REFAULTED)
    figures = evidence(
        figure("time in which a task waits for memory", stalled, "share", rule.limit("stalled")),
        figure("pages swapped", swapped, "1/s", rule.limit("swapped")),
        figure("times a task had to free memory first", reclaimed, "1/s"),
        figure("pages read again that were freed too early", again, "1/s"),
    )
    if stalled is not None and stalled >= rule.limit("stalled"):
        fact = f"some task waits for memory {share_text(stalled)} of the time"
        return _read_again(seen, rule, fact, figures) or Found(
            fact, np.full(1, min(0.9, stalled)), figures
        )
    if swapped is not None and swapped >= rule.limit("swapped"):
        return NotKnown(
            f"{swapped:,.0f} pages a second are swapped, and how long that holds tasks up is not"
            " known", figures,
        )  # fmt: skip
    if stalled is None:
        return Cleared("nothing was swapped to speak of; whether tasks wait for memory is not told",
                       figures)  # fmt: skip
    return Cleared(
        f"tasks wait for memory {share_text(stalled)} of the time, limit"
        f" {share_text(rule.limit('stalled'))}", figures,
    )  # fmt: skip


def _read_again(seen: Seen, rule: Rule, fact: str, figures: tuple[Figure, ...]) -> Found | None:
    """Where most pages are read again: their reads are not called stalls while others run."""
    again, asked = (seen.window.per_s(one) or 0.0 for one in (_REFAULTED, "database.blocks_read"))
    if not seen.account.sessions or not asked or again < rule.limit("again") * asked:
        return None
    reads = (seen.share("read") + work_of(seen, READ)) * min(1.0, again / asked)
    share = reads + work_of(seen, MEMORY)
    told = f"sessions read pages again that were freed too early {share_text(float(reads[0]))}"
    figures = (*figures, seen.figure("in reads of such pages, and in freeing memory", share))
    return Found(f"{fact}, and {told} of theirs", share, figures, behind=("reads",))


RULE = Rule(
    number=15,
    title="too little memory",
    needs=(needs.any_counter(MEMORY_STALLED, _SWAP[0]),),
    thresholds={
        "stalled": Threshold(STALLED, "of time, in which some task waits for memory"),
        "swapped": Threshold(100.0, "pages a second"),
        "again": Threshold(0.50, "pages read again for each page that the server asks for"),
    },
    confounders=(
        "Pages that are touched for the first time after the start are reclaim's as well.",
        "It is the whole host's: others may be those that wait.",
    ),
    knobs=(
        Knob("shared_buffers"),
        Knob("work_mem"),
        Knob("huge_pages"),
        Knob("more memory", "Or a higher limit of the control group."),
    ),
    answer=answer,
    may_save="the CPU time of freeing memory and of reading again",
)
