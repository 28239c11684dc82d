"""What the TPC-C text asks of a run, beside what the stages did."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts, Requirement
from pgdyno.model.units import digits_text
from pgdyno.model.wording import plural
from pgdyno.report.document import Block, Cell, Column, Section, Table, Text

_DIGITS_MAX = 4


def section(facts: Facts) -> Section | None:
    """A line for each requirement; none if the workload is not TPC-C."""
    if not facts.compliance:
        return None
    names = [stage.name for stage in facts.stages if stage.twin_of is None]
    table = Table(
        "Requirements of the text and what was measured, median of rounds.",
        (
            Column("requirement", align="left"),
            Column("clause", align="left"),
            Column("asked"),
            *(Column(name) for name in names),
        ),
        tuple(
            (
                Cell(row.what),
                Cell(row.clause),
                Cell(_asked(row)),
                *(_measured(row, name) for name in names),
            )
            for row in facts.compliance
        ),
        folded=True,
    )
    blocks: list[Block] = [
        Text(
            f"{_missed(facts, names)} A run without think times that drives more than 12.86 NOPM a"
            " warehouse measures the server on a smaller database than the text would allow; it may"
            " be compared with runs of the same settings only."
        ),
        table,
    ]
    return Section("compliance", "How near to TPC-C", tuple(blocks))


def _missed(facts: Facts, names: Sequence[str]) -> str:
    asked = plural(len(facts.compliance), "requirement")
    if not facts.trials_finished:
        return f"No stage was held against the {asked}: no trial finished."
    missed = sum(any(row.meets(name) is False for name in names) for row in facts.compliance)
    return f"At least one stage misses {missed} of {asked}."


def _number(value: float, unit: str, digits: int = 1) -> str:
    match unit:
        case "share":
            return f"{value:.{digits}%}"
        case "s":
            return f"{digits_text(value, 3 if value < 1000 else 4)} s"
        case _:
            return digits_text(value, 4)


def _asked(row: Requirement) -> str:
    low, high = (_number(v, row.unit) if v is not None else None for v in (row.low, row.high))
    if low and high:
        return low if low == high else f"{low} to {high}"
    return f"at least {low}" if low else f"at most {high}"


def _measured(row: Requirement, stage: str) -> Cell:
    value = row.measured.get(stage)
    if value is None:
        return Cell(words.NOTHING)
    if row.meets(stage):
        return Cell(_number(value, row.unit))
    return Cell(_told_from_bounds(value, row), "warn", note="missed")


def _told_from_bounds(value: float, row: Requirement) -> str:
    """A share with as many digits as tell it from a bound that it misses: 42.98% and no 43.0%."""
    shown = ""
    for digits in range(1, _DIGITS_MAX + 1):
        shown = _number(value, row.unit, digits)
        bounds = [_number(one, row.unit, digits) for one in (row.low, row.high) if one is not None]
        if shown not in bounds:
            break
    return shown
