"""What each stage sets, as a difference to the stage before, with the origin of each value."""

from __future__ import annotations

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts, StageFacts
from pgdyno.analysis.setting_facts import SettingChange
from pgdyno.model.wording import plural
from pgdyno.report.document import Block, Cell, Column, Section, Table, Text

HEADS = (
    Column("setting", align="left"),
    Column("before", align="left"),
    Column("set to", align="left"),
    Column("read back", align="left"),
    Column("origin", align="left"),
)


def section(facts: Facts) -> Section:
    """A table for each stage."""
    blocks: list[Block] = []
    if facts.trials_finished:
        text = "Every setting was read back from the running server in each trial."
        blocks.append(Text(text, "quiet"))
    blocks += _found(facts)
    before: StageFacts | None = None
    for stage in facts.stages:
        blocks += _stage(stage, before, found=bool(facts.configuration))
        before = stage
    return Section("settings", "Settings", tuple(blocks))


def _found(facts: Facts) -> list[Block]:
    """The configuration of a server that is not ours, which every stage builds on."""
    if not facts.configuration:
        return []
    own = sum(one.source != "default" for one in facts.configuration)
    rows = tuple(
        (Cell(one.name, code=True), Cell(one.value or "''", code=True), Cell(one.source))
        for one in sorted(facts.configuration, key=lambda one: one.source == "default")
    )
    heads = (
        Column("setting", align="left"), Column("value", align="left"),
        Column("set by", align="left"),
    )  # fmt: skip
    caption = (
        f"The server's own configuration, which every stage builds on: {plural(own, 'setting')}"
        f" that somebody chose, without ports, files and what each session has anew, and"
        f" {plural(len(rows) - own, 'default')} that matter much."
    )
    return [Table(caption, heads, rows, folded=True)]


def _stage(stage: StageFacts, before: StageFacts | None, *, found: bool) -> list[Block]:
    alone = "the server's own configuration" if found else "the defaults of the server"
    against = f"`{before.name}`" if before else alone
    afresh = " It does not build on it." if before and stage.afresh else ""
    rung = words.stands(stage)
    build = f" It runs on {stage.build}." if stage.build else ""
    sentence = f"`{stage.name}`: {stage.why.rstrip('.')}. {rung}{build}"
    if not stage.changes:
        return [Text(f"{sentence} It sets nothing that differs from {against}.")]
    same = sum(change.before == (change.effective or change.after) for change in stage.changes)
    count = plural(len(stage.changes) - same, "setting differs", "settings differ")
    also = f", {plural(same, 'is', 'are')} set to what holds there" if same else ""
    table = Table(
        f"{stage.name}: {count} from {against.replace('`', '')}{also}.",
        HEADS,
        tuple(_row(change) for change in stage.changes),
    )
    return [Text(sentence + afresh), table]


def _row(change: SettingChange) -> tuple[Cell, ...]:
    origin = Cell("no longer set", "quiet")
    if change.origin is not None:
        origin = Cell(change.origin, note=change.origin_detail or None)
    return (
        Cell(change.name, code=True),
        Cell(change.before or words.NOTHING, code=change.before is not None),
        Cell(change.after or "default", code=change.after is not None),
        Cell(change.effective or words.NOTHING, code=change.effective is not None),
        origin,
    )
