"""Metrics in OpenMetrics' text format 1.0: families by name, and samples of them.

Source: the OpenMetrics specification 1.0.0 (metric names, units as suffixes, `_total`, `le`,
escaping, `# EOF`), and Prometheus' conventions for names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isinf, isnan
from typing import Literal

Kind = Literal["counter", "gauge", "histogram", "info", "stateset"]


@dataclass(frozen=True, slots=True)
class Family:
    """A metric: its name without the suffixes of its samples."""

    name: str
    kind: Kind
    unit: str  # the end of the name; empty: none
    help: str  # a sentence
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of a family."""

    family: Family
    labels: tuple[str, ...]  # values, in the order of the family's names
    value: float
    suffix: str = ""  # of a histogram: bucket, count, sum
    le: float | None = None  # of a bucket


_SUFFIXES: Mapping[str, str] = {"counter": "_total", "info": "_info"}


def sample_name(family: Family, suffix: str = "") -> str:
    """The name that a sample of a family has."""
    return f"{family.name}_{suffix}" if suffix else family.name + _SUFFIXES.get(family.kind, "")


def histogram(
    family: Family, labels: tuple[str, ...], buckets: Mapping[float, int], sum_: float
) -> list[Sample]:
    """The samples of a histogram.

    Args:
        family: Of kind histogram.
        labels: Values of its labels.
        buckets: How many observations are at most as large as each bound, in rising order; the
            last bound is infinite.
        sum_: Of all observations.
    """
    found = [Sample(family, labels, count, "bucket", bound) for bound, count in buckets.items()]
    count = buckets[inf]
    return [*found, Sample(family, labels, count, "count"), Sample(family, labels, sum_, "sum")]


def exposition(samples: Iterable[Sample]) -> str:
    """The text that is scraped; samples of a family stand together."""
    by_family: dict[Family, list[Sample]] = defaultdict(list)
    for one in samples:
        by_family[one.family].append(one)
    lines: list[str] = []
    for family, found in by_family.items():
        lines.append(f"# TYPE {family.name} {family.kind}")
        if family.unit:
            lines.append(f"# UNIT {family.name} {family.unit}")
        lines.append(f"# HELP {family.name} {_escaped(family.help)}")
        lines += [_line(one) for one in found]
    return "\n".join([*lines, "# EOF", ""])


def _line(one: Sample) -> str:
    pairs = [*zip(one.family.labels, one.labels, strict=True)]
    if one.le is not None:
        pairs.append(("le", _bound(one.le)))
    labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs)
    name = sample_name(one.family, one.suffix)
    return f"{name}{{{labels}}} {_number(one.value)}" if labels else f"{name} {_number(one.value)}"


def _bound(value: float) -> str:
    """A bound as the label that it is: always a float, so that all who expose it write it alike."""
    return _number(value) if isinf(value) else repr(float(value))


def _number(value: float) -> str:
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
