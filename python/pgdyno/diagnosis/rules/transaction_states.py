"""12: the caches of transaction states (SLRU)."""

from __future__ import annotations

from dataclasses import replace

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
    waits_rule_answer,
)


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Waits for them, with the pages that the caches had to read."""
    found = waits_rule_answer(seen, rule, "waits for the states of transactions take")
    names = [one for one in seen.window.grown if one.startswith("slru.") and one.endswith("reads")]
    reads = seen.window.per_s(*names) if names else None
    more = () if reads is None else (Figure("pages these caches read", reads, "1/s"),)
    return replace(found, figures=(*found.figures, *more))


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
