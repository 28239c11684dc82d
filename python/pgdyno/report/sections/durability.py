"""What each stage may lose, with the layer that gives it up and where that was read."""

from __future__ import annotations

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts, StageFacts
from pgdyno.model.wording import listed
from pgdyno.report.document import Block, Cell, Column, Section, Table, Text

_HEADS = (
    Column("stage", align="left"),
    Column("what", align="left"),
    Column("may be lost", align="left"),
    Column("layer", align="left"),
)


def section(facts: Facts) -> Section:
    """One line for each loss of each stage, and for what is not known."""
    rows = [row for stage in facts.stages for row in _rows(stage)]
    blocks: list[Block] = [Text(f"{words.planned_otherwise(one)}.", "warn") for one in facts.stages
                           if one.rung != one.rung_planned]  # fmt: skip
    unread = [f"`{one.name}`" for one in facts.stages if not one.read_back]
    if unread:
        unread_text = f"Nothing was read back of {listed(unread)}: the plan's word stands."
        blocks.append(Text(unread_text, "warn"))
    if rows:
        blocks.append(Table("Each stage stands on the lowest rung of these.", _HEADS, tuple(rows)))
    else:
        blocks.append(Text("Nothing was found that gives up durability.", "good"))
    blocks.append(
        Text(
            "Whether a device keeps what it said was written when its power goes cannot be read"
            " anywhere; only cutting the power shows it.",
            "quiet",
        )
    )
    return Section("durability", "What may be lost", tuple(blocks))


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
