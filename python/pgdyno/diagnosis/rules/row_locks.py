"""10: locks of rows and objects, and what their holders do meanwhile."""

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
    by_share,
    evidence,
    figure,
)


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Waits as they were met: with more rows there would be none, whatever holders do."""
    share = seen.share(*rule.parts, root=False)
    figures = evidence(
        seen.figure("waiting for locks", share, rule.limit("share")),
        Figure("looks at what the head of a queue did", float(seen.account.holders_seen), "1"),
        figure("deadlocks", seen.window.per_s("database.deadlocks"), "1/s"),
    )
    return by_share(
        seen, rule, share, figures,
        takes="sessions wait for locks",
        found="sessions stand in queues for locks of rows or objects",
    )  # fmt: skip


RULE = Rule(
    number=10,
    title="a queue for locks",
    needs=(needs.sessions, needs.sessions_of_others),
    thresholds={"share": Threshold(0.15, "of session time, that waits for locks")},
    confounders=(
        "How long a lock is held is what its holder does: its client, its flush, its CPU.",
    ),
    knobs=(
        Knob("face = procedure", "A lock is held for fewer round trips."),
        Knob("more rows", "E.g. more warehouses: fewer sessions want the same one."),
        Knob("the hot row last", "What is changed last in a transaction is held shortest."),
        Knob("synchronous_commit"),
    ),
    answer=answer,
    parts=("row", "lock"),
)
