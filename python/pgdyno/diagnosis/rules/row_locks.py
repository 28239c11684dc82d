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
    caps_of,
    percent,
)


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Waits as they were met: with more rows there would be none, whatever holders do."""
    share = seen.share(*rule.parts, root=False)
    taken, limit = float(share[0]), rule.limit("share")
    figures = (
        seen.figure("waiting for locks", share, limit),
        Figure("looks at what the head of a queue did", float(seen.account.holders_seen), "1"),
        *_deadlocks(seen),
    )
    if taken < limit:
        return Cleared(
            f"sessions wait for locks {percent(taken)} of session time, limit {percent(limit)}",
            figures,
        )
    fact = f"sessions stand in queues for locks of rows or objects {percent(taken)} of session time"
    return Found(fact, share, figures, caps_of(seen.window))


def _deadlocks(seen: Seen) -> tuple[Figure, ...]:
    rate = seen.window.per_s("database.deadlocks")
    return () if rate is None else (Figure("deadlocks", rate, "1/s"),)


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
