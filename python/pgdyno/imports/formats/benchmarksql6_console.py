"""What BenchmarkSQL 6 prints: its table of kinds, NOPM and TPM, in the locale of its JVM.

Latencies are seconds. How many decimals a number has is known from the format that prints it, so
that separators need not be.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pgdyno.imports.format import Draft, Drafts, Format
from pgdyno.imports.numbers import grouped, printed
from pgdyno.model.wording import plural

_BANNER = re.compile(r"main,\s+BenchmarkSQL v(\d[\w.]*)")
_SETTING = re.compile(r"main, ([a-zA-Z]+)=(\S+)")
_ROW = re.compile(r"result, \| (\w{1,40})\s{0,40}\|(.{0,1000})\|\s*$")
_OVERALL = re.compile(r"result, Overall (NOPM|TPM):\s+(.+?)(?: \((.+?)%.*)?$")
_SCHEDULER = re.compile(r"Scheduler, |result,|main,")
_COLUMNS = (
    ("count", "transactions", 0), ("mix", "%", 3), ("mean", "s", 3), ("max", "s", 3),
    ("90th", "s", 3), ("rolled back", "%", 3), ("errors", "transactions", 0),
)  # fmt: skip
_NUMBERS = {
    "warehouses": "warehouses", "sutThreads": "clients", "newOrderWeight": "new_order_percent",
}  # fmt: skip
_MINUTES = {"runMins": "asked_duration_s", "rampupMins": "rampup_s"}


class _Reader:
    def __init__(self) -> None:
        self._drafts = Drafts()
        self._open: Draft | None = None

    def line(self, number: int, text: str) -> bool:
        """Take a line."""
        if banner := _BANNER.search(text):
            self._open = self._begin(number, banner[1])
        elif row := _ROW.search(text):
            self._row(number, row[1], row[2].split("|"))
        elif overall := _OVERALL.search(text):
            self._overall(number, *overall.groups())
        elif setting := _SETTING.search(text):
            self._setting(number, *setting.groups())
        else:
            return _SCHEDULER.search(text) is not None
        return True

    def _begin(self, number: int, version: str | None) -> Draft:
        draft = Draft(number, version=version)
        self._drafts.append(draft)
        return draft

    def _result(self, number: int) -> Draft:
        if self._open is None:
            self._open = self._begin(number, None)
        return self._open

    def _row(self, number: int, kind: str, cells: list[str]) -> None:
        if len(cells) != len(_COLUMNS):
            raise ValueError(f"a row of {plural(len(cells), 'cell')}")
        draft = self._result(number)
        if draft.told_value("count", kind) is not None:  # of another run, whose banner is missing
            draft = self._open = self._begin(number, None)
        for (name, unit, decimals), cell in zip(_COLUMNS, cells, strict=True):
            draft.tell(name, grouped(cell, decimals), unit, number, kind)

    def _overall(self, number: int, name: str, value: str, percent: str | None) -> None:
        draft = self._result(number)
        draft.tell(f"Overall {name}", grouped(value, 0), "1/min", number)
        if percent is not None:
            draft.tell("share of the theoretical maximum", grouped(percent, 2), "%", number)

    def _setting(self, number: int, name: str, value: str) -> None:
        draft = self._result(number)
        if name in _NUMBERS:
            draft.conditions[_NUMBERS[name]] = printed(value)
        elif name in _MINUTES:
            draft.conditions[_MINUTES[name]] = printed(value) * 60
        elif name == "db":
            draft.conditions["database"] = value
        elif name == "application":
            draft.conditions["statement_form"] = value
        elif name in ("keyingTimeMultiplier", "thinkTimeMultiplier"):
            said = str(draft.conditions.get("keying_and_thinking", ""))
            one = f"{name.removesuffix('TimeMultiplier')} {value}"
            draft.conditions["keying_and_thinking"] = f"{said}, {one}".removeprefix(", ")

    def finish(self) -> Sequence[Draft]:
        """The results."""
        found = [one for one in self._drafts if one.told]
        for draft in found:
            _complete(draft)
        return found


def _complete(draft: Draft) -> None:
    draft.compare("nopm_ended", draft.told_value("Overall NOPM"), "Overall NOPM")
    draft.compare("tpm_all_ended", draft.told_value("Overall TPM"), "Overall TPM")
    if "asked_duration_s" in draft.conditions and draft.told_value("Overall TPM") is not None:
        draft.conditions["duration_s"] = draft.conditions["asked_duration_s"]
    errors = [one for one in draft.told if one.metric == "errors" and one.of != "DELIVERY_BG"]
    if errors:
        draft.failed = int(sum(one.value for one in errors))
    for name in ("Overall NOPM", "Overall TPM"):
        if draft.told_value(name) is None:
            draft.missing.append(name)
    if draft.told_value("count", "NEW_ORDER") is None:
        draft.missing.append("the table of kinds")


FORMAT = Format(
    tool="BenchmarkSQL",
    form="console of 6",
    signs=re.compile(
        r"result, (?:Overall (?:NOPM|TPM):|\| NEW_ORDER)|Scheduler, Current TPM=|BenchmarkSQL v6"
    ),
    reader=_Reader,
)
