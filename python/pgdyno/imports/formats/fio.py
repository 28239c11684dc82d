"""What fio 2 and 3 print of each group of jobs: requests and bytes a second, and how long it ran.

A disk's requests are no transactions, so nothing of it is set beside a database's throughput. What
was asked for is read where the command or the job file stands above the output.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pgdyno.imports.format import Draft, Drafts, Format
from pgdyno.imports.numbers import printed, whole

_BANNER = re.compile(r"^fio-(\d[\w.-]*)$")
_RUNTIME = re.compile(r"(?:^|\s)(?:--)?runtime=(\d+)(m?)s?\b")
_COMMAND = ("fio ", " --")
_JOB = re.compile(r"^\S.*: \(g=\d+\): rw=(\w+),.*ioengine=(\w+), iodepth=(\d+)")
_GROUP = re.compile(r"^\S.*: \(groupid=\d+, jobs=(\d+)\): err=\s*(\d+)")
_FIO_3 = re.compile(
    r"^\s*(read|write|trim)\s*: IOPS=([\d.]+)([kM]?), BW=([\d.]+)([KMG]iB)/s .*/(\d+)msec\)"
)
_FIO_2 = re.compile(
    r"^\s*(read|write|trim)\s*: io=.*, bw=([\d.]+)([KMG]B)/s, iops=([\d.]+)([kM]?)\s*,"
    r" runt=\s*(\d+)msec"
)
_LATENCY = re.compile(r"^\s+lat \(([num])sec\)\s*: min=.*avg=\s*([\d.]+)")
_TIMES = {"": 1.0, "k": 1e3, "M": 1e6}
_MIB = {"KiB": 1 / 1024, "MiB": 1.0, "GiB": 1024.0, "KB": 1 / 1024, "MB": 1.0, "GB": 1024.0}
_MS = {"n": 1e-6, "u": 1e-3, "m": 1.0}
_CHATTER = re.compile(
    r"^(?:\.\.\.|Starting |Jobs: |Run status|Disk stats|\s+(?:slat|clat|lat|bw|iops|cpu|IO depths"
    r"|submit|complete|issued|latency|READ|WRITE|TRIM)\b|\s*(?:\|\s*)?[\d.]+th=\[|\s+\|)"
)


class _Reader:
    def __init__(self) -> None:
        self._drafts = Drafts()
        self._version: str | None = None
        self._asked: dict[str, float | str] = {}
        self._group: Draft | None = None
        self._way = ""

    def line(self, number: int, text: str) -> bool:
        """Take a line."""
        if found := _BANNER.match(text):
            self._version = found[1]
        elif found := _JOB.match(text):
            self._asked |= {"transaction_type": f"{found[1]}, {found[2]}, depth {found[3]}"}
        elif found := _GROUP.match(text):
            self._group = self._begun(number)
            self._group.conditions["clients"] = whole(found[1])
        elif found := _FIO_3.match(text):
            self._took(number, found[1], _count(found[2], found[3]),
                       printed(found[4]) * _MIB[found[5]], found[6])  # fmt: skip
        elif found := _FIO_2.match(text):
            self._took(number, found[1], _count(found[4], found[5]),
                       printed(found[2]) * _MIB[found[3]], found[6])  # fmt: skip
        elif (found := _LATENCY.match(text)) and self._way:
            avg_ms = printed(found[2]) * _MS[found[1]]
            self._drafts[-1].tell(f"latency avg {self._way}", avg_ms, "ms", number)
        elif found := _RUNTIME.search(text):
            self._asked["asked_duration_s"] = whole(found[1]) * (60 if found[2] else 1)
        else:
            return all(one in text for one in _COMMAND) or bool(_CHATTER.match(text))
        return True

    def _begun(self, number: int) -> Draft:
        draft = Draft(number, version=self._version)
        draft.conditions |= self._asked
        self._drafts.append(draft)
        return draft

    def _took(self, number: int, way: str, iops: float, mib_s: float, ran_ms: str) -> None:
        """What one way of a group did; outside of a group, each line is a result of its own."""
        draft = self._group
        if draft is None or draft.told_value(f"iops {way}") is not None:
            draft = self._begun(number)
        self._way = way
        draft.tell(f"iops {way}", iops, "1/s", number)
        draft.tell(f"bandwidth {way}", mib_s, "MiB/s", number)
        draft.conditions["duration_s"] = whole(ran_ms) / 1_000

    def finish(self) -> Sequence[Draft]:
        """The results."""
        return [one for one in self._drafts if one.told]


def _count(number: str, unit: str) -> float:
    return printed(number) * _TIMES[unit]


FORMAT = Format(
    tool="fio",
    form="text",
    signs=re.compile(
        r"^\s*(?:read|write|trim)\s*: (?:IOPS=[\d.]+|io=.*\biops=)|^fio-\d|: \(groupid=\d+, jobs="
    ),
    reader=_Reader,
)
