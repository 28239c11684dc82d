"""How a number was made, where the time went, and how the workload differs from its text."""

from __future__ import annotations

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.timeline_facts import Phases
from pgdyno.model.units import seconds_text
from pgdyno.model.wording import listed
from pgdyno.report.document import Block, Cell, Column, Points, Section, Table, Text


def section(facts: Facts) -> Section:
    """Method, time and deviations."""
    blocks: list[Block] = [Text(_comparison(facts))]
    if facts.notes:
        blocks += [Text("Notes of the plan:"), Points(facts.notes)]
    blocks.append(_time(facts.phases))
    blocks += _deviations(facts)
    return Section("method", "Method", tuple(blocks))


def _comparison(facts: Facts) -> str:
    methods = {
        comparison.method
        for stage in facts.stages
        for comparison in (stage.to_first, stage.to_previous)
        if comparison is not None and comparison.method != "none"
    }
    how = f" ({listed(sorted(methods))})" if methods else ""
    share = words.confidence_to_first(facts.stages, facts.confidence)
    return (
        "Stages are compared by the logarithms of their throughput ratios within a round, so that"
        f" what a round does to all its stages cancels. Intervals of {share}{how}; verdicts are"
        f" adjusted for the number of comparisons (Holm). Ratios within {facts.margin:.0%} of 1 are"
        " too close to matter. No outlier is removed."
    )


def _deviations(facts: Facts) -> list[Block]:
    origin = "the TPC-C text" if facts.compliance else "what pgbench does"
    if not facts.deviations:
        return [Text(f"{facts.label}. The run file lists no deviation from {origin}.")]
    some = any(one.stages for one in facts.deviations)
    table = Table(
        f"{facts.label}: where the workload differs from {origin}.",
        (
            Column("deviation", align="left"),
            Column("why", align="left"),
            *([Column("clause", align="left")] if facts.compliance else []),
            *([Column("stages", align="left")] if some else []),
        ),
        tuple(
            (
                Cell(one.what),
                Cell(one.why),
                *([Cell(one.clause)] if facts.compliance else []),
                *([Cell(listed(one.stages) if one.stages else "all")] if some else []),
            )
            for one in facts.deviations
        ),
    )
    return [table]


def _time(phases: Phases) -> Table:
    total = phases.total_s
    lines = [("measuring (warm-up, window, drain)", phases.measuring_s)]
    lines += sorted(phases.other_s.items(), key=lambda line: -line[1])
    lines.append(("between and around the trials", phases.between_s))
    if phases.stopped_s:
        lines.append(("interrupted: until the next trial began", phases.stopped_s))
    lines.append(("whole run", total))
    return Table(
        "Where the time of the run went.",
        (Column("phase", align="left"), Column("time"), Column("share")),
        tuple(
            (
                Cell(name),
                Cell(seconds_text(seconds)),
                Cell(f"{seconds / total:.0%}" if total else words.NOTHING),
            )
            for name, seconds in lines
        ),
    )
