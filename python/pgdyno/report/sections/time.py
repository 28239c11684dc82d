"""How throughput ran over time, and whether the windows were fair samples of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from pgdyno.analysis import words
from pgdyno.analysis.checkpoints import CheckpointRow, Measure, checkpoints
from pgdyno.analysis.facts import Facts, Judgement
from pgdyno.model.units import bytes_text, count_text, ns_text
from pgdyno.model.wording import plural, small
from pgdyno.report.document import Cell, Column, Figure, Section, Table
from pgdyno.report.sections.stages import checkpoint_counts

_NS = 1e9


def section(facts: Facts) -> Section:
    """The lines of every trial, the checkpoints in them and their steadiness."""
    table = Table(
        "Checkpoints and steadiness of the windows; each stage by its most doubtful round.",
        (
            Column("stage", align="left"),
            Column("checkpoints completed", "per window"),
            Column("checkpoint cycle", align="left"),
            Column("steadiness", align="left"),
        ),
        tuple(
            (
                Cell(stage.name),
                Cell(checkpoint_counts(stage)),
                judged(_unshortened(stage.checkpoint_cycle, facts)),
                judged(stage.steadiness),
            )
            for stage in facts.stages
        ),
    )
    return Section("time", "Over time", (Figure("timeline"), table, *_checkpoints(facts)))


_HEADS = (
    ("checkpoints", "in the windows"), ("buffers written", "each"),
    ("WAL since the one before", "each"), ("writing buffers", "each"), ("flushing files", "each"),
    ("longest flush", "of a file"), ("WAL files", "added · removed · recycled"),
)  # fmt: skip
_ABOUT = (
    "What the checkpoints of the windows wrote, by stage and cause, as the server's log tells it:"
    " means of those that have ended, and the most below; one that reaches beyond its window"
    " counts as a whole."
)


def _checkpoints(facts: Facts) -> Iterator[Table]:
    """What they wrote, unless none of them tells it."""
    found = checkpoints(facts)
    if not any(one.ended for one in found):
        return
    heads = (Column(*head) for head in _HEADS)
    columns = (Column("stage", align="left"), Column("cause", align="left"), *heads)
    yield Table(_ABOUT, columns, tuple(map(_row, found)), folded=True)


def _row(one: CheckpointRow) -> tuple[Cell, ...]:
    open_ = one.count - one.ended
    seconds = (one.write_s, one.sync_s)
    return (
        Cell(one.stage),
        Cell(one.cause),
        Cell(count_text(one.count), note=f"{open_} not ended" if open_ else None),
        _each(one.buffers, count_text),
        _each(one.distance_bytes, bytes_text),
        *(_each(each, _duration) for each in seconds),
        Cell(words.NOTHING if one.longest_s is None else _duration(one.longest_s.most)),
        _files(one),
    )


def _files(one: CheckpointRow) -> Cell:
    files = (one.wal_added, one.wal_removed, one.wal_recycled)
    if files == (None, None, None):
        return Cell(words.NOTHING)
    return Cell(
        " · ".join(words.NOTHING if each is None else count_text(each.total) for each in files)
    )


def _each(measure: Measure | None, text: Callable[[float], str]) -> Cell:
    """A mean; where there is more than one value, with the most."""
    if measure is None:
        return Cell(words.NOTHING)
    several = measure.most != measure.mean
    return Cell(text(measure.mean), note=f"most {text(measure.most)}" if several else None)


def _duration(seconds: float) -> str:
    return ns_text(seconds * _NS)


def _unshortened(judgement: Judgement | None, facts: Facts) -> Judgement | None:
    """The same; a plan that --quick shortened is first to be run as it is."""
    if judgement is None or judgement.advice is None or not facts.quick:
        return judgement
    advice = f"Run the plan without --quick; if that finds the same, {small(judgement.advice)}"
    return replace(judgement, advice=advice)


def judged(judgement: Judgement | None) -> Cell:
    """A judgement with its fact, and in how many rounds it is so."""
    if judgement is None:
        return Cell(words.NOTHING)
    text = judgement.verdict
    if judgement.of_rounds > 1:
        text += f" in {judgement.rounds} of {plural(judgement.of_rounds, 'round')}"
    note = judgement.fact if judgement.advice is None else f"{judgement.fact}. {judgement.advice}"
    if judgement.verdict in ("clear", "steady"):
        return Cell(text, "good", note=note)
    return Cell(text, "bad" if judgement.verdict in ("finding", "drifting") else "warn", note=note)
