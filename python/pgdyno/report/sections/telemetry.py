"""What was looked at while the load ran: what that cost, and what would show more."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.telemetry_facts import Looks, SamplerUse, TelemetryCost, TelemetryFacts
from pgdyno.model.units import count_text, digits_text
from pgdyno.model.wording import listed, plural
from pgdyno.report.document import Block, Cell, Column, Section, Table, Text, columns

_ALL = "All that was to be looked at was seen."
_OFF = 'Nothing was looked at: the plan has `protocol.telemetry = "none"`.'
_COST = (
    "CPU time is that of the thread that looks on; what the server spends to answer it is the"
    " server's, and in its figures. A look that came too late, or had no answer, is left out and"
    " counts as lost: it is never made up."
)


def section(facts: Facts) -> Section | None:
    """Nothing where no trial tells."""
    found = facts.telemetry
    if found is None:
        return None
    is_off = all(one.set == "none" for one in found.costs)
    lacking: Block = Text(_OFF if is_off else _ALL, "quiet")
    if found.lacking:
        lacking = _lacking(found, len(facts.stages))
    return Section(
        "telemetry",
        "What was looked at",
        (lacking, _costs(found), *_looks(found), *_budgets(facts, found), Text(_COST, "quiet")),
    )


def _costs(found: TelemetryFacts) -> Table:
    heads = ("telemetry", ("CPU", "% of one processor"), "looks a second", ("lost", "%"))
    return Table(
        "What looking on took while the load ran.",
        columns("stage", *heads),
        tuple(_row(one) for one in found.costs),
    )


def _row(one: TelemetryCost) -> tuple[Cell, ...]:
    return (
        Cell(one.stage),
        Cell(one.set),
        Cell(digits_text(100 * one.cpu_share)),
        Cell(digits_text(one.looks_per_s)),
        Cell(_percent(one.lost_share)),
    )


def _percent(share: float | None) -> str:
    return words.NOTHING if share is None else digits_text(100 * share)


def _looks(found: TelemetryFacts) -> Iterator[Table]:
    """How often each was to be looked at, and was; nothing where there is none."""
    if not found.looks:
        return
    yield Table(
        "Looks a second: those that were due, and those of them that were reached. Tallies look at"
        " what is there at a moment; series and snapshots have all that was counted between.",
        (
            Column("stage", align="left"),
            Column("looked at", align="left"),
            Column("due", "a second"),
            Column("reached", "a second"),
            Column("lost", "%"),
        ),
        tuple(
            (
                Cell(one.stage),
                Cell(_named(one)),
                Cell(digits_text(one.due_per_s)),
                Cell(digits_text(one.reached_per_s)),
                Cell(_percent(one.lost_share)),
            )
            for one in found.looks
        ),
        folded=True,
    )


def _budgets(facts: Facts, found: TelemetryFacts) -> Iterator[Block]:
    """What a look of each sampler took, beside what it may; nothing where nobody was read."""
    if not found.samplers:
        return
    over = [one.name for one in found.samplers if one.exceeded]
    who, whose = ("sampler", "its") if len(over) == 1 else ("samplers", "their")
    yield Text(
        f"The {who} {listed(over)} took more CPU time a look than {whose} budget."
        if over
        else "No sampler took more CPU time a look than its budget.",
        "" if over else "quiet",
    )
    yield Table(
        "CPU time that a look of each sampler took, beside its budget; what took most of it first.",
        columns("sampler", ("budget", "µs"), *((one.name, "µs") for one in facts.stages)),
        tuple(
            (
                Cell(one.name),
                Cell(count_text(one.budget_us)),
                *(_took(one, took_us) for took_us in one.stages),
            )
            for one in found.samplers
        ),
        folded=True,
    )


def _took(one: SamplerUse, took_us: float | None) -> Cell:
    if took_us is None:
        return Cell(words.NOTHING, "quiet")
    is_over = took_us > one.budget_us
    return Cell(count_text(took_us), "warn" if is_over else "", note="over it" if is_over else None)


def _named(one: Looks) -> str:
    if one.samplers == 1:
        return one.what
    return f"{one.what} of {plural(one.samplers, 'sampler')}"


def _lacking(found: TelemetryFacts, stages: int) -> Table:
    rows = tuple(
        (
            Cell(one.name),
            Cell(one.reason),
            Cell(one.remedy or words.NOTHING, code=one.remedy.endswith(";")),  # a statement
            Cell("all" if len(one.stages) == stages else listed(one.stages)),
        )
        for one in found.lacking
    )
    heads = ("what", "why", "what would add it", "stages")
    return Table(
        "What could not be seen. None of it is zero: it is not known.",
        tuple(Column(head, align="left") for head in heads),
        rows,
    )
