"""What an earlier report says, beside what was measured here."""

from __future__ import annotations

from pgdyno.analysis import words
from pgdyno.analysis.earlier_facts import EarlierFigures, EarlierReportFacts
from pgdyno.analysis.facts import Facts
from pgdyno.model.units import count_text, ratio_text
from pgdyno.model.wording import plural
from pgdyno.report.document import Cell, Column, Section, Table, Text, Tone

_METRICS = {"nopm": "NOPM", "tpm_total": "tpmTotal", "tps": "tps"}


def section(facts: Facts) -> Section | None:
    """A table for each metric; none where the plan names no earlier report."""
    if facts.earlier is None:
        return None
    metrics = dict.fromkeys(line.metric for line in facts.earlier.figures)
    tables = [_table(metric, facts.earlier, facts) for metric in metrics]
    runs = plural(facts.earlier.runs, "run")
    note = (
        f"Reported: {facts.earlier.source}, on {facts.earlier.machine}; {runs} behind each figure,"
        " so that it has no interval. Machine, version and size differ: only ratios are compared,"
        " and each metric with itself."
    )
    return Section("reported", "Reported then, measured now", (*tables, Text(note, "quiet")))


def _table(metric: str, earlier: EarlierReportFacts, facts: Facts) -> Table:
    lines = [line for line in earlier.figures if line.metric == metric]
    rungs = {stage.name: stage.rung for stage in facts.stages}
    share = words.confidence_to_first(facts.stages, facts.confidence)
    return Table(
        f"{_METRICS[metric]} of {lines[0].base} = 1, reported and measured.",
        (
            Column("stage", align="left"),
            Column("reported"),
            Column("measured here"),
            Column("reported, ratio"),
            Column("measured, ratio"),
            Column(f"{share} interval"),
            Column("reported against measured", align="left"),
        ),
        tuple(
            (
                Cell(line.stage, rung=rungs[line.stage]),
                Cell(count_text(line.earlier)),
                Cell(words.NOTHING if line.now is None else count_text(line.now)),
                Cell(_ratio(line.earlier_ratio)),
                Cell(words.NOTHING if line.now_ratio is None else _ratio(line.now_ratio)),
                Cell(
                    words.NOTHING
                    if line.low is None or line.high is None
                    else f"{line.low:.3f} to {line.high:.3f}"
                ),
                Cell(*_held(line)),
            )
            for line in lines
        ),
    )


def _ratio(value: float) -> str:
    return ratio_text(value).replace("x", "×")


def _held(line: EarlierFigures) -> tuple[str, Tone]:
    """Where the reported ratio lies against the interval of ours."""
    if line.stage == line.base:
        return "the base of both", "quiet"
    if line.low is None or line.high is None:
        return "no interval", "warn"
    if line.earlier_ratio > line.high:
        return "it gained more in the report", "warn"
    if line.earlier_ratio < line.low:
        return "it gains more here", "warn"
    return "as reported, within the interval", "good"
