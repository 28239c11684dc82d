"""9: finding a buffer for a page: the mapping table, pins, eviction."""

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
    """Waits for the table of buffers and for pins, with how many buffers were wanted anew."""
    wanted = seen.window.per_s("bgwriter.allocated")
    return waits_rule_answer(
        seen, rule, "waits for a buffer, its place or its pin take",
        figure("buffers taken for other pages", wanted, "1/s"),
    )  # fmt: skip


RULE = Rule(
    number=9,
    title="the table of buffers",
    needs=(needs.sessions, needs.sessions_of_others),
    thresholds={"share": Threshold(0.05, "of session time, that waits for mapping or pins")},
    confounders=(
        "Sequential scans and vacuum of others take buffers as well.",
        "On few CPUs the holder has usually lost its CPU: look at the CPUs.",
    ),
    knobs=(
        Knob("shared_buffers"),
        Knob("bgwriter_lru_maxpages"),
        Knob("bgwriter_delay"),
        Knob("fewer connections", "Those that wait for the same partition are fewer."),
    ),
    answer=answer,
    parts=("mapping", "pin"),
)
