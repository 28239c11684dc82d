"""What BenchmarkSQL 4.1, 5.0 and 5.1 print at their end, however log4j begins the lines.

Several clients may have written into one text, one after the other or line by line: results are
told apart by the thread that printed them. Lines of a properties file count as its settings; such a
file alone, which people send along, is settings without a result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

from pgdyno.imports.format import Draft, Drafts, Format
from pgdyno.imports.numbers import printed, whole
from pgdyno.model.imported import Condition, Span

_MESSAGE = re.compile(r"Term-\d+,\s*(.*)")
_THREAD = re.compile(r"\b(Thread-\d+|main)\b")
_MEASURED = re.compile(r"Measured (tpmC \(NewOrders\)|tpmTOTAL)\s*=\s*(\S+)")
_SESSION = re.compile(r"Session (Start|End)\s*=\s*(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_COUNT = re.compile(r"Transaction Count\s*=\s*(\S+)")
_BANNER = re.compile(r"BenchmarkSQL v(\d[\w.]*)")
_FOLDER = re.compile(r"benchmarksql-(\d+(?:\.\d+)+)", re.IGNORECASE)
_SETTING = re.compile(r"\s*([a-zA-Z]+)\s*=\s*(\S+)")
_RUNNING = re.compile(r"Running Average tpmTOTAL:|progress: .{0,200}tpmTOTAL:")
_FAILED = re.compile(r"Unexpected SQLException in|ERROR.{0,500}SQLException")
_SETTINGS = {
    "warehouses": "warehouses",
    "terminals": "clients",
    "newOrderWeight": "new_order_percent",
    "paymentWeight": "payment_percent",
}
_OTHERS = ("orderStatusWeight", "deliveryWeight", "stockLevelWeight")  # fmt: skip
_OTHER_SETTINGS = {
    "db", "driver", "conn", "user", "password", "runTxnsPerTerminal", "limitTxnsPerMin",
    "terminalWarehouseFixed", "useStoredProcedures", "loadWorkers", "resultDirectory",
    "osCollectorScript", "osCollectorInterval", "osCollectorSSHAddr", "osCollectorDevices",
    "rampupDelay", "runMins",
}  # fmt: skip
_RESULT = ("tpmC", "tpmTOTAL", "Transaction Count")
_ALL = {*_RESULT, "Start", "End"}
_MIXED = "of which client each figure is (two with one name of a thread wrote line by line)"


class _Reader:
    def __init__(self) -> None:
        self._drafts = Drafts()
        self._of_thread: dict[str, list[Draft]] = {}
        self._version: str | None = None
        self._settings: dict[str, Condition] = {}
        self._failed: int | None = None  # known once a console was seen from its banner on
        self._is_fresh = True  # no result since the last banner
        self._is_printed = False  # whether a line of the tool's own was seen
        self._lines = (0, 0)  # first and last one that sets something

    def line(self, number: int, text: str) -> bool:
        """Take a line."""
        if _FAILED.search(text):
            self._failed = (self._failed or 0) + 1
            return True
        if (found := _MESSAGE.search(text)) is None:
            return self._beside(number, text)
        self._is_printed = True
        message = found[1]
        if _RUNNING.search(message):
            return True
        if banner := _BANNER.search(message):
            self._begin(banner[1])
        elif (measured := _MEASURED.match(message)) is not None:
            name = measured[1].split()[0]
            draft = self._draft(text, name, number)
            draft.tell(name, printed(measured[2]), "1/min", number)
        elif session := _SESSION.match(message):
            draft = self._draft(text, session[1], number)
            draft.conditions[session[1]] = _seconds(session[2])
            draft.last_line = number
        elif count := _COUNT.match(message):
            draft = self._draft(text, "Transaction Count", number)
            draft.tell("Transaction Count", whole(count[1]), "transactions", number)
        else:
            self._setting(message)
        return True

    def _begin(self, version: str) -> None:
        if not self._is_fresh:
            self._settings = {}
        self._version, self._failed, self._is_fresh = version, 0, True

    def _beside(self, number: int, text: str) -> bool:
        if (folder := _FOLDER.search(text)) and self._version is None:
            self._version = folder[1]
        is_setting = self._setting(text)
        if is_setting:
            self._lines = (self._lines[0] or number, number)
        return is_setting or folder is not None

    def _setting(self, text: str) -> bool:
        found = _SETTING.match(text)
        if found is None:
            return False
        name, value = found.groups()
        if name in _SETTINGS:
            self._settings[_SETTINGS[name]] = printed(value)
        elif name in _OTHERS:
            least = self._settings.get("other_percent")
            weight = printed(value)
            self._settings["other_percent"] = (
                weight if not isinstance(least, float) else min(least, weight)
            )
        elif name == "runMins":
            if printed(value) > 0:
                self._settings["asked_duration_s"] = printed(value) * 60
        elif name == "db":
            self._settings["database"] = value
        elif name == "useStoredProcedures":
            self._settings["statement_form"] = "procedures" if value == "true" else "client's SQL"
        return name in _SETTINGS or name in _OTHERS or name in _OTHER_SETTINGS

    def _draft(self, text: str, what: str, number: int) -> Draft:
        """The result of the thread that printed a line; a second figure begins another result."""
        found = _THREAD.search(text)
        thread = found[1] if found else ""
        drafts = self._of_thread.setdefault(thread, [])
        draft = drafts[-1] if drafts else None
        has = set() if draft is None else _figures(draft)
        if draft is None or what in has or (what == "tpmC" and "End" in has):
            draft = Draft(number, version=self._version, conditions=dict(self._settings))
            draft.failed = self._failed
            drafts.append(draft)
            self._drafts.append(draft)
            self._is_fresh = False
        return draft

    def finish(self) -> Sequence[Draft]:
        """The results."""
        if not self._drafts and not self._is_printed and self._settings:
            first, last = self._lines
            return [Draft(first, form="properties", conditions=self._settings, last_line=last)]
        mixed = {id(one) for drafts in self._of_thread.values() for one in _mixed(drafts)}
        for draft in self._drafts:
            _complete(draft, is_mixed=id(draft) in mixed)
        return [one for one in self._drafts if one.told]


def _figures(draft: Draft) -> set[str]:
    """What of a result is there."""
    return {one.metric for one in draft.told} | ({"Start", "End"} & draft.conditions.keys())


def _mixed(drafts: Sequence[Draft]) -> list[Draft]:
    """Those of one thread's name, one behind the other, that both have a figure and neither all.

    Clients that write line by line into one file are told apart by the names of their threads. Two
    that have one name are not: a figure may be of either.
    """
    found = []
    for one, other in pairwise(drafts):
        has = _figures(one), _figures(other)
        if has[0] & has[1] and not any(some >= _ALL for some in has):
            found += [one, other]
    return found


def _complete(draft: Draft, *, is_mixed: bool) -> None:
    begin, end = (draft.conditions.pop(name, None) for name in ("Start", "End"))
    if isinstance(begin, float) and isinstance(end, float) and end > begin:
        draft.span = Span(begin, end, "local", 1.0)
        draft.conditions["duration_s"] = end - begin
        count = draft.told_value("Transaction Count")
        if count is not None and not is_mixed:
            draft.compare(
                "tpm_all_ended", count / (end - begin) * 60, "Transaction Count by session"
            )
    draft.missing += [name for name in _RESULT if draft.told_value(name) is None]
    draft.missing += [] if draft.span else ["Session Start and End"]
    draft.conditions.setdefault("keying_and_thinking", "none")
    if is_mixed:
        draft.missing.append(_MIXED)
        return
    draft.compare("nopm_ended", draft.told_value("tpmC"), "tpmC")
    if all(one.metric != "tpm_all_ended" for one in draft.comparable):
        draft.compare("tpm_all_ended", draft.told_value("tpmTOTAL"), "tpmTOTAL")


def _seconds(text: str) -> float:
    """A local time as if it were UTC: only differences are used."""
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()


FORMAT = Format(
    tool="BenchmarkSQL",
    form="console",
    signs=re.compile(
        r"Term-\d+,\s*(?:Measured tpm|Running Average tpmTOTAL|Session (?:Start|End)|"
        r"BenchmarkSQL v[45]|Transaction Count|progress: .{0,200}tpmTOTAL)"
        r"|^(?:newOrderWeight|paymentWeight)\s{0,9}=\s{0,9}\d"
    ),
    reader=_Reader,
)
