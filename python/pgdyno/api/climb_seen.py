"""What a step of a climb saw beside its verdicts: the proof of a limit, costs, and what is left."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.analysis.diagnosis_facts import RuleAnswer
from pgdyno.analysis.facts import StageFacts
from pgdyno.api.runs import Run
from pgdyno.catalog import known_settings
from pgdyno.model.climb import Effect, Left, Seen
from pgdyno.report.sections.diagnosis import figures_text, gain_text

_COSTS = ("server_cpu_us", "wal_bytes", "read_bytes")  # of a transaction
_PERCENTILE = "p99"


def seen(run: Run, stage: str) -> Seen:
    """What stands behind the sentence about a stage's limit, and what was cleared."""
    window = run.facts.diagnosed(stage).window
    if window is None:
        return Seen()
    titles = {
        verdict: tuple(one.title for one in window.answers if one.verdict == verdict)
        for verdict in ("clear", "unknown")
    }
    named = [window.answer(name) for name in window.limits]
    return Seen(tuple(map(_proof, named)), titles["clear"], titles["unknown"])


def left(run: Run, stage: str) -> tuple[Left, ...]:
    """What still limits a stage, the largest first, with what is against it and no setting."""
    window = run.facts.diagnosed(stage).window
    answers = () if window is None else window.answers
    found = [(one.gain, one) for one in answers if one.gain is not None]
    return tuple(
        Left(
            one.title, gain_text(gain),
            tuple(knob.name for knob in one.knobs if knob.name not in known_settings()),
        )
        for gain, one in sorted(found, key=lambda pair: -pair[0].bound)
    )  # fmt: skip


def effects(base: StageFacts, stage: StageFacts) -> tuple[Effect, ...]:
    """What a stage changed besides throughput: medians of both."""
    return (*_costs(base, stage), *_slowest(base, stage))


def _proof(answer: RuleAnswer) -> str:
    return f"{answer.title}: {figures_text(answer.figures)}"


def _costs(base: StageFacts, stage: StageFacts) -> Iterator[Effect]:
    for name in _COSTS:
        before, after = base.per_transaction.get(name), stage.per_transaction.get(name)
        if before is not None and after is not None:
            yield Effect(name, before.median, after.median)


def _slowest(base: StageFacts, stage: StageFacts) -> Iterator[Effect]:
    for tail in stage.tails:
        before, after = base.percentiles(tail.kind), stage.percentiles(tail.kind)
        if tail.percentile == _PERCENTILE and before is not None and after is not None:
            yield Effect("p99_ns", before.p99_ns, after.p99_ns, tail.kind)
