"""From facts to the document that every format prints."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts, StageFacts
from pgdyno.analysis.plain import NO_TAIL, deepest, to_one_between
from pgdyno.model.units import moment_text
from pgdyno.model.wording import listed, plural
from pgdyno.report.document import Card, Cell, Document, Light
from pgdyno.report.sections import sections
from pgdyno.report.sections.stages import METRICS, UNITS, tail_words
from pgdyno.report.tone import CONFIDENCES, LIGHTS, tone, verdict_tone

_SEEN_APART = 0.05  # of a ratio: who divides two numbers in the head sees less hardly


def compose(facts: Facts) -> Document:
    """Arrange the facts for reading."""
    return Document(
        title=facts.question,
        kicker=f"{facts.plan}{' --quick' * facts.quick} · {moment_text(facts.started_ns)}",
        label=facts.label,
        about=_about(facts),
        answer=facts.answer.plain,
        cards=tuple(_card(one, facts) for one in facts.stages if one.twin_of is None),
        sections=sections(facts),
        light=_light(facts) if any(one.throughput for one in facts.stages) else None,
        precisely=(facts.answer.finding, facts.answer.limits, _terms(facts)),
    )


def _light(facts: Facts) -> Light:
    text, meaning = CONFIDENCES[facts.answer.confidence]
    against, unknown = (facts.answer.said_simply(grave=grave) for grave in (True, False))
    besides = "Besides, these limit the numbers:" if against and unknown else ""
    return Light(LIGHTS[facts.answer.confidence], text, meaning, against, unknown, besides)


def _terms(facts: Facts) -> str:
    """The terms of the sentences before, each explained."""
    rungs = sorted({stage.rung for stage in facts.stages})
    return (
        f"{METRICS[facts.headline]}. A ratio of ×1.10 is 10% more; in its interval the true one"
        f" lies with {words.confidence_to_first(facts.stages, facts.confidence)} confidence."
        f" Rounds are paired: all stages are measured once in each; {words.RATIO} beside it."
        " p99 is the time that 1 request in 100 exceeds, p99.9 the one that 1 in 1,000"
        " exceeds. A window is the part of a trial that is measured, a checkpoint cycle the"
        " time from one checkpoint to the next, by when the server has written what it had put"
        " off. What is undecided, more rounds may decide; what is not judged, they cannot. A"
        " stage has all that the ones before it have, unless it begins afresh. A terminal is a"
        " user that the load stands for, a trial one measurement of one stage. Rungs say what"
        f" a stage may lose: {'; '.join(words.rung(one) for one in rungs)}."
    )


def _about(facts: Facts) -> tuple[str, ...]:
    """Server, host, load and state of the run: the line under the title."""
    parts = [
        listed(facts.versions),
        facts.host.get("cpu_model"),
        f"{facts.host['memory']} memory" if "memory" in facts.host else None,
        facts.same["size"],
        _clients(facts),
        f"{facts.trials_finished} of {plural(facts.trials_planned, 'trial')} finished",
    ]
    if facts.quick:
        parts.append("shortened by --quick")
    return tuple(part for part in parts if part)


def _clients(facts: Facts) -> str | None:
    """Terminals and connections, where they are the same in all stages."""
    terminals, connections = facts.same.get("terminals"), facts.same.get("connections")
    if terminals is None or connections is None:
        return None
    return f"{plural(int(terminals), 'terminal')} over {plural(int(connections), 'connection')}"


def _card(stage: StageFacts, facts: Facts) -> Card:
    tail = deepest(stage)
    compared = stage.to_first
    against = interval = None
    if compared is None:
        against = _as_a_first(stage, facts)
    elif compared.ratio is not None:
        against = f"{words.ratio(compared)} of {compared.base}"
        share = words.confidence(compared.confidence)
        interval = f"{share} interval {words.interval(compared)}"
        if compared.low is None:
            interval = words.interval(compared)
        if words.is_beside_one(compared):
            interval += f"; {words.AMONG_SEVERAL}"
        if _is_no_quotient(stage, facts):
            interval += f"; {words.ESTIMATED}, not by dividing the two numbers"
    return Card(
        name=stage.name,
        why=f"{stage.why.rstrip('.')}." if stage.why else "",
        rung=stage.rung,
        risk=words.risks(stage),
        value=words.count(stage.throughput),
        unit=UNITS[facts.headline],
        second=f"{facts.headline}; {words.count(stage.tpm_total)} transactions a minute (tpmTotal)",
        against=against,
        interval=interval,
        verdict=words.verdict_of(stage) if compared else None,
        builds_on=_builds_on(stage, facts),
        tone=verdict_tone(stage, facts),
        tail=Cell(tail_words(tail, compared), tone(tail)) if tail else _no_tail(stage),
        doubts=tuple(_doubts(stage, facts)),
    )


def _as_a_first(stage: StageFacts, facts: Facts) -> str:
    """What stands where others have their ratio; one with a load of its own has no others."""
    if any(one.to_first and one.to_first.base == stage.name for one in facts.stages):
        return "the stage that others are compared with"
    return "compared with no other stage"


def _no_tail(stage: StageFacts) -> Cell | None:
    """Why nothing is said of the slowest requests where its throughput is compared."""
    if stage.to_first is None or not stage.to_first.rounds:
        return None
    return Cell(f"slowest requests not compared: {NO_TAIL}")


def _builds_on(stage: StageFacts, facts: Facts) -> str | None:
    """What it adds to the stage before; one with data elsewhere takes its place instead."""
    before = to_one_between(stage)
    if before is None:
        return None
    under = next((one for one in facts.stages if one.name == before.base), None)
    moved = under is not None and under.folder != stage.folder
    where = f"{'beside' if moved else 'on top of'} {before.base}"
    if before.ratio is None:
        return where
    found = f"{words.ratio(before)} of it ({words.interval(before)})"
    return f"{where}: {found}: {words.verdict(before)}"


def _is_no_quotient(stage: StageFacts, facts: Facts) -> bool:
    """Whether who divides the medians of two cards finds another ratio than the card says."""
    base, own, compared = facts.base_of(stage).throughput, stage.throughput, stage.to_first
    if compared is None or not compared.ratio or own is None or base is None or not base.median:
        return False
    return abs(own.median / base.median / compared.ratio - 1) > _SEEN_APART


def _doubts(stage: StageFacts, facts: Facts) -> Iterator[str]:
    """What a card says beside its number: its own doubts, and what its verdict stands under.

    Without a verdict, what all stages share speaks against its number, and the run does not.
    """
    own = facts.answer.doubts_about(stage.name)
    yield from (one.simply or one.text for one in own)
    of_all = [
        one for one in facts.answer.against(stage.name)
        if one not in own and (one.stages or stage.to_first is not None)
    ]  # fmt: skip
    if of_all:
        # Above stands also what limits it without speaking against it, which is not counted.
        many = len(of_all) - 1
        more = (
            f"; {many} more above {'speaks' if many == 1 else 'speak'} against it" if many else ""
        )
        yield f"{of_all[0].simply or of_all[0].text}{more}"
