"""16: too many connections: snapshots and the table of locks."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.analysis.diagnosis_facts import Figure
from pgdyno.diagnosis import needs
from pgdyno.diagnosis.host import host_use
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
from pgdyno.model.units import digits_text


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Waits that grow with sessions; far beyond the CPUs of a full host, one window cannot tell."""
    found = waits_rule_answer(seen, rule, "waits for snapshots and the table of locks take")
    cpus = seen.window.driver.cpus if seen.window.driver.beside_server else 0
    if not cpus or isinstance(found, Found):
        return found
    each = seen.window.load.connections / cpus
    figures = (*found.figures, Figure("connections for each CPU", each, "1",
                                      limit=rule.limit("each")))  # fmt: skip
    use = host_use(seen.window)
    if each >= rule.limit("each") and use is not None and use.idle < rule.limit("idle"):
        return NotKnown(
            f"there are {digits_text(each)} connections for each CPU of a full host: whether fewer"
            " would do more, `pgdyno knee` would tell",
            figures,
        )
    return replace(found, figures=figures)


RULE = Rule(
    number=16,
    title="too many connections",
    needs=(needs.sessions, needs.sessions_of_others),
    thresholds={
        "share": Threshold(0.05, "of session time, that waits for snapshots or the lock table"),
        "each": Threshold(32.0, "connections for each CPU"),
        "idle": Threshold(0.05, "of the host's CPU time: with less it is full"),
    },
    confounders=(
        "A full host looks alike: the knee of the load tells both apart.",
        "Versions 12 and 13 pay far more for snapshots than later ones.",
    ),
    knobs=(
        Knob("fewer connections", "As many as the knee: `pgdyno knee`."),
        Knob("a pooler", "Many clients over few connections."),
    ),
    answer=answer,
    parts=("snapshot", "lock_table"),
)
