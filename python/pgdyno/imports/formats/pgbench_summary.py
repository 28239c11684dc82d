"""What pgbench 9.5 to 18 prints: summary, progress, scripts, statements, and what loading took.

Latencies are milliseconds of the client. Of the two figures that versions to 13 print, the one
without connecting is the one that later versions print.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pgdyno.imports.format import Draft, Drafts, Format
from pgdyno.imports.numbers import printed, whole

_VERSION = re.compile(r"pgbench \((?:PostgreSQL\) )?([\d.]+\w*)")
_TPS = re.compile(
    r"tps = ([\d.,]+) \((\w+) (?:initial )?(?:re)?connect(?:ions?|ion) (?:establishing|times?)\)"
)
_LATENCY = re.compile(r"latency (average|stddev)\s*[:=]\s*([\d.,]+) ms(?: \((.*)\))?")
_LAG = re.compile(r"rate limit schedule lag: avg ([\d.,]+) \(max ([\d.,]+)\) ms")
_ACTUALLY = re.compile(r"number of transactions actually processed: (\d+)(?:/(\d+))?")
_COUNTS = re.compile(
    r"(?:number of (failed transactions|serialization failures|deadlock failures|transactions "
    r"skipped|transactions retried|transactions above the [\d.,]+ ms latency limit)"
    r"|(total number of retries)): (\d+)"
)
_CONNECT = re.compile(r"(initial|average) connection time = ([\d.,]+) ms")
_SCRIPT = re.compile(r"SQL script (\d+): (.+)")
_PART = re.compile(r" - (\d+) transactions \(([\d.,]+)% of total, tps = ([\d.,]+)\)")
_PART_OTHER = re.compile(r" - (?:weight|latency|number of|total number)")
_STATEMENT = re.compile(r"\s+(\d+[.,]\d+)\s+(?:\d+\s+)?(?:\d+\s+)?(\S.*)")
_STATEMENTS = re.compile(r"statement latencies in milliseconds")
_PROGRESS = re.compile(
    r"progress: ([\d.,]+) s, (\S+) tps, lat (\S+) ms stddev ([^\s,]+)(?:, (\d+) failed)?"
)
_LOADED = re.compile(
    r"(?<!\d)(\d+) of (\d+) tuples \(100%\) (?:of \w+ )?done \(elapsed ([\d.,]+) s"
)
_TYPE = re.compile(r"transaction type: (.+)")
_TEXTS = {"query mode": "query_mode"}
_NUMBERS = {
    "scaling factor": "scale", "number of clients": "clients", "number of threads": "threads",
}  # fmt: skip
_LABELLED = re.compile(
    r"(scaling factor|number of clients|number of threads|query mode|duration"
    r"|maximum number of tries|number of transactions per client"
    r"|partition method|number of partitions): (.+)"
)
_COMMAND = re.compile(r"(?:^|[\s/])pgbench\s+-.*")
_CHATTER = re.compile(
    r"starting vacuum|^end\.|pgbench: |vacuuming|creating |generating |set primary"
)


class _Reader:
    def __init__(self) -> None:
        self._drafts = Drafts()
        self._open: Draft | None = None
        self._version: str | None = None
        self._asked: dict[str, str | float] = {}
        self._script: str | None = None
        self._in_statements = False

    def line(self, number: int, text: str) -> bool:
        """Take a line."""
        for take in (self._head, self._figure, self._count, self._part, self._beside):
            if take(number, text):
                return True
        return False

    def _begin(self, number: int) -> Draft:
        draft = Draft(number, version=self._version, conditions=dict(self._asked))
        draft.last_line = number
        self._drafts.append(draft)
        self._version = None
        self._open, self._script, self._in_statements = draft, None, False
        return draft

    def _result(self, number: int) -> Draft:
        return self._open if self._open is not None else self._begin(number)

    def _head(self, number: int, text: str) -> bool:
        if found := _TYPE.match(text):
            is_begun = self._open is not None and not self._is_summarised(self._open)
            draft = self._open if is_begun and self._open is not None else self._begin(number)
            draft.conditions["transaction_type"] = found[1].strip().strip("<>")
            return True
        found = _LABELLED.match(text)
        if found is None:
            return False
        label, value = found[1], found[2].strip()
        draft = self._result(number)
        if label in _NUMBERS:
            draft.conditions[_NUMBERS[label]] = printed(value)
        elif label in _TEXTS:
            draft.conditions[_TEXTS[label]] = value
        elif label == "duration":
            draft.conditions["duration_s"] = printed(value.removesuffix("s"))
        draft.last_line = number
        return True

    @staticmethod
    def _is_summarised(draft: Draft) -> bool:
        return "transaction_type" in draft.conditions or draft.told_value("processed") is not None

    def _figure(self, number: int, text: str) -> bool:
        if found := _TPS.match(text):
            name = "excluding" if found[2] in ("excluding", "without") else "including"
            self._result(number).tell(f"tps {name} connecting", printed(found[1]), "1/s", number)
            _version(self._result(number), text)
        elif found := _LATENCY.match(text):
            draft = self._result(number)
            draft.tell(f"latency {found[1]}", printed(found[2]), "ms", number)
            if found[3]:
                draft.missing.append(f"latency as measured ({found[3][:60]})")
            if text.startswith("latency average:"):
                draft.version = draft.version or "9.5 or older"
        elif found := _LAG.match(text):
            self._result(number).tell("schedule lag average", printed(found[1]), "ms", number)
            self._result(number).tell("schedule lag max", printed(found[2]), "ms", number)
        elif found := _CONNECT.match(text):
            draft = self._result(number)
            draft.tell(f"{found[1]} connection time", printed(found[2]), "ms", number)
            draft.conditions["reconnects"] = "yes" if found[1] == "average" else "no"
        else:
            return False
        return True

    def _count(self, number: int, text: str) -> bool:
        if found := _ACTUALLY.match(text):
            draft = self._result(number)
            draft.tell("processed", whole(found[1]), "transactions", number)
            if found[2] is not None:
                draft.tell("asked for", whole(found[2]), "transactions", number)
            return True
        found = _COUNTS.match(text)
        if found is None:
            return False
        draft = self._result(number)
        draft.tell(found[1] or found[2], whole(found[3]), "transactions", number)
        if found[1] == "failed transactions":
            draft.failed = whole(found[3])
            draft.version = draft.version or "15 or newer"
        return True

    def _part(self, number: int, text: str) -> bool:
        if found := _SCRIPT.match(text):
            self._script, self._in_statements = found[2].strip().strip("<>")[:200], False
            return True
        if (found := _PART.match(text)) and self._script is not None:
            draft = self._result(number)
            draft.tell("processed", whole(found[1]), "transactions", number, self._script)
            draft.tell("tps", printed(found[3]), "1/s", number, self._script)
            return True
        if _STATEMENTS.search(text):
            self._in_statements = True
            return True
        if self._in_statements and (found := _STATEMENT.match(text)):
            draft = self._result(number)
            draft.tell("latency of statement", printed(found[1]), "ms", number, found[2][:200])
            return True
        return _PART_OTHER.match(text) is not None and self._open is not None

    def _beside(self, number: int, text: str) -> bool:
        if found := _PROGRESS.match(text):
            draft = self._of_progress(number)
            draft.tell("progress tps", printed(found[2]), "1/s", number, f"{printed(found[1]):g} s")
            if "nan" not in found[3].lower():
                at = f"{printed(found[1]):g} s"
                draft.tell("progress latency", printed(found[3]), "ms", number, at)
            return True
        if found := _VERSION.match(text):
            self._version = found[1]
            if self._open is None or self._is_summarised(self._open):
                self._open = None
            else:
                self._open.version = found[1]
            return True
        if found := _LOADED.search(text):
            self._asked = {}
            draft = self._begin(number)
            draft.form = "loading"
            draft.tell("time of loading", printed(found[3]), "s", number)
            draft.conditions["scale"] = whole(found[2]) / 100_000
            self._open = None
            return True
        if found := _COMMAND.search(text):
            self._command(found[0])
            return True
        return _CHATTER.search(text) is not None

    def _of_progress(self, number: int) -> Draft:
        if self._open is not None and self._is_summarised(self._open):
            self._open = None
        return self._result(number)

    def _command(self, words: str) -> None:
        """What a shell's line that stands before the output asked for."""
        self._open, self._asked = None, {}
        if found := re.search(r"\s-T\s*(\d+)", words):
            self._asked["asked_duration_s"] = printed(found[1])
        if re.search(r"\s-C\b", words):
            self._asked["reconnects"] = "yes"
        if found := re.search(r"\s-R\s*([\d.]+)", words):
            self._asked["rate_limit_tps"] = printed(found[1])

    def finish(self) -> Sequence[Draft]:
        """The results."""
        found = [one for one in self._drafts if one.told]
        for draft in found:
            _complete(draft)
        return found


def _version(draft: Draft, text: str) -> None:
    """What the words of the summary tell of the version, where no banner does."""
    if draft.version is None:
        draft.version = (
            "14 or newer" if "without initial" in text or "connection time" in text else None
        )
        if "establishing" in text:
            draft.version = "13 or older"
    elif draft.version == "14 or newer" and draft.failed is not None:
        draft.version = "15 or newer"


def _complete(draft: Draft) -> None:
    if draft.form == "loading":
        return
    tps = draft.told_value("tps excluding connecting")
    if tps is None and draft.conditions.get("reconnects") == "yes":
        tps = draft.told_value("tps including connecting")
    draft.compare("tps", tps, "tps without connecting")
    if draft.told_value("processed") is None:
        draft.missing.append("the summary: only progress is there")
    elif tps is None:
        draft.missing.append("tps without connecting")


FORMAT = Format(
    tool="pgbench",
    form="summary",
    signs=re.compile(
        r"^number of transactions actually processed: |^tps = [\d.,]+ \((?:in|ex|with)"
        r"|^progress: [\d.,]+ s, \S+ tps, lat |^pgbench \((?:PostgreSQL|\d)"
        r"|^\d+ of \d+ tuples \(100%\)"
    ),
    reader=_Reader,
)
