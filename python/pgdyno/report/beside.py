"""Stages of several runs beside each other, for a terminal: sides in columns, then what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.analysis import words
from pgdyno.analysis.beside_facts import Against, Compared, Differs, Gate, Row, Side
from pgdyno.analysis.compared_stages import GROUPS
from pgdyno.analysis.efficiency import METRICS
from pgdyno.model.units import at_least_text, count_text, digits_text, moment_text, ratio_text
from pgdyno.model.wording import capital, plural
from pgdyno.report.imported import lines as imported_lines
from pgdyno.report.sections.stages import tail_words

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SIDES_MAX = len(_LETTERS)
_PERCENTILES = (
    ("p50", "p50_ns"), ("p90", "p90_ns"), ("p95", "p95_ns"), ("p99", "p99_ns"),
    ("p99.9", "p999_ns"), ("max", "max_ns"),
)  # fmt: skip
_RATIOS = {
    "paired": f"rounds, {words.RATIO}",
    "unpaired": "runs, a ratio is that of the geometric means of their rounds",
}
_SHORT = ("p50", "p99")  # of kinds other than the first
_FUNCTIONS_MAX = 12  # of a profile, in a terminal; JSON has all that weigh
_KINDS_MAX = 12  # of WAL records, in a terminal; JSON has all
_SHOWN_MAX = 25  # settings and alike that differ, in a terminal; JSON has all
_WAL = {
    "records": "records", "buffers_full": "writes for full buffers", "writes": "writes",
    "syncs": "flushes",
}  # fmt: skip
_VERDICTS = ("better", "worse", "equivalent")
_HINT_NO_INTERVAL = (
    "Latencies, costs and waits have no interval here, and no verdict: a small difference may be"
    " chance."
)
_OTHERS = "Results of other tools, as they were told; no verdict rests on them:"


def lines(found: Compared) -> Iterator[str]:
    """All that is printed of a comparison."""
    for number, row in enumerate(found.rows):
        if number:
            yield ""
        yield from _row(row)
    if found.gates:
        yield ""
        yield from map(gate_line, found.gates)
    if found.imported:
        yield ""
        yield _OTHERS
        yield from imported_lines(found.imported, ())
    base = "A" if found.rows else "result 1"
    first = 1 if found.rows else 2
    for number, one in enumerate(found.ratios, first):
        yield (
            f"{one.metric} of result {number} to {base}: {_number(one.values[1])} /"
            f" {_number(one.values[0])} = {ratio_text(one.ratio)} ({one.meaning})"
        )
        yield from one.sentences


def _row(row: Row) -> Iterator[str]:
    sides = row.sides
    for letter, side in zip(_LETTERS, sides, strict=False):
        when = moment_text(side.started_ns)
        yield f"{letter}  {side.label}: plan {side.plan}, {when}, {side.rung}, {_rounds(side)}"
    yield ""
    yield from grid_lines(_throughput(row))
    for how, meaning in _RATIOS.items():
        if any(one.how == how and one.comparison.ratio is not None for one in row.against):
            yield f"Throughputs are medians of rounds; compared by {meaning}."
    for one in row.against:
        yield from _said(one)
        yield from _slowest(row, one)
    yield from _doubted(row)
    if row.against:
        yield _HINT_NO_INTERVAL
    for title, grid in (
        ("Latency, of all rounds together", _latency(sides)),
        ("Cost of a transaction, median of rounds", _costs(sides)),
        ("WAL of a transaction, median of rounds", _wal(sides)),
        ("WAL of a commit by kind of record, bytes", _wal_kinds(sides)),
        ("Sessions at a moment, by what they did or waited for", _waits(sides)),
        ("CPU time of a transaction by profiled function, µs", _functions(sides)),
    ):
        if len(grid) > 1:
            yield ""
            yield title
            yield from grid_lines(grid)
    for one in row.against:
        yield ""
        yield from _differences(one)


def _rounds(side: Side) -> str:
    failed = f", {side.failed} failed" if side.failed else ""
    return f"{plural(side.rounds, 'round')}{failed}"


def _throughput(row: Row) -> list[tuple[str, ...]]:
    base = row.sides[0]
    share = words.intervals_confidence((one.comparison for one in row.against), base.confidence)
    grid: list[tuple[str, ...]] = [
        ("", base.metric, "to A", f"{share} interval", "compared by", "verdict")
    ]
    against = {one.place: one for one in row.against}
    for place, side in enumerate(row.sides):
        one = against.get(place)
        comparison = one.comparison if one else None
        known = comparison is not None and comparison.low is not None
        grid.append((
            _LETTERS[place], words.count(side.throughput), words.ratio(comparison),
            words.interval(comparison) if known else (words.NOTHING if place == 0 else "not known"),
            {"paired": "rounds", "unpaired": "runs"}[one.how] if one else words.NOTHING,
            comparison.verdict if comparison else words.NOTHING,
        ))  # fmt: skip
    return grid


def _said(one: Against) -> Iterator[str]:
    letter = _LETTERS[one.place]
    if one.comparison.reason:
        yield f"{letter}: {one.comparison.verdict}, because {one.comparison.reason}."
    if one.hint:
        yield f"   {one.hint}"
    for warning in one.comparison.warnings:
        if warning != one.comparison.reason:
            yield f"   {capital(warning)}."


def _slowest(row: Row, one: Against) -> Iterator[str]:
    """What the report of both says of the slowest requests; below stand those of merged rounds."""
    tail = row.sides[one.place].tail
    if one.how == "paired" and tail is not None and tail.base == row.sides[0].stage:
        interval = words.ends(tail.low, tail.high)
        slowest = tail_words(tail, one.comparison)
        yield f"{_LETTERS[one.place]}: by rounds, the {slowest} ({interval})."


def _doubted(row: Row) -> Iterator[str]:
    """What a verdict stands under, so that none is read without its light."""
    if not any(one.comparison.verdict in _VERDICTS for one in row.against):
        return
    for letter, side in zip(_LETTERS, row.sides, strict=False):
        if side.doubts:
            yield f"{letter}: the confidence of its report is low: {'; '.join(side.doubts)}."


def _latency(sides: Sequence[Side]) -> list[tuple[str, ...]]:
    grid = [_head(sides)]
    kinds = list(dict.fromkeys(line.kind for side in sides for line in side.latency))
    for number, kind in enumerate(kinds):
        of = [next((line for line in side.latency if line.kind == kind), None) for side in sides]
        for name, field in _PERCENTILES:
            if number and name not in _SHORT:
                continue
            values = [None if line is None else int(getattr(line, field)) for line in of]
            shown = [
                words.NOTHING if line is None or ns is None
                else at_least_text(ns, line.exact_below_ns)
                for line, ns in zip(of, values, strict=True)
            ]  # fmt: skip
            bounds = [
                line is not None and ns is not None and line.exact_below_ns is not None
                and ns >= line.exact_below_ns
                for line, ns in zip(of, values, strict=True)
            ]  # fmt: skip
            known = [None if bound else ns for ns, bound in zip(values, bounds, strict=True)]
            grid.append((f"{words.kind(kind)} {name}", *shown, *_ratios(known)))
    return grid


def _costs(sides: Sequence[Side]) -> list[tuple[str, ...]]:
    grid = [_head(sides)]
    for metric in METRICS:
        of = [side.per_transaction.get(metric.name) for side in sides]
        if any(of):
            unit = f", {metric.unit}" if metric.unit else ""
            shown = [metric.text(one.median) if one else words.NOTHING for one in of]
            ratios = _ratios([one.median if one else None for one in of])
            grid.append((f"{metric.head}{unit}", *shown, *ratios))
    return grid


def _wal(sides: Sequence[Side]) -> list[tuple[str, ...]]:
    grid = [_head(sides)]
    for name, head in _WAL.items():
        of = [side.wal.get(name) for side in sides]
        if any(value is not None for value in of):
            grid.append(_line_of(head, of, ".3g"))
    return grid


def _wal_kinds(sides: Sequence[Side]) -> list[tuple[str, ...]]:
    """Those with most bytes on any side; a side whose WAL was not read shows none."""
    grid = [_head(sides)]
    most: dict[str, float] = {}
    for side in sides:
        for name, value in side.wal_kinds.items():
            most[name] = max(value, most.get(name, 0.0))
    for name in sorted(most, key=lambda one: (-most[one], one))[:_KINDS_MAX]:
        of = [side.wal_kinds.get(name, 0.0) if side.wal_kinds else None for side in sides]
        shown = [words.NOTHING if value is None else some_bytes(value) for value in of]
        grid.append((name, *shown, *_ratios(of)))
    return grid


def _waits(sides: Sequence[Side]) -> list[tuple[str, ...]]:
    grid = [_head(sides)]
    names = list(dict.fromkeys(one.name for side in sides for one in side.waits or ()))
    for name in names:
        of = [
            None if side.waits is None
            else next((one.average for one in side.waits if one.name == name), 0.0)
            for side in sides
        ]  # fmt: skip
        grid.append(_line_of(name, of, ".2f"))
    return grid


def _functions(sides: Sequence[Side]) -> list[tuple[str, ...]]:
    """Those with most time on any side; a side without a profile shows none."""
    grid = [_head(sides)]
    most: dict[str, float] = {}
    for side in sides:
        for name, value in (side.functions or {}).items():
            most[name] = max(value, most.get(name, 0.0))
    for name in sorted(most, key=lambda one: -most[one])[:_FUNCTIONS_MAX]:
        of = [side.functions.get(name) if side.functions else None for side in sides]
        grid.append(_line_of(name, of, ".3g"))
    return grid


def _line_of(head: str, of: Sequence[float | None], form: str) -> tuple[str, ...]:
    """A line of numbers that all have one form, with their ratios."""
    shown = [words.NOTHING if value is None else format(value, form) for value in of]
    return (head, *shown, *_ratios(of))


def _differences(one: Against) -> Iterator[str]:
    letter = _LETTERS[one.place]
    if not one.differences:
        yield f"Nothing that is told differs between A and {letter}."
        return
    yield f"What differs between A and {letter}:"
    for line in one.differences[:_SHOWN_MAX]:
        yield f"  {_differs(line)}"
    if (rest := len(one.differences) - _SHOWN_MAX) > 0:
        yield f"  and {rest} more, all of them in --format json"


def _differs(one: Differs) -> str:
    return f"{GROUPS[one.group]}: {one.what}: {one.values[0]} and {one.values[1]}"


def _head(sides: Sequence[Side]) -> tuple[str, ...]:
    letters = _LETTERS[: len(sides)]
    return ("", *letters, *(f"{letter} / A" for letter in letters[1:]))


def _ratios(values: Sequence[float | None]) -> list[str]:
    base, *others = values
    return [
        words.NOTHING if not base or one is None else ratio_text(one / base).replace("x", "×")
        for one in others
    ]


def grid_lines(rows: Sequence[tuple[str, ...]], left: int = 1) -> Iterator[str]:
    """Columns of equal width: `left` of them begin at the left, the others end at the right."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield f"  {'  '.join(cells)}".rstrip()


def gate_line(one: Gate) -> str:
    """What a stage is against a limit, and which drop would be found."""
    interval = f"{one.ratio:.3f} ({one.low:.3f} to {one.high:.3f})"
    what = f"{one.stage} of {one.run} against {one.against}: {interval}"
    found = one.least_found
    least = "" if found is None else f"; a drop to {found:.2f} would be found in four of five cases"
    if one.fails:
        return f"{what} lies below {one.limit:g}"
    if one.fails is None:
        return f"{what} holds {one.limit:g}: not shown to be below{least}"
    return f"{what} does not lie below {one.limit:g}{least}"


def some_bytes(value: float) -> str:
    """Whole bytes, but of less than ten enough digits for the ratio beside it to be seen in."""
    return f"{value:,.0f}" if value == 0 or value >= 10 else digits_text(value, 2)


def _number(value: float) -> str:
    return count_text(value) if value >= 1000 else digits_text(value, 4)
