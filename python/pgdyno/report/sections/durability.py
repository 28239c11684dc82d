"""What each stage may lose, with the layer that gives it up and where that was read."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.analysis import words
from pgdyno.analysis.drill_facts import MeasuredLoss
from pgdyno.analysis.facts import Facts, StageFacts
from pgdyno.model.units import share_text
from pgdyno.model.wording import capital, listed
from pgdyno.report.document import Block, Cell, Column, Section, Table, Text
from pgdyno.report.tone import WORST as TONES

_HEADS = (
    Column("stage", align="left"),
    Column("what", align="left"),
    Column("may be lost", align="left"),
    Column("layer", align="left"),
)

_NOT_REHEARSED = (
    "What a crash or a power cut really takes was not rehearsed: `pgdyno drill` with this plan does"
    " so on copies. Where the run file of a drill lies beside that of this run, what it took stands"
    " here and in the answer."
)


def section(facts: Facts) -> Section:
    """One line for each loss of each stage, and for what is not known."""
    rows = [row for stage in facts.stages for row in _rows(stage)]
    blocks: list[Block] = [
        Text(f"{capital(words.planned_otherwise(one))}.", "warn")
        for one in facts.stages if one.rung != one.rung_planned
    ]  # fmt: skip
    unread = [f"`{one.name}`" for one in facts.stages if not one.read_back]
    if unread:
        unread_text = f"Nothing was read back of {listed(unread)}: the plan's word stands."
        blocks.append(Text(unread_text, "warn"))
    if rows:
        blocks.append(Table("Each stage stands on the lowest rung of these.", _HEADS, tuple(rows)))
    else:
        blocks.append(Text("Nothing was found that gives up durability.", "good"))
    blocks += _measured(facts)
    blocks.append(
        Text(
            "Whether a device keeps what it said was written when its power goes cannot be read"
            " anywhere; only cutting the power shows it.",
            "quiet",
        )
    )
    return Section("durability", "What may be lost", tuple(blocks))


def _measured(facts: Facts) -> list[Block]:
    """What a drill took from stages, or from their rungs; else how that is measured."""
    measured = [one for stage in facts.stages for one in stage.measured]
    if not measured:
        return [] if facts.server else [Text(_NOT_REHEARSED, "quiet")]
    disasters = list(dict.fromkeys(one.disaster for one in measured))
    rows = tuple(
        (
            Cell(stage.name, rung=stage.rung, note=_whose(stage.measured)),
            *(_took(stage.measured, disaster) for disaster in disasters),
        )
        for stage in facts.stages
    )
    heads = (
        Column("stage", align="left"),
        *(Column(f"{one} took", align="left") for one in disasters),
    )
    caption = (
        f"What disasters took when drill {measured[0].drill} rehearsed them with"
        f" {measured[0].load}: from the stage itself where it was drilled with these settings, else"
        " from stages of its rung. Below, the share of cuts that did harm, 95% intervals."
    )
    return [Table(caption, heads, rows)]


def _whose(measured: Sequence[MeasuredLoss]) -> str | None:
    if not measured or measured[0].is_same:
        return None
    return f"as {listed(measured[0].stages)} of the same rung"


def _took(measured: Sequence[MeasuredLoss], disaster: str) -> Cell:
    found = next((one for one in measured if one.disaster == disaster), None)
    if found is None:
        return Cell("not rehearsed", "quiet")
    interval = f"{share_text(found.harmed.low)} to {share_text(found.harmed.high)}"
    return Cell(found.took.words, tone=TONES[found.took.worst], note=interval)


def _rows(stage: StageFacts) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = [
        (
            Cell(stage.name, rung=loss.rung),
            Cell(loss.what),
            Cell(loss.loses),
            Cell(loss.layer, note=loss.source),
        )
        for loss in stage.losses
    ]
    rows += [
        (Cell(stage.name), Cell(text), Cell("not known", "warn"), Cell(words.NOTHING))
        for text in stage.not_known
    ]
    return rows
