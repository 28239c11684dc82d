"""What sysbench 0.5 to 1.1 prints: its summary, its intervals as text, CSV or JSON.

Latencies are milliseconds; of percentiles there is one, which `--percentile` chose. The output does
not name the script: the command may, where a person kept it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pgdyno.imports.format import Draft, Drafts, Format
from pgdyno.imports.numbers import printed, whole

_BANNER = re.compile(r"^sysbench (\d[\w.+-]*)(?: \(|:)")
_INTERVAL = re.compile(
    r"^\[\s*([\d.,]+)s?\s*\] (?:thds: (\d+) tps: ([\d.,]+)|threads: (\d+), tps: ([\d.,]+),)(.*)"
)
_PERCENT = re.compile(r"\(ms,\s*(\d+)%\): ([\d.,]+)")
_COUNTED = re.compile(
    r"^\s+(transactions|deadlocks|read/write requests|other operations|queries|ignored errors"
    r"|reconnects):"
    r"\s+(\d+)\s+\(([\d.,]+) per sec\.\)"
)
_EVENTS = re.compile(r"^\s+(?:events/s|events per second)(?: \(eps\))?:\s+([\d.,]+)")
_TIME = re.compile(r"^\s+(?:total time|time elapsed):\s+([\d.,]+)s")
_NUMBER_OF_EVENTS = re.compile(r"^\s+total number of events:\s+(\d+)")
_LATENCY = re.compile(
    r"^\s+(min|avg|max|sum|approx\.\s+(\d+) percentile|(\d+)th percentile):\s+([\d.,]+)"
)
_QUERIES = re.compile(r"^\s+(read|write|other|total):\s+(\d+)")
_TAKEN = re.compile(r"^\s+total time taken by event execution:\s+([\d.,]+)s?$")
_QUEUE = re.compile(r"^\[\s*([\d.,]+)s?\s*\] queue length: (\d+), concurrency: (\d+)$")
_RATE = re.compile(r"^Target transaction rate: ([\d.,]+)/sec$")
_THREADS = re.compile(r"^Number of threads: (\d+)")
_CSV = re.compile(r"^\d+,\d+(?:,\d+\.\d\d){8}$")
_COMMAND = re.compile(r"(?:^|[\s/])sysbench\s.*?([\w./-]*?(\w+))(?:\.lua)?\s.*\brun\b")
_SCALE = re.compile(r"--scale[= ](\d+)")
_TABLES = re.compile(r"--tables[= ](\d+)")
_HISTOGRAM = re.compile(r"^\s*[\d.]+ \|\**\s+\d+$")
_CHATTER = re.compile(
    r"^(?:Running the test|Initializing|Threads started|SQL statistics|General statistics"
    r"|Latency \(|Threads fairness|\s+(?:queries performed|events \(avg|execution time)|Report "
    r"|Random number|OLTP test statistics|Test execution summary|Throughput:|Latency histogram"
    r"|\s+value |\s+response time:|FATAL|WARNING|DB SCHEMA)"
)
_JSON = re.compile(r'^\s*(?:[\[\]{},]+|"(\w+)":\s*([\d.]+|\{),?|\},?)\s*$')
_JSON_KEYS = {"tps": "1/s", "latency": "ms", "errors": "1/s"}


class _Reader:
    def __init__(self) -> None:
        self._drafts = Drafts()
        self._open: Draft | None = None
        self._script: str | None = None
        self._asked: dict[str, float] = {}
        self._json: dict[str, float] = {}

    def line(self, number: int, text: str) -> bool:
        """Take a line."""
        for take in (self._head, self._interval, self._summary, self._structured):
            if take(number, text):
                return True
        return bool(_CHATTER.match(text) or _HISTOGRAM.match(text))

    def _result(self, number: int) -> Draft:
        if self._open is None:
            self._open = Draft(number)
            self._drafts.append(self._open)
            if self._script is not None:
                self._open.conditions["transaction_type"] = self._script
            self._open.conditions |= self._asked
            self._script, self._asked = None, {}
        return self._open

    def _head(self, number: int, text: str) -> bool:
        if found := _COMMAND.search(text):
            self._open, self._script = None, found[2]
            tables = float(one[1]) if (one := _TABLES.search(text)) else None
            if scale := _SCALE.search(text):
                self._asked = {"warehouses": printed(scale[1]) * (tables or 1)}
            return True
        if found := _BANNER.match(text):
            self._open = None
            self._result(number).version = found[1]
            return True
        if found := _THREADS.match(text):
            self._result(number).conditions["clients"] = whole(found[1])
            return True
        if found := _RATE.match(text):
            self._result(number).conditions["rate_limit_tps"] = printed(found[1])
            return True
        return False

    def _interval(self, number: int, text: str) -> bool:
        if queue := _QUEUE.match(text):  # only where a rate is asked for
            draft, at = self._result(number), f"{printed(queue[1]):g} s"
            draft.tell("interval queue length", whole(queue[2]), "transactions", number, at)
            draft.tell("interval concurrency", whole(queue[3]), "transactions", number, at)
            return True
        found = _INTERVAL.match(text)
        if found is None:
            return False
        draft = self._result(number)
        at = f"{printed(found[1]):g} s"
        threads, tps = (found[2], found[3]) if found[2] else (found[4], found[5])
        draft.conditions.setdefault("clients", whole(threads))
        draft.tell("interval tps", printed(tps), "1/s", number, at)
        if percent := _PERCENT.search(found[6]):
            draft.conditions["percentile"] = whole(percent[1])
            draft.tell("interval latency", printed(percent[2]), "ms", number, at)
        return True

    def _summary(self, number: int, text: str) -> bool:
        if found := _COUNTED.match(text):
            name = found[1]
            draft = self._result(number)
            draft.tell(name, whole(found[2]), name, number)
            draft.tell(f"{name} per sec.", printed(found[3]), "1/s", number)
        elif found := _EVENTS.match(text):
            self._result(number).tell("events per second", printed(found[1]), "1/s", number)
        elif found := _TIME.match(text):
            self._result(number).conditions["duration_s"] = printed(found[1])
        elif found := _NUMBER_OF_EVENTS.match(text):
            self._result(number).tell("total number of events", whole(found[1]), "events", number)
        elif found := _LATENCY.match(text):
            draft = self._result(number)
            if percent := found[2] or found[3]:
                draft.conditions["percentile"] = whole(percent)
            draft.tell(f"latency {found[1]}", printed(found[4]), "ms", number)
        elif found := _TAKEN.match(text):
            self._result(number).tell("latency sum", 1_000 * printed(found[1]), "ms", number)
        elif found := _QUERIES.match(text):
            self._result(number).tell(f"queries {found[1]}", whole(found[2]), "queries", number)
        else:
            return False
        return True

    def _structured(self, number: int, text: str) -> bool:
        if _CSV.match(text):
            cells = [printed(one) for one in text.split(",")]
            draft = self._result(number)
            draft.form = "CSV"
            self._of_interval(draft, number, cells[0], cells[1], cells[2])
            draft.tell("interval latency", cells[7], "ms", number, f"{cells[0]:g} s")
            draft.tell("interval errors", cells[8], "1/s", number, f"{cells[0]:g} s")
            return True
        found = _JSON.match(text)
        if found is None:
            return False
        if found[1] is None or found[2] == "{":
            return True
        self._json[found[1]] = printed(found[2])
        if found[1] == "reconnects" and {"time", "threads", "tps"} <= self._json.keys():
            draft = self._result(number)
            draft.form, seen = "JSON", self._json
            self._of_interval(draft, number, seen["time"], seen["threads"], seen["tps"])
            for name, unit in _JSON_KEYS.items():
                if name in seen and name != "tps":
                    draft.tell(f"interval {name}", seen[name], unit, number, f"{seen['time']:g} s")
            self._json = {}
        return True

    @staticmethod
    def _of_interval(draft: Draft, number: int, at_s: float, threads: float, tps: float) -> None:
        draft.conditions.setdefault("clients", threads)
        draft.tell("interval tps", tps, "1/s", number, f"{at_s:g} s")

    def finish(self) -> Sequence[Draft]:
        """The results."""
        found = [one for one in self._drafts if one.told]
        for draft in found:
            _complete(draft)
        return found


def _complete(draft: Draft) -> None:
    count, duration = draft.told_value("transactions"), draft.conditions.get("duration_s")
    if count is not None and isinstance(duration, float) and duration > 0:
        draft.compare("tps", count / duration, "transactions by total time")
    elif (told := draft.told_value("transactions per sec.")) is not None:
        draft.compare("tps", told, "transactions per sec.")
    else:
        draft.missing.append("the summary: only intervals are there")
        each = [one.value for one in draft.told if one.metric == "interval tps"]
        if each:
            draft.compare("tps", sum(each) / len(each), "mean of the intervals")
    errors = draft.told_value("ignored errors")
    draft.failed = int(errors) if errors is not None else None
    if draft.conditions.get("transaction_type") == "tpcc":
        draft.conditions["keying_and_thinking"] = "none"


FORMAT = Format(
    tool="sysbench",
    form="text",
    signs=re.compile(
        r"^\[\s*[\d.,]+s?\s*\] (?:thds: \d+ tps|threads: \d+, tps)|^sysbench \d[\w.+-]*(?: \(|:)"
        r"|^\s+transactions:\s+\d+\s+\([\d.,]+ per sec\.\)|^\s+\"reconnects\": [\d.]+"
    ),
    reader=_Reader,
    first_line=_CSV,
)
