"""Whether the numbers may be trusted: client, inputs, consistency, comparability."""

from __future__ import annotations

from pgdyno.analysis import words
from pgdyno.analysis.facts import AuditFacts, Facts, Spread
from pgdyno.model.units import count_text, digits_text
from pgdyno.model.wording import listed, plural
from pgdyno.report.document import Block, Cell, Column, Section, Table, Text
from pgdyno.report.sections.time import judged


def section(facts: Facts) -> Section:
    """Five checks, each with what it looked at."""
    blocks = [
        _client(facts), _placement(facts), _audit(facts), *_conditions(facts),
        _differences(facts), _same(facts),
    ]  # fmt: skip
    return Section("trust", "Can the numbers be trusted?", tuple(blocks))


def _client(facts: Facts) -> Table:
    return Table(
        "Was the load generator the limit? Each stage by its most doubtful round.",
        (
            Column("stage", align="left"),
            Column("client's share of the host"),
            Column("share of the driver's ceiling"),
            Column("verdict", align="left"),
        ),
        tuple(
            (
                Cell(stage.name),
                Cell(_most(stage.client_share) or words.NOTHING),
                Cell(_most(stage.ceiling_share) or "not calibrated"),
                judged(stage.client_limit),
            )
            for stage in facts.stages
        ),
    )


def _most(share: Spread | None) -> str | None:
    """Of the rounds, the one that makes the stage most doubtful."""
    return None if share is None else f"{max(share.rounds):.1%}"


def _placement(facts: Facts) -> Text:
    found = facts.placement
    text = f"Where the scheduler placed sessions: {found.verdict}; {found.fact}."
    if found.advice is not None:
        text += f" {found.advice}"
    return Text(text, "warn" if found.verdict == "finding" else "quiet")


def _audit(facts: Facts) -> Block:
    if not facts.audit:
        why = "pgbench does not report them" if facts.trials_finished else "no trial finished"
        return Text(f"The inputs were not audited: {why}.", "warn")
    return Table(
        "What was asked for: of all finished trials together, beside the widest band that one of"
        " them has. The more observations, the narrower a band: a trial is held against its own.",
        (
            Column("input", align="left"),
            Column("all trials"),
            Column("permitted in one"),
            Column("observations"),
            Column("trials within their own band"),
            Column("verdict", align="left"),
        ),
        tuple(
            (
                Cell(line.name, note=line.source),
                Cell(_value(line, line.measured)),
                Cell(_band(line), note="all together" if line.added and line.trials > 1 else None),
                Cell(count_text(line.n)),
                Cell(f"{line.trials - line.trials_outside} of {line.trials}"),
                Cell("in the band", "good") if line.ok else Cell("outside", "bad"),
            )
            for line in facts.audit
        ),
    )


def _band(line: AuditFacts) -> str:
    if line.unit == "1":
        return f"{_value(line, line.low)} to {_value(line, line.high)}"
    return f"{digits_text(line.low, 4)} to {_value(line, line.high)}"


def _value(line: AuditFacts, value: float) -> str:
    """Shares as percentages, anything else with four digits and its unit."""
    return (
        f"{digits_text(value * 100)}%"
        if line.unit == "1"
        else f"{digits_text(value, 4)} {line.unit}"
    )


def _conditions(facts: Facts) -> list[Block]:
    if not facts.conditions:
        return [Text("The consistency conditions were not checked.", "warn")]
    checks = max(line.checks for line in facts.conditions)
    rounds = facts.checked_rounds
    first = f" of the first {plural(rounds, 'round')}" if rounds else ""
    of_rounds = {None: "", 1: " of round 1"}.get(rounds, first)
    violated = [line for line in facts.conditions if line.violations]
    clause = " (clause 3.3.2)" if facts.compliance else ""
    when = "once" if checks == 1 else f"after loading and after each trial{of_rounds}"
    table = Table(
        f"Consistency conditions{clause}, checked {when}.",
        (
            Column("condition", align="left"),
            Column("checks"),
            Column("verdict", align="left"),
        ),
        tuple(
            (
                Cell(f"{line.number}. {line.title}"),
                Cell(str(line.checks)),
                Cell("violated", "bad", note="; ".join(line.violations))
                if line.violations
                else Cell("holds", "good"),
            )
            for line in facts.conditions
        ),
        folded=True,
    )
    number = plural(len(facts.conditions), "consistency condition")
    if not violated:
        checked = f", after loading and after each trial{of_rounds}" if of_rounds else ""
        return [Text(f"All {number} hold in {plural(checks, 'check')}{checked}.", "good"), table]
    names = listed([f"condition {line.number}" for line in violated])
    where = "; ".join(text for line in violated for text in line.violations)
    return [Text(f"Of {number}, violated: {names} ({where}).", "bad"), table]


def _differences(facts: Facts) -> Block:
    if not facts.trials_finished:
        return Text("Whether anything differs between trials is not known: none finished.", "warn")
    if not facts.differences:
        return Text(
            "All finished trials were set up alike, but for the settings of their stages.", "good"
        )
    return Table(
        "What differs between finished trials besides the settings of their stages.",
        (
            Column("what", align="left"),
            Column("values", align="left"),
            Column("explanation", align="left"),
        ),
        tuple(
            (
                Cell(difference.what),
                Cell("; ".join(difference.values)),
                Cell(difference.explanation)
                if difference.explanation
                else Cell("unexplained", "bad"),
            )
            for difference in facts.differences
        ),
    )


def _same(facts: Facts) -> Table:
    return Table(
        "What all trials share.",
        (Column("what", align="left"), Column("value", align="left")),
        tuple((Cell(name), Cell(value)) for name, value in facts.same.items()),
        folded=True,
    )
