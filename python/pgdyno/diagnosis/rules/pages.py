"""11: the content of pages that many want at once."""

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
    waits_rule_answer,
)


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Waits for pages whose holders do not want a CPU; and spinning."""
    return waits_rule_answer(seen, rule, "waits for the content of a page take")


RULE = Rule(
    number=11,
    title="a page that many want",
    needs=(needs.sessions, needs.sessions_of_others),
    thresholds={"share": Threshold(0.10, "of session time, that waits for a page")},
    confounders=(
        "On few CPUs the holder has usually lost its CPU: where sessions want CPUs, these waits"
        " count as that.",
        "Foreign keys lock rows that many refer to, and with them their page.",
    ),
    knobs=(
        Knob("fillfactor", "Fewer rows in a page that all want."),
        Knob("partitions", "More pages at the growing end of an index."),
        Knob("more rows", "Fewer sessions want the same page."),
    ),
    answer=answer,
    parts=("page", "spin"),
)
