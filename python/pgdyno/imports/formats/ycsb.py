"""What YCSB exports: text, or JSON of its exporters; latencies in the unit that the label names.

Old versions label milliseconds, later ones microseconds. `CLEANUP` is no operation of the load.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pgdyno.imports.format import Draft, Drafts, Format
from pgdyno.imports.numbers import printed

_LINE = re.compile(r"^\[([\w-]+)\], ([^,]{1,80}), (\S+)$")
_OBJECT = re.compile(
    r'\{\s*"metric"\s*:\s*"([\w-]+)"\s*,\s*"measurement"\s*:\s*"([^"]{1,80})"\s*,'
    r'\s*"value"\s*:\s*([^}\s]+)\s*\}'
)
_UNIT = re.compile(r"\((us|ms|ops/sec|%)\)$")
_BUCKET = re.compile(r"^>?\d+$")
_STATUS = re.compile(r"^\d{4}-\d\d-\d\d .* sec: \d+ operations;|^ ?\d+ sec: \d+ operations;")
_COMMAND = re.compile(r"(?:^Command line: .*|\bycsb(?:\.sh)? run\b.*)")
_TARGET = re.compile(r"-target[ =](\d+)")
_THREADS = re.compile(r"-threads[ =](\d+)")
_PARTS = re.compile(r'"(metric|measurement|value)"\s*:\s*("([^"]{1,80})"|[^,}\s]+)')
_CHATTER = re.compile(r"^(?:YCSB Client|Loading workload|Starting test|DBWrapper|[\[\]{}, ]+$)")


class _Reader:
    def __init__(self) -> None:
        self._drafts = Drafts()
        self._asked: dict[str, float] = {}
        self._pending: dict[str, str] = {}  # of an object over several lines

    def line(self, number: int, text: str) -> bool:
        """Take a line."""
        text = text.strip()
        if found := _LINE.match(text):
            return self._take(number, *found.groups())
        if objects := _OBJECT.findall(text):
            return all([self._take(number, *one) for one in objects])
        if parts := _PARTS.findall(text):
            return self._part(number, parts)
        if _COMMAND.search(text):
            for key, pattern in (("rate_limit_tps", _TARGET), ("clients", _THREADS)):
                if one := pattern.search(text):
                    self._asked[key] = printed(one[1])
            return True
        return bool(_STATUS.match(text) or _CHATTER.match(text))

    def _part(self, number: int, parts: list[tuple[str, str, str]]) -> bool:
        for name, value, inner in parts:
            self._pending[name] = inner or value
            if len(self._pending) == len(("metric", "measurement", "value")):
                said, self._pending = self._pending, {}
                self._take(number, said["metric"], said["measurement"], said["value"])
        return True

    def _take(self, number: int, kind: str, name: str, value: str) -> bool:
        if kind.startswith("TOTAL_GC") or name.startswith(("Time", "Count", "PercentGC")):
            return True
        if _BUCKET.match(name):
            self._draft(number).count(f"rows of the histogram of {kind[:40]}")
            return True
        if (
            name == "RunTime(ms)"
            and self._drafts
            and self._drafts[-1].told_value(name, kind) is not None
        ):
            self._drafts.append(Draft(number))
        unit = _UNIT.search(name)
        what = "operations" if unit is None else unit[1]
        self._draft(number).tell(name, printed(value), what, number, kind)
        return True

    def _draft(self, number: int) -> Draft:
        if not self._drafts:
            self._drafts.append(Draft(number))
        return self._drafts[-1]

    def finish(self) -> Sequence[Draft]:
        """The results."""
        found = [one for one in self._drafts if one.told]
        for draft in found:
            self._complete(draft)
        return found

    def _complete(self, draft: Draft) -> None:
        draft.conditions |= self._asked
        runtime_ms = draft.told_value("RunTime(ms)", "OVERALL")
        if runtime_ms is not None:
            draft.conditions["duration_s"] = runtime_ms / 1000
        else:
            draft.missing.append("[OVERALL], RunTime(ms)")
        returns = [one for one in draft.told if one.metric.startswith("Return=")]
        if returns:
            well = ("Return=0", "Return=OK")
            draft.failed = int(sum(one.value for one in returns if one.metric not in well))
        if draft.told_value("Throughput(ops/sec)", "OVERALL") is None:
            draft.missing.append("[OVERALL], Throughput(ops/sec)")


FORMAT = Format(
    tool="YCSB",
    form="export",
    signs=re.compile(
        r"^\[OVERALL\], (?:RunTime|Throughput)"
        r"|^\[[A-Z-]+\], (?:Operations|AverageLatency\(|Return=)"
        r"|\"metric\"\s*:\s*\"OVERALL\""
    ),
    reader=_Reader,
)
