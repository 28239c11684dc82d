"""pgbench's files of `--log`: a line for each transaction, or for each `--aggregate-interval`.

Times are microseconds, counted by the client; the instant is that of the end. Aggregates: to 14,
columns that were not asked for are missing; from 15 all are there, lag before failures.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from pgdyno.imports.buckets import Buckets
from pgdyno.imports.format import Draft, Format
from pgdyno.imports.numbers import integer
from pgdyno.model.imported import Span
from pgdyno.model.wording import plural

_EPOCH_MIN, _EPOCH_MAX = 10**8, 10**11  # seconds; what lies outside was no time
_WORDS = ("failed", "serialization", "deadlock")
_ROW = r"\d+ \d+ (?:\d+|failed|skipped|serialization|deadlock) \d+ \d{9,11} \d{1,6}(?: \d+){0,2}$"
_INTERVAL = r"\d{9,11} \d+ \d+ \d+ \d+ \d+(?: \d+){0,10}$"
_SHAPE = re.compile(f"(?:{_ROW}|{_INTERVAL})")
_COLUMNS_15 = 15  # of an aggregate, from that version on
_TOOK_MAX_US = 10**14  # three years
_SUM_MAX = 10**30  # of squares


class _Reader:
    def __init__(self) -> None:
        self._log: _Transactions | _Aggregates | None = None
        self._first = 0

    def line(self, number: int, text: str) -> bool:
        """Take a line."""
        cells = text.split(" ")
        if self._log is None:
            if _SHAPE.match(text) is None:
                return False
            is_row = re.match(_ROW, text) is not None and len(cells) <= 8
            self._log = _Transactions(number) if is_row else _Aggregates(number)
        return self._log.row(number, cells)

    def finish(self) -> Sequence[Draft]:
        """The result."""
        return [] if self._log is None else self._log.finish()


class _Transactions:
    """client, transaction, time (µs) or a word, script, seconds, microseconds [lag] [retries]."""

    def __init__(self, number: int) -> None:
        self._draft = Draft(number, form="log")
        self._scripts: dict[str, int] = {}
        self._clients: set[str] = set()
        self._words: dict[str, int] = {}
        self._buckets = Buckets()
        self._sum_us = self._ended = 0
        self._begin_us: int | None = None
        self._end_us = 0

    def row(self, number: int, cells: list[str]) -> bool:
        """Count a transaction."""
        if not 6 <= len(cells) <= 8:
            return False
        client, _, time, script, seconds, microseconds = cells[:6]
        at_s = integer(seconds, _EPOCH_MAX)
        at_us = at_s * 1_000_000 + integer(microseconds, 999_999)
        if at_s < _EPOCH_MIN:
            raise ValueError(f"{seconds} is no instant")
        if time in _WORDS or time == "skipped":
            self._words[time] = self._words.get(time, 0) + 1
            return True
        took_us = integer(time, _TOOK_MAX_US)
        self._draft.last_line = number
        if len(self._clients) < 100_000:
            self._clients.add(client)
        if script in self._scripts or len(self._scripts) < 1000:
            self._scripts[script] = self._scripts.get(script, 0) + 1
        self._ended += 1
        self._sum_us += took_us
        self._buckets.add(took_us)
        begin_us = at_us - took_us
        if self._begin_us is None or begin_us < self._begin_us:
            self._begin_us = begin_us
        self._end_us = max(self._end_us, at_us)
        return True

    def finish(self) -> list[Draft]:
        """Rate over the time from the first begin to the last end."""
        draft = self._draft
        if not self._ended or self._begin_us is None:
            return []
        draft.counts["transactions"] = self._ended
        draft.counts |= {f"transactions of script {n}": c for n, c in sorted(self._scripts.items())}
        draft.counts |= {f"lines with the word {word}": n for word, n in self._words.items()}
        draft.failed = sum(n for word, n in self._words.items() if word != "skipped")
        duration_s = (self._end_us - self._begin_us) / 1e6
        draft.conditions["clients"] = len(self._clients)
        draft.latencies = self._buckets.latencies()
        if duration_s > 0:
            draft.conditions["duration_s"] = duration_s
            draft.span = Span(self._begin_us / 1e6, self._end_us / 1e6, "UTC", 1e-6)
            draft.compare("tps", self._ended / duration_s, "lines with a time")
        return [draft]


class _Aggregates:
    """interval, transactions, sum and sum of squares, least and greatest, [lag …] [failures …]."""

    def __init__(self, number: int) -> None:
        self._draft = Draft(number, form="aggregated log")
        self._marks: list[int] = []
        self._counts: list[int] = []
        self._sum_us = self._count = self._failed = self._skipped = 0
        self._columns = 0

    def row(self, number: int, cells: list[str]) -> bool:
        """Add an interval."""
        if len(cells) < 6:
            return False
        values = [integer(one, _SUM_MAX) for one in cells]
        if not _EPOCH_MIN <= values[0] <= _EPOCH_MAX:
            raise ValueError("it holds no interval")
        self._columns = self._columns or len(values)
        if len(values) != self._columns:
            raise ValueError(f"{plural(len(values), 'column')} after {self._columns}")
        self._draft.last_line = number
        if len(self._marks) < 1_000_000:
            self._marks.append(values[0])
            self._counts.append(values[1])
        self._count += values[1]
        self._sum_us += values[2]
        if len(values) >= 11:
            self._skipped += values[10]
        if len(values) >= _COLUMNS_15:
            self._failed += values[13] + values[14]
        return True

    def finish(self) -> list[Draft]:
        """Rates of whole intervals: the first began with the load, the last is never written."""
        draft = self._draft
        draft.counts["intervals"] = len(self._marks)
        draft.counts["transactions"] = self._count
        if self._skipped:
            draft.counts["transactions skipped"] = self._skipped
        if self._columns >= _COLUMNS_15:
            draft.version, draft.failed = "15 or newer", self._failed
        else:
            draft.version = "14 or older"
        if self._count:
            mean_ms = self._sum_us / self._count / 1000
            draft.tell("latency average", mean_ms, "ms", draft.last_line)
        step = min((b - a for a, b in pairwise(self._marks)), default=0)
        whole = self._counts[1:]
        if step > 0 and whole:
            duration_s = float(step * len(whole))
            draft.conditions["duration_s"] = duration_s
            draft.span = Span(float(self._marks[1]), self._marks[1] + duration_s, "UTC", step)
            draft.compare("tps", sum(whole) / duration_s, "whole intervals")
        return [draft]


FORMAT = Format(
    tool="pgbench",
    form="log",
    signs=re.compile(r"(?!)"),  # it has no words of its own
    reader=_Reader,
    first_line=_SHAPE,
)
