"""DBT-2's `mix.log`: a line for each transaction; times are whole seconds of the driver's host.

`time,kind,code,response time (s),thread,warehouse,district`; code C committed, R rolled back, E
failed. The window is that of the drivers' START and TERMINATED, where they are told.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pgdyno.imports.buckets import Buckets
from pgdyno.imports.format import Draft, Format
from pgdyno.imports.numbers import printed
from pgdyno.model.imported import Span

_ROW = r"\d{1,11},[dnops],[CRE],\d+(?:\.\d+)?,-?\d+,\d+,\d+$"
_MARK = r"\d{1,11},(?:START|TERMINATED),,,-?\d*,,$"
_EITHER = re.compile(f"{_ROW}|{_MARK}")
_KINDS = {
    "d": "Delivery",
    "n": "New-Order",
    "o": "Order-Status",
    "p": "Payment",
    "s": "Stock-Level",
}
_WAREHOUSES_MAX = 1_000_000


class _Reader:
    def __init__(self) -> None:
        self._first: int | None = None
        self._last_line = 0
        self._begin: float | None = None  # of the latest driver
        self._end: float | None = None  # of the earliest one
        self._seen: list[float] = []  # least and greatest time of a row
        self._codes: dict[tuple[str, str], int] = {}
        self._warehouses: set[str] = set()
        self._threads: set[str] = set()
        self._buckets = Buckets()

    def line(self, number: int, text: str) -> bool:
        """Take a line."""
        text = text.strip()
        if _EITHER.match(text) is None:
            return False
        cells = text.split(",")
        at = printed(cells[0])
        self._first = self._first or number
        self._last_line = number
        if cells[1] == "START":
            self._begin = at if self._begin is None else max(self._begin, at)
        elif cells[1] == "TERMINATED":
            # The last terminal of each ends it; the earliest end is that of the window.
            self._end = at if self._end is None else min(self._end, at)
        else:
            self._row(at, cells)
        return True

    def _row(self, at: float, cells: list[str]) -> None:
        kind, code = cells[1], cells[2]
        self._codes[kind, code] = self._codes.get((kind, code), 0) + 1
        self._seen = [min(at, *self._seen), max(at, *self._seen)] if self._seen else [at, at]
        self._buckets.add(printed(cells[3]) * 1e6)
        if len(self._warehouses) < _WAREHOUSES_MAX:
            self._warehouses.add(cells[5])
        if len(self._threads) < _WAREHOUSES_MAX:
            self._threads.add(cells[4])

    def finish(self) -> Sequence[Draft]:
        """The result."""
        if self._first is None or not self._codes:
            return []
        draft = Draft(self._first, last_line=self._last_line)
        for (kind, code), count in sorted(self._codes.items()):
            draft.counts[f"rows of {_KINDS[kind]}, code {code}"] = count
        draft.failed = sum(n for (_, code), n in self._codes.items() if code == "E")
        draft.latencies = self._buckets.latencies()
        draft.conditions["clients"] = len(self._threads)
        draft.counts["warehouses with rows"] = len(self._warehouses)
        begin, end = self._window(draft)
        if end > begin:
            minutes = (end - begin) / 60
            draft.span = Span(begin, end, "UTC", 1.0)
            draft.conditions["duration_s"] = end - begin
            orders = {c: n for (kind, c), n in self._codes.items() if kind == "n"}
            draft.compare("nopm_committed", orders.get("C", 0) / minutes, "rows n with code C")
            draft.compare("nopm_ended", sum(orders.values()) / minutes, "rows n")
            draft.compare("tpm_all_ended", sum(self._codes.values()) / minutes, "rows")
        return [draft]

    def _window(self, draft: Draft) -> tuple[float, float]:
        if self._begin is None:
            draft.missing.append("START: the ramp-up cannot be told from the window")
        if self._end is None:
            draft.missing.append("TERMINATED: it may be cut short")
        begin = self._seen[0] if self._begin is None else self._begin
        return begin, self._seen[1] if self._end is None else self._end


FORMAT = Format(
    tool="DBT-2", form="mix.log", signs=re.compile(f"^(?:{_ROW}|{_MARK})"), reader=_Reader
)
