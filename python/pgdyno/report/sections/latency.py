"""Latency percentiles: the main kind in full view, every other kind on request."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts, Judgement, Percentiles
from pgdyno.analysis.loads import main_kinds
from pgdyno.model.units import at_least_text, count_text
from pgdyno.model.wording import plural
from pgdyno.report.document import Cell, Figure, Section, Table, Text, columns

_OTHERS = "Response time of the other kinds, rounds merged."
HEADS = ("p50", "p90", "p95", "p99", "p99.9", "max", "requests")


def section(facts: Facts) -> Section:
    """The chart, the table of the main kind, and one of all kinds."""
    mains = main_kinds(facts)
    shown = [
        _table(
            f"Response time of {words.kind(kind)}, rounds merged.",
            [(one.name, one.percentiles(kind)) for one in stages],
            folded=False,
        )
        for kind, stages in mains.items()
    ]
    rest = [
        (f"{words.kind(line.kind)}, {stage.name}", line)
        for kind in dict.fromkeys(line.kind for stage in facts.stages for line in stage.latency)
        for stage in facts.stages
        if stage not in mains.get(kind, ()) and (line := stage.percentiles(kind)) is not None
    ]
    return Section(
        "latency",
        "Latency",
        (
            Figure("latency"),
            *shown,
            *([_table(_OTHERS, rest, folded=True)] if rest else []),
            *_statements(facts),
            *_window_ends(facts),
            Text(
                "Times are of all requests that somebody waited for within a window; those answered"
                " after its end count in full. Percentiles come from the merged histograms of all"
                " finished rounds, never from averages of percentiles. A stage's maximum is one"
                " transaction.",
                "quiet",
            ),
        ),
    )


def _table(caption: str, lines: Sequence[tuple[str, Percentiles | None]], *, folded: bool) -> Table:
    return Table(
        caption,
        columns("stage" if not folded else "kind, stage", *HEADS),
        tuple((Cell(name), *_values(line)) for name, line in lines),
        folded,
    )


def _window_ends(facts: Facts) -> tuple[Text, ...]:
    """Which requests have no answer, by stage; nothing where all have one."""
    return tuple(
        Text(f"`{stage.name}` {_rounds(end)}: {end.fact}.", "warn")
        for stage in facts.stages
        if (end := stage.window_end) is not None and end.verdict != "clear"
    )


def _rounds(end: Judgement) -> str:
    if end.of_rounds == 1:
        return "in its round"
    return f"in {end.rounds} of {plural(end.of_rounds, 'round')}, the first of them"


def _statements(facts: Facts) -> tuple[Table, ...]:
    """Where the time of a transaction goes, seen from the driver; long, so on request."""
    rows = tuple(
        (
            Cell(f"{words.kind(one.kind)}, {one.name}, {stage.name}"),
            *(
                Cell(at_least_text(ns, one.exact_below_ns))
                for ns in (one.p50_ns, one.p95_ns, one.p99_ns, one.max_ns)
            ),
            Cell(count_text(one.n)),
        )
        for stage in facts.stages
        for one in stage.statements
    )
    if not rows:
        return ()
    heads = ("p50", "p95", "p99", "max", "round trips")
    caption = "Time of a round trip by what it carries, rounds merged."
    return (Table(caption, columns("kind, statements, stage", *heads), rows, folded=True),)


def _values(line: Percentiles | None) -> tuple[Cell, ...]:
    if line is None:
        return tuple(Cell(words.NOTHING) for _ in HEADS)
    times = (line.p50_ns, line.p90_ns, line.p95_ns, line.p99_ns, line.p999_ns, line.max_ns)
    shown = (Cell(at_least_text(time, line.exact_below_ns)) for time in times)
    return (*shown, Cell(count_text(line.n)))
