"""A history for a terminal: a line a run and stage, files below them, changes of level, a limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.analysis import words
from pgdyno.analysis.answer_facts import BEYOND_MIN
from pgdyno.analysis.history import HistoryFacts, HistoryLine
from pgdyno.model.units import count_text, moment_text, ns_text, ratio_text
from pgdyno.model.wording import plural
from pgdyno.report.beside import gate_line, grid_lines

_HEAD = (
    "time",
    "plan",
    "stage",
    "host",
    "PostgreSQL",
    "throughput",
    "95% interval",
    "p99",
    "confidence",
)
_OWN = "pgdyno"  # our driver: where all runs have it, nothing is said of that
_NO_INTERVAL = "An interval takes 3 or more runs of one stage, its own among them."
_BELOW, _COLUMNS = " " * 4, 80  # of a terminal; what does not fit below a line has two of its own
_OFTEN_SHARED = (1, 3, 4)  # columns that are told once where all runs share them


def lines(found: HistoryFacts) -> Iterator[str]:
    """All that is printed of a history."""
    starts = {change.line: change for change in found.changes}
    engines = {line.engine for line in found.lines}
    rows = [_HEAD, *(_row(line) for line in found.lines)]
    shared = [place for place in _OFTEN_SHARED if len({row[place] for row in rows[1:]}) == 1]
    if shared:
        said = (f"{_HEAD[place]} {rows[1][place].removeprefix('PostgreSQL ')}" for place in shared)
        yield f"all runs: {', '.join(said)}"
    narrow = [tuple(text for place, text in enumerate(row) if place not in shared) for row in rows]
    width = max(len(row[-1]) for row in narrow)  # words begin at the left, also the last ones
    narrow = [(*row[:-1], row[-1].ljust(width)) for row in narrow]
    printed = list(grid_lines(narrow, left=len(narrow[0]) - 4))
    yield printed[0]
    for number, text in enumerate(printed[1:]):
        if change := starts.get(number):
            line = found.lines[number]
            ratio = ratio_text(change.ratio).replace("x", "×")
            yield (
                f"  --- {line.plan}, {line.stage}: another level from here on, {ratio} of the one"
                f" before ({_chance(change.p)})"
            )
        yield text
        yield from _below(found.lines, number, tells_engine=len(engines) > 1)
    if len(engines) == 1 and engines != {_OWN}:
        yield f"All runs were driven by {engines.pop()}."
    if any(line.throughput is not None for line in found.lines):
        yield "Throughput is the geometric mean of a stage's rounds; its report shows their median."
    if any(line.throughput is not None and line.p99_ns is None for line in found.lines):
        yield f"p99 is told where at least {plural(BEYOND_MIN, 'request')} took longer."
    if any(line.throughput is not None and line.low is None for line in found.lines):
        yield _NO_INTERVAL
    for one in found.gates:
        yield gate_line(one)
    for one_left in found.left_out:
        yield f"left out: {one_left}"


def _below(all_lines: Sequence[HistoryLine], number: int, *, tells_engine: bool) -> Iterator[str]:
    """What goes on from a run, once for all its stages: file, engine where it differs, doubts.

    Below the line, and not in it: lines are as wide as a terminal without them.
    """
    line, after = all_lines[number], all_lines[number + 1 : number + 2]
    if any((one.file, one.engine) == (line.file, line.engine) for one in after):
        return
    driven = f"driven by {line.engine}"
    together = f"{_BELOW}{line.file}, {driven}"
    if not tells_engine:
        yield f"{_BELOW}{line.file}"
    else:
        yield from ([together] if len(together) <= _COLUMNS
                    else [_BELOW + line.file, _BELOW + driven])  # fmt: skip
    if not any((one.run, one.file) == (line.run, line.file) for one in after):
        yield from _doubts(
            [one for one in all_lines if (one.run, one.file) == (line.run, line.file)]
        )


def _doubts(mine: Sequence[HistoryLine]) -> Iterator[str]:
    """What limits the confidence in the stages of a run: once where it is the same of all."""
    told = [one for one in mine if one.throughput is not None and one.doubt is not None]
    same = len(told) == len(mine) and len({(one.confidence, one.doubt) for one in told}) == 1
    for one in told[:1] if same else told:
        of = "" if same else f"{one.stage}, "
        yield f"{_BELOW}{of}{one.confidence}: {one.doubt}"


def _chance(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p {p:.3f}"


def _row(line: HistoryLine) -> tuple[str, ...]:
    known = line.low is not None and line.high is not None
    return (
        moment_text(line.started_ns), line.plan, line.stage, line.host, line.build,
        words.NOTHING if line.throughput is None
        else f"{count_text(line.throughput)} {line.metric}",
        f"{count_text(line.low or 0)} to {count_text(line.high or 0)}" if known else "not known",
        words.NOTHING if line.p99_ns is None else ns_text(line.p99_ns),
        _confidence(line),
    )  # fmt: skip


def _confidence(line: HistoryLine) -> str:
    if not line.rounds:
        return "no round finished"
    if line.throughput is None:  # rounds of nothing, or no whole checkpoint cycle between them
        return "no throughput to tell"
    return line.confidence
