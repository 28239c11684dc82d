"""How throughput ran over time, and whether the windows were fair samples of it."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts, Judgement
from pgdyno.model.wording import plural, small
from pgdyno.report.document import Cell, Column, Figure, Section, Table
from pgdyno.report.sections.stages import checkpoint_counts


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
    return Section("time", "Over time", (Figure("timeline"), table))


def _unshortened(judgement: Judgement | None, facts: Facts) -> Judgement | None:
    """The same; a plan that --quick shortened is first to be run as it is."""
    if judgement is None or judgement.advice is None or not facts.quick:
        return judgement
    advice = f"Run the plan without --quick; if it finds that too: {small(judgement.advice)}"
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
