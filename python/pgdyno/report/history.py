"""A history for a terminal: one line a run and stage, changes of level, and a limit."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.analysis import words
from pgdyno.analysis.history import Gate, HistoryFacts, HistoryLine
from pgdyno.model.units import count_text, ns_text, ratio_text
from pgdyno.report.beside import grid_lines

_HEAD = (
    "time",
    "plan",
    "stage",
    "host",
    "PostgreSQL",
    "throughput",
    "95% interval",
    "p99",
    "doubt",
)


def lines(found: HistoryFacts) -> Iterator[str]:
    """All that is printed of a history."""
    starts = {change.line: change for change in found.changes}
    rows = [_HEAD, *(_row(line) for line in found.lines)]
    printed = list(grid_lines(rows, left=len(_HEAD) - 4))
    yield printed[0]
    for number, text in enumerate(printed[1:]):
        if change := starts.get(number):
            line = found.lines[number]
            ratio = ratio_text(change.ratio).replace("x", "×")
            yield (
                f"  --- {line.plan}, {line.stage}: another level from here on, {ratio} of the one"
                f" before (p {change.p:.3f})"
            )
        yield text
    for one in found.gates:
        yield _gate(one)
    for one_left in found.left_out:
        yield f"left out: {one_left}"


def _row(line: HistoryLine) -> tuple[str, ...]:
    known = line.low is not None and line.high is not None
    return (
        words.moment(line.started_ns), line.plan, line.stage, line.host, line.build,
        words.NOTHING if line.throughput is None
        else f"{count_text(line.throughput)} {line.metric}",
        f"{count_text(line.low or 0)} to {count_text(line.high or 0)}" if known else "not known",
        words.NOTHING if line.p99_ns is None else ns_text(line.p99_ns),
        line.doubt or "none",
    )  # fmt: skip


def _gate(one: Gate) -> str:
    interval = f"{one.ratio:.3f} ({one.low:.3f} to {one.high:.3f})"
    what = f"{one.stage} of {one.run} against {one.against}: {interval}"
    least = f"a drop to {one.least_found:.2f} would be found in four of five cases"
    if one.fails:
        return f"{what} lies below {one.limit:g}"
    if one.fails is None:
        return f"{what} holds {one.limit:g}: not shown to be below; {least}"
    return f"{what} does not lie below {one.limit:g}; {least}"
