"""Every trial, so that noise, interference and trials that were left out can be seen."""

from __future__ import annotations

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts, TrialFacts
from pgdyno.analysis.replaced import ReplacedFacts
from pgdyno.model.run import TrialState
from pgdyno.model.units import count_text
from pgdyno.model.wording import plural
from pgdyno.report import noise
from pgdyno.report.document import Block, Cell, Column, Figure, Section, Table, Text


def section(facts: Facts) -> Section:
    """The dot plot, the trials left out, and all trials."""
    blocks: list[Block] = [Figure("rounds")]
    blocks += [Text(line) for line in noise.lines(facts)]
    blocks.append(_left_out(facts))
    if facts.replaced:
        blocks.append(_replaced(facts))
    blocks.append(
        Table(
            "All trials in the order of execution, but those that were measured again; what is not"
            " finished is not used.",
            (
                Column("trial", align="left"),
                Column("round"),
                Column("state", align="left"),
                Column("engine", align="left"),
                Column(facts.headline),
                Column("tpmTotal"),
                Column("retries"),
                Column("failed"),
                Column("steadiness", align="left"),
            ),
            tuple(_row(trial) for trial in facts.trials),
            folded=True,
        )
    )
    notes = [f"Trial {t.number}: {note}." for t in facts.trials for note in t.notes]
    blocks += [Text(note) for note in notes]
    return Section("rounds", "Every round", tuple(blocks))


def _left_out(facts: Facts) -> Block:
    if not facts.not_finished:
        finished = f"{plural(len(facts.trials), 'trial')} finished"
        if facts.replaced:
            again = plural(
                len(facts.replaced), "further one was measured again and does",
                "further ones were measured again and do",
            )  # fmt: skip
            return Text(f"{finished} and count; {again} not: see below.")
        return Text(f"{finished}; none is left out.")
    return Table(
        "Trials that are not used in any number, and why.",
        (
            Column("trial", align="left"),
            Column("round"),
            Column("state", align="left"),
            Column("reason", align="left"),
        ),
        tuple(
            (
                Cell(f"{trial.number} {trial.stage}"),
                Cell(str(trial.round)),
                _state(trial),
                Cell(trial.reason or _untold(trial, "not reached")),
            )
            for trial in facts.not_finished
        ),
    )


def _replaced(facts: Facts) -> Table:
    return Table(
        "Trials that were measured again, with their rounds or because a host of the load was lost."
        " They are not used, but one that failed counts against its stage, unless it lost a host."
        " Each gave its number to the trial that replaced it, and got one after all others.",
        (
            Column("trial", align="left"),
            Column("round"),
            Column("state", align="left"),
            Column(facts.headline),
            Column("replaced by trial"),
            Column("reason", align="left"),
        ),
        tuple(
            (
                Cell(f"{one.number} {one.stage}"),
                Cell(str(one.round)),
                Cell(
                    TrialState(one.state).text, "bad" if one.state in ("failed", "invalid") else ""
                ),
                _number(one.throughput),
                Cell(str(one.replaced_by)),
                Cell(
                    one.reason or _untold(one, "its round was broken off, or another of it failed")
                ),
            )
            for one in facts.replaced
        ),
    )


def _row(trial: TrialFacts) -> tuple[Cell, ...]:
    return (
        Cell(f"{trial.number} {trial.stage}"),
        Cell(str(trial.round)),
        _state(trial),
        Cell(trial.engine or words.NOTHING),
        _number(trial.throughput),
        _number(trial.tpm_total),
        _number(trial.retries),
        _number(trial.failed),
        Cell(trial.steadiness.verdict if trial.steadiness else words.NOTHING),
    )


def _untold(trial: TrialFacts | ReplacedFacts, otherwise: str) -> str:
    """Why a trial is not used that has no reason of its own."""
    return "the run ended while it was measured" if trial.state == TrialState.RUNNING else otherwise


def _state(trial: TrialFacts) -> Cell:
    return Cell(TrialState(trial.state).text, "" if trial.state == "finished" else "bad")


def _number(value: float | None) -> Cell:
    return Cell(words.NOTHING if value is None else count_text(value))
