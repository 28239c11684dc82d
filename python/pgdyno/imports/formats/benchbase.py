"""BenchBase's (OLTP-Bench's) files: `*.summary.json` and `*.raw.csv`.

A raw row begins with seconds of six decimals, although its heading says microseconds; under another
locale their comma makes a further column. Latencies are microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pgdyno.imports.buckets import Buckets
from pgdyno.imports.format import Draft, Drafts, Format
from pgdyno.imports.numbers import printed
from pgdyno.model.imported import Span
from pgdyno.model.numbers import finite
from pgdyno.model.record_json import json_value

_HEADER = re.compile(
    r'^"?Transaction (?:Type Index"?,"?Transaction Name"?,|type \(index in config file\))'
)
_JSON_MAX = 1 << 20
_CLOSED = re.compile(r"^\}\s*$")
_CONDITIONS = {"scalefactor": "warehouses", "terminals": "clients"}
_RATES = ("Throughput (requests/second)", "Goodput (requests/second)")
_COLUMNS = 6


class _Reader:
    def __init__(self) -> None:
        self._raw: _Raw | None = None
        self._json: list[str] = []
        self._size = 0
        self._begin = 0
        self._drafts = Drafts()

    def line(self, number: int, text: str) -> bool:
        """Take a line."""
        if _HEADER.match(text):
            self._raw = _Raw(number)
            return True
        if self._raw is not None:
            return self._raw.row(number, text)
        if not self._json and not text.startswith("{"):
            return False
        self._begin = self._begin or number
        self._json.append(text)
        self._size += len(text)
        if self._size > _JSON_MAX:
            self._json = []
            raise ValueError("a summary that is too long for one")
        if _CLOSED.match(text) or (len(self._json) == 1 and text.rstrip().endswith("}")):
            self._summary(number)
        return True

    def _summary(self, number: int) -> None:
        text, begin = "\n".join(self._json), self._begin
        self._json, self._begin, self._size = [], 0, 0
        try:
            said = json_value(text)
        except ValueError:
            raise ValueError("a summary that is no JSON") from None
        if isinstance(said, dict):
            self._drafts.append(_of_summary(said, begin, number))

    def finish(self) -> Sequence[Draft]:
        """The results."""
        raw = [] if self._raw is None else self._raw.finish()
        return [*(one for one in self._drafts if one.told), *raw]


def _of_summary(said: dict[str, Any], begin: int, number: int) -> Draft:
    draft = Draft(begin, form="summary.json", last_line=number)
    for name, unit in ((_RATES[0], "1/s"), (_RATES[1], "1/s"), ("Measured Requests", "requests")):
        if name in said:
            draft.tell(name, finite(said[name]), unit, number)
    latencies = said.get("Latency Distribution")
    for name, value in latencies.items() if isinstance(latencies, dict) else ():
        if str(name).endswith("(microseconds)"):
            draft.tell(str(name)[:80], finite(value), "us", number)
    _conditions(draft, said)
    draft.compare("tps", draft.told_value(_RATES[1]), _RATES[1])
    draft.missing += [name for name in _RATES if draft.told_value(name) is None]
    return draft


def _conditions(draft: Draft, said: dict[str, Any]) -> None:
    for name, key in _CONDITIONS.items():
        if name in said:
            draft.conditions[key] = finite(_number(said[name]))
    for name, key in (("Benchmark Type", "transaction_type"), ("isolation", "isolation")):
        if name in said:
            draft.conditions[key] = str(said[name])[:80]
    server = [str(said[name])[:80] for name in ("DBMS Type", "DBMS Version") if said.get(name)]
    if server:
        draft.conditions["database"] = " ".join(server)
    if "Elapsed Time (nanoseconds)" in said:
        draft.conditions["duration_s"] = finite(said["Elapsed Time (nanoseconds)"]) / 1e9


def _number(value: object) -> object:
    return printed(value) if isinstance(value, str) else value


class _Raw:
    """A row for each transaction: index, name, start (s), latency (µs), worker, phase."""

    def __init__(self, number: int) -> None:
        self._draft = Draft(number, form="raw.csv")
        self._kinds: dict[str, int] = {}
        self._workers: set[str] = set()
        self._begin: float | None = None
        self._end = 0.0
        self._buckets = Buckets()

    def row(self, number: int, text: str) -> bool:
        """Count a transaction."""
        cells = [cell.strip().strip('"') for cell in text.split(",")]
        if len(cells) == _COLUMNS + 1:  # the decimal comma of a start
            cells[2:4] = [f"{cells[2]}.{cells[3]}"]
        if len(cells) != _COLUMNS or not cells[0].isdigit():
            return False
        start_s, latency_us = printed(cells[2]), printed(cells[3])
        if cells[1] in self._kinds or len(self._kinds) < 100:
            self._kinds[cells[1]] = self._kinds.get(cells[1], 0) + 1
        if len(self._workers) < 100_000:
            self._workers.add(cells[4])
        self._begin = start_s if self._begin is None else min(self._begin, start_s)
        self._end = max(self._end, start_s + latency_us / 1e6)
        self._buckets.add(latency_us)
        self._draft.last_line = number
        return True

    def finish(self) -> list[Draft]:
        """Counts, and rates from the first start to the last end; nobody told which failed."""
        draft = self._draft
        if self._begin is None:
            return []
        draft.counts |= {f"rows of {kind[:40]}": n for kind, n in sorted(self._kinds.items())}
        draft.conditions["clients"] = len(self._workers)
        draft.latencies = self._buckets.latencies()
        if (duration_s := self._end - self._begin) > 0:
            draft.conditions["duration_s"] = duration_s
            draft.span = Span(self._begin, self._end, "UTC", 1e-3)
            if "NewOrder" in self._kinds:
                orders = self._kinds["NewOrder"] / duration_s * 60
                draft.compare("nopm_ended", orders, "rows of NewOrder")
                every = sum(self._kinds.values()) / duration_s * 60
                draft.compare("tpm_all_ended", every, "rows")
        return [draft]


FORMAT = Format(
    tool="BenchBase",
    form="files",
    signs=re.compile(
        _HEADER.pattern + r'|"(?:Throughput|Goodput) \(requests/second\)"|^\s*"Measured Requests":'
    ),
    reader=_Reader,
)
