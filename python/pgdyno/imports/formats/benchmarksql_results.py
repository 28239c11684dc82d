"""BenchmarkSQL's files: `result.csv` of 5 and 6, `summary.csv`, `histogram.csv`, `runInfo.csv`.

5 writes a row for each transaction, 6 a row for each kind and some seconds, under the same name:
the header tells. A row of `DELIVERY_BG` is work that a Delivery left behind, no transaction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from pgdyno.imports.buckets import Buckets
from pgdyno.imports.format import Draft, Format
from pgdyno.imports.numbers import printed, whole
from pgdyno.model.imported import Span

_HEADERS = {
    "run,elapsed,latency,dblatency,ttype,rbk,dskipped,error": "result.csv of 5",
    "ttype,second,numtrans,sumlatencyms,minlatencyms,maxlatencyms,sumdelayms,mindelayms,"
    "maxdelayms": "result.csv of 6",
    "ttype,count,percent,mean,max,rollbacks,errors": "summary.csv",
    "ttype,edge,numtrans": "histogram.csv",
}
_RUN_INFO = ("run,driver,driverVersion,", "runID,dbType,jTPCCVersion,")
_KNOWN = {
    "jTPCCVersion": "version", "driverVersion": "version", "dbType": "database", "db": "database",
    "runMins": "asked_duration_s", "rampupMins": "rampup_s", "runWarehouses": "warehouses",
    "numWarehouses": "warehouses", "numSUTThreads": "clients", "application": "statement_form",
    "run": "run", "runID": "run",
}  # fmt: skip
_BACKGROUND = "DELIVERY_BG"
_KINDS = {"NEW_ORDER", "PAYMENT", "ORDER_STATUS", "STOCK_LEVEL", "DELIVERY"}


class _Reader:
    def __init__(self) -> None:
        self._rows: _Rows | None = None

    def line(self, number: int, text: str) -> bool:
        """Take a line."""
        text = text.strip()
        if text in _HEADERS:
            self._rows = _ROWS[_HEADERS[text]](number, _HEADERS[text])
            return True
        if text.startswith(_RUN_INFO):
            self._rows = _RunInfo(number, "runInfo.csv", text.split(","))
            return True
        if self._rows is None or not text:
            return False
        return self._rows.row(number, text.split(","))

    def finish(self) -> Sequence[Draft]:
        """The result, if there is a row."""
        return [] if self._rows is None or self._rows.is_empty else [self._rows.finish()]


class _Rows:
    """Rows of one file."""

    def __init__(self, number: int, form: str) -> None:
        self.draft = Draft(number, form=form)
        self.is_empty = True

    def row(self, number: int, cells: list[str]) -> bool:
        """Take a row; whether it is one."""
        raise NotImplementedError

    def finish(self) -> Draft:
        """The result."""
        return self.draft


class _EachTransaction(_Rows):
    """`result.csv` of 5: run, elapsed (ms), latency (ms), dblatency (ms), kind, flags."""

    def __init__(self, number: int, form: str) -> None:
        super().__init__(number, form)
        self._ended: dict[str, int] = {}
        self._not_committed: dict[str, int] = {}
        self._failed = self._rolled_back = self._last_ms = 0
        self._buckets = Buckets()

    def row(self, number: int, cells: list[str]) -> bool:
        """Count a transaction."""
        if len(cells) != 8 or cells[4] not in _KINDS | {_BACKGROUND}:
            return False
        elapsed, latency = int(printed(cells[1])), printed(cells[2])
        rolled_back, failed = cells[5] != "0", cells[7] != "0"
        self.is_empty = False
        self.draft.last_line = number
        if cells[4] == _BACKGROUND:
            self.draft.count("rows of DELIVERY_BG, left out")
            return True
        kind = cells[4]
        self._ended[kind] = self._ended.get(kind, 0) + 1
        self._last_ms = max(self._last_ms, elapsed)
        self._failed += failed
        self._rolled_back += rolled_back and not failed
        if rolled_back or failed:
            self._not_committed[kind] = self._not_committed.get(kind, 0) + 1
        self._buckets.add(latency * 1000)
        return True

    def finish(self) -> Draft:
        """Rates over the time of the last row."""
        draft = self.draft
        draft.failed = self._failed
        draft.counts |= {f"rows of {kind}": count for kind, count in sorted(self._ended.items())}
        draft.counts["rows of transactions that rolled back"] = self._rolled_back
        draft.latencies = self._buckets.latencies()
        draft.conditions["keying_and_thinking"] = "none"
        if self._last_ms > 0:
            minutes = self._last_ms / 60_000
            draft.conditions["duration_s"] = self._last_ms / 1000
            ended = self._ended.get("NEW_ORDER", 0)
            committed = ended - self._not_committed.get("NEW_ORDER", 0)
            draft.compare("nopm_ended", ended / minutes, "rows of NEW_ORDER")
            draft.compare("nopm_committed", committed / minutes, "rows without rbk and error")
            draft.compare("tpm_all_ended", sum(self._ended.values()) / minutes, "rows")
        return draft


class _EachInterval(_Rows):
    """`result.csv` of 6: sums of a kind over some seconds."""

    def __init__(self, number: int, form: str) -> None:
        super().__init__(number, form)
        self._sums: dict[str, int] = {}
        self._seconds: set[int] = set()

    def row(self, number: int, cells: list[str]) -> bool:
        """Add an interval."""
        if len(cells) != 9 or cells[0] not in _KINDS | {_BACKGROUND}:
            return False
        second, count = whole(cells[1]), whole(cells[2])
        self.is_empty = False
        self.draft.last_line = number
        self._sums[cells[0]] = self._sums.get(cells[0], 0) + count
        if count and len(self._seconds) < 1_000_000:
            self._seconds.add(second)
        return True

    def finish(self) -> Draft:
        """Counts; rates only where an interval is known."""
        draft = self.draft
        draft.version = draft.version or "6"
        draft.counts |= {f"transactions of {kind}": n for kind, n in sorted(self._sums.items())}
        marks = sorted(self._seconds)
        step = min((b - a for a, b in pairwise(marks)), default=0)
        duration = marks[-1] - marks[0] + step if step else 0
        if duration > 0:
            draft.conditions["duration_s"] = float(duration)
            minutes = duration / 60
            ended = {kind: n for kind, n in self._sums.items() if kind != _BACKGROUND}
            draft.compare(
                "nopm_ended", ended.get("NEW_ORDER", 0) / minutes, "numtrans of NEW_ORDER"
            )
            draft.compare(
                "tpm_all_ended", sum(ended.values()) / minutes, "numtrans, no DELIVERY_BG"
            )
        return draft


class _Summary(_Rows):
    """`summary.csv` of 6: a row for each kind; latencies in seconds."""

    def row(self, number: int, cells: list[str]) -> bool:
        """Keep a kind as it is told."""
        if len(cells) != 7 or not re.fullmatch(r"[A-Z_]{3,20}", cells[0]):
            return False
        kind = cells[0]
        values = [printed(one) for one in cells[1:]]
        units = ("transactions", "%", "s", "s", "transactions", "transactions")
        names = ("count", "percent", "mean", "max", "rollbacks", "errors")
        for name, value, unit in zip(names, values, units, strict=True):
            self.draft.tell(name, value, unit, number, kind)
        if kind in _KINDS:
            self.draft.failed = (self.draft.failed or 0) + int(values[5])
        self.is_empty = False
        return True

    def finish(self) -> Draft:
        """The result; no duration is told here."""
        self.draft.version = "6"
        return self.draft


class _Histogram(_Rows):
    """`histogram.csv` of 6: lower edges in seconds of buckets that are 1.3% wide."""

    def __init__(self, number: int, form: str) -> None:
        super().__init__(number, form)
        self._kinds: dict[str, Buckets] = {}

    def row(self, number: int, cells: list[str]) -> bool:
        """Add a bucket."""
        if len(cells) != 3 or cells[0] not in _KINDS | {_BACKGROUND}:
            return False
        edge, count = printed(cells[1]), whole(cells[2])
        self.is_empty = False
        self.draft.last_line = number
        self._kinds.setdefault(cells[0], Buckets()).add(edge * 1e6, count)
        return True

    def finish(self) -> Draft:
        """The distribution of New-Orders; counts of the others."""
        self.draft.version = "6"
        for kind, buckets in self._kinds.items():
            self.draft.counts[f"transactions of {kind}"] = buckets.total
        if "NEW_ORDER" in self._kinds:
            self.draft.latencies = self._kinds["NEW_ORDER"].latencies(0.013)
        return self.draft


class _RunInfo(_Rows):
    """`runInfo.csv`: how the run was asked for."""

    def __init__(self, number: int, form: str, header: list[str]) -> None:
        super().__init__(number, form)
        self._header = header

    def row(self, number: int, cells: list[str]) -> bool:
        """Take the one row."""
        if len(cells) != len(self._header):
            return False
        draft, told = self.draft, dict(zip(self._header, cells, strict=True))
        draft.last_line, self.is_empty = number, False
        for name, key in _KNOWN.items():
            if name not in told:
                continue
            if key == "version":
                draft.version = told[name]
            elif key.endswith("_s"):
                draft.conditions[key] = printed(told[name]) * 60
            elif key in ("warehouses", "clients", "run"):
                draft.conditions[key] = printed(told[name])
            else:
                draft.conditions[key] = told[name]
        draft.conditions["keying_and_thinking"] = _pauses(draft.version, told)
        draft.span = _span(told.get("sessionStart"), draft.conditions.get("asked_duration_s"))
        return True


def _pauses(version: str | None, told: dict[str, str]) -> str:
    """How long terminals key and think; 5 writes multipliers, and does neither."""
    if version is None or not version.startswith("6"):
        return "none"
    keying, thinking = (told.get(f"{name}TimeMultiplier") for name in ("keying", "think"))
    return f"{keying} and {thinking} of the text's" if keying and thinking else "unknown"


def _span(start: str | None, asked_s: object) -> Span | None:
    if not start or not isinstance(asked_s, float) or asked_s <= 0:
        return None
    try:
        begin = datetime.fromisoformat(start).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
    return Span(begin, begin + asked_s, "local", 1.0)


_ROWS: dict[str, Callable[[int, str], _Rows]] = {
    "result.csv of 5": _EachTransaction, "result.csv of 6": _EachInterval,
    "summary.csv": _Summary, "histogram.csv": _Histogram,
}  # fmt: skip
FORMAT = Format(
    tool="BenchmarkSQL",
    form="files",
    signs=re.compile("^(?:" + "|".join(map(re.escape, (*_HEADERS, *_RUN_INFO))) + ")"),
    reader=_Reader,
)
