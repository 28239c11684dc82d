"""What pgbench itself printed, where it drove."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts
from pgdyno.model.run import PgbenchSummary
from pgdyno.report.document import Cell, Section, Table, Text, columns

_NOTE = (
    "These figures are of pgbench's whole run, the warm-up included. All others in this report are"
    " of the window: its log of every transaction, cut at the window's begin and end."
)


def section(facts: Facts) -> Section | None:
    """Its summary of each trial, and the means of its commands over the trials of a stage."""
    by_trial = [(trial, trial.pgbench) for trial in facts.trials if trial.pgbench is not None]
    if not by_trial:
        return None
    summary = Table(
        "The summary of each trial.",
        columns("trial", "transactions", "failed", "retries", "tps", ("latency average", "ms"),
                ("stddev", "ms"), ("connecting", "ms")),
        tuple(
            (Cell(f"{trial.number} {trial.stage}"), *_row(said)) for trial, said in by_trial
        ),
    )  # fmt: skip
    stages = list(dict.fromkeys(trial.stage for trial, _ in by_trial))
    means = Table(
        "Mean latency of each command, median of the trials of a stage.",
        columns("command", "stage", ("mean", "ms"), "failures", "retries"),
        tuple(
            row
            for stage in stages
            for row in _commands(stage, [said for trial, said in by_trial if trial.stage == stage])
        ),
    )
    return Section("pgbench", "What pgbench itself says", (summary, means, Text(_NOTE, "quiet")))


def _row(said: PgbenchSummary) -> tuple[Cell, ...]:
    counts = (said.transactions, said.failed, said.retries)
    seconds = (said.latency_mean_s, said.latency_sd_s, said.connect_s)
    return (
        *(Cell(f"{count:,}") for count in counts),
        Cell(f"{said.tps:,.0f}"),
        *(Cell(words.NOTHING if one is None else f"{one * 1e3:,.3f}") for one in seconds),
    )


def _commands(stage: str, trials: Sequence[PgbenchSummary]) -> list[tuple[Cell, ...]]:
    return [
        (
            Cell(f"{same[0].kind}: {same[0].text}"),
            Cell(stage),
            Cell(f"{median(one.mean_s for one in same) * 1e3:,.3f}"),
            Cell(f"{sum(one.failures for one in same):,}"),
            Cell(f"{sum(one.retries for one in same):,}"),
        )
        for same in zip(*(said.statements for said in trials), strict=True)
    ]
