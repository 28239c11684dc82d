"""Imported results for a terminal: what was told, what the importer reckons, what to mind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.imports.beside import Beside
from pgdyno.imports.buckets import percentile
from pgdyno.imports.together import Together
from pgdyno.model.imported import COMPARABLE, CONDITIONS, Imported, Told
from pgdyno.model.wording import plural

_FIGURES_MAX = 12  # of one result in a terminal; JSON has all
_SHARES = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))


def lines(results: Sequence[Imported], together: Sequence[Together]) -> Iterator[str]:
    """The results, each under its tool, then what ran together."""
    for number, one in enumerate(results, 1):
        yield from _result(number, one)
    for group in together:
        names = ", ".join(str(place + 1) for place in group.places)
        yield f"Results {names} together, {group.said}:"
        for metric, value in group.sums.items():
            yield f"  {metric}: {_number(value)}"
    yield "No interval and no verdict: each figure is one run of another tool."


def _result(number: int, one: Imported) -> Iterator[str]:
    where = f"{one.source.file}, lines {one.source.first_line} to {one.source.last_line}"
    yield f"{number}. {one.name} ({one.form}): {where}"
    yield from _figures(one)
    if one.conditions:
        known = [f"{CONDITIONS[key]}: {_word(value)}" for key, value in one.conditions.items()]
        yield f"  load: {'; '.join(known)}"
    for what, count in one.counts.items():
        yield f"  counted: {what}: {count:,}"
    if one.unknown:
        yield f"  not told: {', '.join(one.unknown)}"
    for check in one.checks:
        if check.outcome == "fires":
            yield f"  mind {check.trap}: {check.fact}"
    unknown = [f"{check.trap} ({check.fact})" for check in one.checks if check.outcome == "unknown"]
    if unknown:
        yield f"  not checked: {'; '.join(unknown)}"


def _figures(one: Imported) -> Iterator[str]:
    shown = [told for told in one.told if not told.metric.startswith(("progress", "interval"))]
    shown.sort(key=lambda told: (told.of is not None, told.of != "NEW_ORDER"))
    for told in shown[:_FIGURES_MAX]:
        yield f"  told: {_told(told)}"
    if (rest := len(one.told) - len(shown[:_FIGURES_MAX])) > 0:
        yield f"  told: {plural(rest, 'more figure')}, all of them in --format json"
    for figure in one.comparable:
        meaning = COMPARABLE[figure.metric]
        yield f"  {figure.metric}: {_number(figure.value)} ({meaning}; {figure.how})"
    if one.latencies is not None:
        each = [f"{name} {percentile(one.latencies, part) / 1000:.3g} ms" for part, name in _SHARES]
        yield f"  latencies, counted: {', '.join(each)}"
    if one.failed is not None:
        yield f"  failed: {one.failed:,}"


def ratio_lines(beside: Beside) -> Iterator[str]:
    """A ratio with all that has to be told with it."""
    first, second = beside.values
    yield (
        f"{beside.metric} of result 2 to result 1: {_number(second)} / {_number(first)} ="
        f" x{beside.ratio:.3f} ({beside.meaning})"
    )
    yield from beside.sentences


def _told(told: Told) -> str:
    of = f"{told.of}: " if told.of else ""
    return f"{of}{told.metric} {_number(told.value)} {told.unit} (line {told.line})"


def _word(value: str | float) -> str:
    return value if isinstance(value, str) else _number(value)


def _number(value: float) -> str:
    if value == int(value):
        return f"{value:,.0f}"
    return f"{value:,.2f}" if value >= 1 else f"{value:.3g}"
