"""Imported results for a terminal: what was told, what the importer reckons, what to mind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pgdyno.imports.alike import alike, result_numbers
from pgdyno.imports.beside import Beside
from pgdyno.imports.buckets import percentile
from pgdyno.imports.simultaneous import Together
from pgdyno.model.imported import COMPARABLE, CONDITIONS, Condition, Imported, Told
from pgdyno.model.units import digits_text
from pgdyno.model.wording import plural

_FIGURES_MAX = 12  # of one result in a terminal; JSON has all
_RATES = {"1/min": "a minute", "1/s": "a second", "ops/sec": "a second", "us": "µs"}
_SAYS_UNIT = (")", "per sec.", "per second")  # how names of figures end that hold their unit
_SHARES = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))


def lines(results: Sequence[Imported], together: Sequence[Together]) -> Iterator[str]:
    """The results, each under its tool, what ran together, and what to mind, each once."""
    shared = _shared(results)
    for number, one in enumerate(results, 1):
        yield from _result(number, one, shared)
    if len(results) > 1:
        yield from _of_all(shared)
    for group in together:
        yield from _sum(group)
    yield from _minded(results)
    yield "No interval and no verdict: each figure is one run of another tool."


@dataclass(frozen=True, slots=True)
class _Shared:
    """What is the same of all results, and told once; nothing of one that stands alone."""

    conditions: dict[str, Condition]
    unknown: tuple[str, ...]


def _shared(results: Sequence[Imported]) -> _Shared:
    if len(results) < 2:
        return _Shared({}, ())
    first, *others = results
    conditions = {
        key: value
        for key, value in first.conditions.items()
        if all(other.conditions.get(key) == value for other in others)
    }
    unknown = [name for name in first.unknown if all(name in other.unknown for other in others)]
    return _Shared(conditions, tuple(unknown))


def _of_all(shared: _Shared) -> Iterator[str]:
    if shared.conditions:
        yield f"Load of all of them: {_load(shared.conditions)}"
    if shared.unknown:
        yield f"Not told of any of them: {', '.join(shared.unknown)}"


def _result(number: int, one: Imported, shared: _Shared) -> Iterator[str]:
    where = f"{one.source.file}, lines {one.source.first_line} to {one.source.last_line}"
    yield f"{number}. {one.name} ({one.form}): {where}"
    yield from _figures(one)
    own = {key: v for key, v in one.conditions.items() if key not in shared.conditions}
    if own:
        yield f"  load: {_load(own)}"
    if one.counts:
        counted = [f"{what}: {count:,}" for what, count in one.counts.items()]
        yield f"  counted: {'; '.join(counted)}"
    if unknown := [name for name in one.unknown if name not in shared.unknown]:
        yield f"  not told: {', '.join(unknown)}"


def _figures(one: Imported) -> Iterator[str]:
    shown = [told for told in one.told if not told.metric.startswith(("progress", "interval"))]
    shown.sort(key=lambda told: (told.of is not None, told.of != "NEW_ORDER"))
    for told in shown[:_FIGURES_MAX]:
        yield f"  told: {_told(told)}"
    if (rest := len(one.told) - len(shown[:_FIGURES_MAX])) > 0:
        yield f"  told: {plural(rest, 'more figure')}, all of them in --format json"
    for figure in one.comparable:
        yield f"  means: {_meant(figure.metric, figure.value)} ({figure.metric}, from {figure.how})"
    if one.latencies is not None:
        each = [
            f"{name} {digits_text(percentile(one.latencies, part) / 1000)} ms"
            for part, name in _SHARES
        ]
        yield f"  latencies, counted: {', '.join(each)}"
    if one.failed is not None:
        yield f"  failed: {plural(one.failed, 'transaction')}"


def _sum(group: Together) -> Iterator[str]:
    names = result_numbers(group.places).capitalize()
    yield f"{names} ran at the same time. Added by the importer:"
    for metric, value in group.sums.items():
        if metric not in COMPARABLE:
            yield f"  told: {metric} {_number(value)}"
    for metric, value in group.sums.items():
        if metric in COMPARABLE:
            yield f"  means: {_meant(metric, value)} ({metric})"


def _minded(results: Sequence[Imported]) -> Iterator[str]:
    """What fired, and what could not be checked: each once, with the results that it is about."""
    if fired := alike(results, "fires"):
        yield "Mind:"
        yield from (f"  {one.sentence(len(results))}" for one in fired)
    if unknown := alike(results, "unknown"):
        yield "Not checked:"
        yield from (f"  {one.sentence(len(results))}" for one in unknown)


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
    unit = _RATES.get(told.unit, told.unit)
    words = told.metric.split()
    is_said = told.metric.endswith(_SAYS_UNIT) or told.unit.split()[-1] in words or "tps" in words
    value = _number(told.value) if is_said else f"{_number(told.value)} {unit}"
    return f"{of}{told.metric} {value} (line {told.line})"


def _meant(metric: str, value: float) -> str:
    return f"{_number(value)} {COMPARABLE[metric]}"


def _load(conditions: Mapping[str, Condition]) -> str:
    return "; ".join(_condition(key, value) for key, value in conditions.items())


def _condition(key: str, value: Condition) -> str:
    name, _, unit = CONDITIONS[key].partition(", ")
    shown = value if isinstance(value, str) else _number(value)
    return f"{name} {shown} {unit}".rstrip()


def _number(value: float) -> str:
    if value == int(value):
        return f"{value:,.0f}"
    return f"{value:,.2f}" if value >= 1 else digits_text(value)
