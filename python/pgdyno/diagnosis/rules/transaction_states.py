"""12: the caches of transaction states (SLRU)."""

from __future__ import annotations

from pgdyno.diagnosis import needs
from pgdyno.diagnosis.rule import (
    Cleared,
    Found,
    Knob,
    NotKnown,
    Rule,
    Seen,
    Threshold,
    figure,
    waits_rule_answer,
)


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Waits for them, with the pages that the caches had to read."""
    names = [one for one in seen.window.grown if one.startswith("slru.") and one.endswith("reads")]
    reads = seen.window.per_s(*names) if names else None
    return waits_rule_answer(
        seen, rule, "waits for the states of transactions take",
        figure("pages these caches read", reads, "1/s"),
    )  # fmt: skip


RULE = Rule(
    number=12,
    title="looking up states of transactions",
    needs=(needs.sessions, needs.sessions_of_others),
    thresholds={"share": Threshold(0.05, "of session time, that waits for them")},
    confounders=("After a restart these caches are cold.",),
    knobs=(
        Knob("transaction_buffers"),
        Knob("subtransaction_buffers"),
        Knob("multixact_member_buffers"),
        Knob("multixact_offset_buffers"),
        Knob("fewer savepoints", "Each is a subtransaction, with a state of its own."),
    ),
    answer=answer,
    parts=("slru",),
)
