"""What an importer is: how its output is known, and what reads it line by line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from pgdyno.model.imported import (
    Comparable,
    Condition,
    Imported,
    Latencies,
    Source,
    Span,
    Told,
)
from pgdyno.model.scrub import scrubbed

TOLD_MAX = 5000  # figures of one result that are kept; more are counted
RESULTS_MAX = 1000  # of one file
_TEXT_MAX = 200  # characters of a name or a condition; no tool has longer ones


class TooManyError(Exception):
    """A file holds more than `RESULTS_MAX` results."""


class Reader(Protocol):
    """Reads one file, a line after the other, in bounded memory."""

    def line(self, number: int, text: str) -> bool:
        """Take a line; whether it is of this format.

        Raises:
            ValueError: It is, and holds what cannot be read.
        """

    def finish(self) -> Sequence[Draft]:
        """What was read: the results in their order."""


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of output of a tool."""

    tool: str
    form: str  # which output: console, result.csv, …
    signs: re.Pattern[str]
    """Matches a line that no other tool prints."""
    reader: Callable[[], Reader]
    first_line: re.Pattern[str] | None = None
    """Of outputs without words of their own: matches their first line that is not empty."""


@dataclass(slots=True)
class Draft:
    """A result while it is read."""

    line: int  # where it begins
    version: str | None = None
    form: str | None = None  # None: as the format says
    told: list[Told] = field(default_factory=list)
    comparable: list[Comparable] = field(default_factory=list)
    conditions: dict[str, Condition] = field(default_factory=dict)
    failed: int | None = None
    span: Span | None = None
    latencies: Latencies | None = None
    counts: dict[str, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    last_line: int = 0

    def tell(self, metric: str, value: float, unit: str, line: int, of: str | None = None) -> None:
        """Keep a figure as it was told."""
        self.last_line = max(self.last_line, line)
        if len(self.told) < TOLD_MAX:
            self.told.append(Told(metric[:_TEXT_MAX], value, unit, line, of and of[:_TEXT_MAX]))
        else:
            self.count("figures that were not kept")

    def told_value(self, metric: str, of: str | None = None) -> float | None:
        """A figure that was told, or None."""
        found = (one.value for one in self.told if one.metric == metric and one.of == of)
        return next(found, None)

    def compare(self, metric: str, value: float | None, how: str) -> None:
        """Give a figure a name that tools share, unless it is unknown."""
        if value is not None:
            self.comparable.append(Comparable(metric, value, how))

    def count(self, what: str, times: int = 1) -> None:
        """Add to what was counted."""
        self.counts[what] = self.counts.get(what, 0) + times

    def finished(self, of: Format, source: Source) -> Imported:
        """The result, of whose texts none is long or holds what may be a password."""
        told = [
            replace(one, metric=scrubbed(one.metric), of=one.of and scrubbed(one.of))
            for one in self.told
        ]
        return Imported(
            tool=of.tool, version=self.version and _kept(self.version),
            form=self.form or of.form, source=source, told=tuple(told),
            comparable=tuple(self.comparable),
            conditions={
                key: _kept(one) if isinstance(one, str) else one
                for key, one in self.conditions.items()
            },
            failed=self.failed, span=self.span, latencies=self.latencies,
            counts={_kept(what): count for what, count in self.counts.items()},
            missing=tuple(map(_kept, self.missing)),
        )  # fmt: skip


def _kept(text: str) -> str:
    return scrubbed(text[:_TEXT_MAX])


class Drafts(list[Draft]):
    """The results of a file as they begin: of a file of any length in bounded memory."""

    def append(self, draft: Draft, /) -> None:
        """Begin one more.

        Raises:
            TooManyError: There are `RESULTS_MAX`.
        """
        if len(self) >= RESULTS_MAX:
            raise TooManyError
        super().append(draft)
