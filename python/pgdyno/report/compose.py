"""From facts to the document that every format prints."""

from __future__ import annotations

from pgdyno.report import words
from pgdyno.report.document import Card, Document
from pgdyno.report.facts import Facts, StageFacts
from pgdyno.report.sections import sections


def compose(facts: Facts) -> Document:
    """Arrange the facts for reading."""
    return Document(
        title=facts.question,
        kicker=f"{facts.plan} · {words.moment(facts.started_ns)}",
        label=facts.label,
        about=_about(facts),
        answer=(facts.answer.finding, facts.answer.limits),
        cards=tuple(_card(stage) for stage in facts.stages if stage.twin_of is None),
        sections=sections(facts),
    )


def _about(facts: Facts) -> tuple[str, ...]:
    """Server, host, load and state of the run: the line under the title."""
    parts = [
        facts.build.get("version"),
        facts.host.get("cpu_model"),
        f"{facts.host['memory']} memory" if "memory" in facts.host else None,
        f"{facts.same['warehouses']} warehouses",
        f"{facts.same['terminals']} terminals over {facts.same['connections']} connections",
        f"{facts.trials_finished} of {facts.trials_planned} trials finished",
    ]
    if facts.quick:
        parts.append("shortened by --quick")
    return tuple(part for part in parts if part)


def _card(stage: StageFacts) -> Card:
    compared = stage.to_first
    against = interval = None
    if compared is not None and compared.ratio is not None:
        against = f"{words.ratio(compared)} of {compared.base}"
        share = words.confidence(compared.confidence)
        interval = f"{share} interval {words.interval(compared)}"
        if compared.low is None:
            interval = words.interval(compared)
    return Card(
        name=stage.name,
        rung=stage.rung,
        risk=words.RUNGS[stage.rung],
        value=words.count(stage.nopm),
        unit="NOPM",
        second=f"{words.count(stage.tpm_total)} tpmTotal",
        against=against,
        interval=interval,
        verdict=words.verdict(compared) if compared else None,
        tone=words.tone(compared),
    )
