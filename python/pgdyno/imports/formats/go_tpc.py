"""What go-tpc prints at its end: text, table, or one JSON array a line in which all is a string.

Each kind's rate is over its own seconds since its first transaction. Percentiles are edges of
buckets of one significant digit; `_ERR` kinds are apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pgdyno.imports.format import Draft, Drafts, Format
from pgdyno.imports.numbers import printed
from pgdyno.model.numbers import finite
from pgdyno.model.record_json import json_value

_SUMMARY = re.compile(r"^\[Summary\] (\w+) +- (Takes\(s\).*)|^\[?(\w+)\]? - (Takes\(s\): .*TPM.*)")
_CURRENT = re.compile(r"^\[Current\] \w+ +- Takes")
_TPMC = re.compile(r"tpmC: ([\d.]+)(?:, tpmTotal: ([\d.]+))?(?:, efficiency: ([\d.]+)%)?")
_ROW = re.compile(r"^\| *\[?(Summary|Current)\]? *\|(.*)\|$")
_TOTALS = re.compile(r"^\| *([\d.]+) *\| *([\d.]+) *\| *([\d.]+)% *\|$")
_WAREHOUSES = re.compile(r"--warehouses[ =](\d+)")
_CHATTER = re.compile(
    r"^(?:Finished|execute run failed|creating|load to|\+-+|maxprocs|Connecting|\[\d{4}-"
    r"|\| +(?:TPMC|PREFIX) )"
)
_KEYS = {
    "Takes(s)": ("Takes", "s"), "Count": ("Count", "transactions"), "TPM": ("TPM", "1/min"),
    "Sum(ms)": ("Sum", "ms"), "Avg(ms)": ("Avg", "ms"), "50th(ms)": ("50th", "ms"),
    "90th(ms)": ("90th", "ms"), "95th(ms)": ("95th", "ms"), "99th(ms)": ("99th", "ms"),
    "99.9th(ms)": ("99.9th", "ms"), "Max(ms)": ("Max", "ms"),
}  # fmt: skip
_HEAD = ("Takes(s)", "Count", "TPM", "Sum(ms)", "Avg(ms)", "50th(ms)", "90th(ms)", "95th(ms)",
         "99th(ms)", "99.9th(ms)", "Max(ms)")  # fmt: skip
_PAIR = re.compile(r"([\w.]+(?:\((?:s|ms)\))?): ([\d.]+)")
ERROR_KINDS = "_ERR"
"""Ends the name of a kind that holds those that failed."""


class _Reader:
    def __init__(self) -> None:
        self._drafts = Drafts()
        self._warehouses: float | None = None

    def line(self, number: int, text: str) -> bool:
        """Take a line."""
        text = text.strip()
        if found := _WAREHOUSES.search(text):
            self._warehouses = printed(found[1])
        if found := _SUMMARY.match(text):
            kind, said = found[1] or found[3], found[2] or found[4]
            self._kind(number, kind, dict(_PAIR.findall(said)))
        elif found := _TPMC.match(text):
            self._total(number, found.groups())
        elif text.startswith("[{"):
            return self._array(number, text)
        elif totals := _TOTALS.match(text):
            self._total(number, totals.groups())
        elif row := _ROW.match(text):
            self._row(number, row[1], [cell.strip() for cell in row[2].split("|")])
        else:
            return bool(_CURRENT.match(text) or _CHATTER.match(text) or found)
        return True

    def _draft(self, number: int, kind: str) -> Draft:
        """The result that a kind belongs to: one that has it already is whole."""
        last = self._drafts[-1] if self._drafts else None
        if last is None or last.told_value("Count", kind) is not None:
            last = Draft(number)
            self._drafts.append(last)
        return last

    def _kind(self, number: int, kind: str, said: dict[str, str]) -> None:
        values = {name: printed(value) for name, value in said.items() if name in _KEYS}
        if "Count" not in values:
            raise ValueError("a kind without a count")
        draft = self._draft(number, kind)
        for name, value in values.items():
            draft.tell(*_told(name, value), number, kind)

    def _row(self, number: int, which: str, cells: list[str]) -> None:
        if which == "Summary" and len(cells) == len(_HEAD) + 1:
            self._kind(number, cells[0], dict(zip(_HEAD, cells[1:], strict=True)))

    def _total(self, number: int, values: Sequence[str | None]) -> None:
        last = self._drafts[-1] if self._drafts else None
        if last is None or last.told_value("tpmC") is not None:
            last = Draft(number)
            self._drafts.append(last)
        units = (("tpmC", "1/min"), ("tpmTotal", "1/min"), ("efficiency", "%"))
        for (name, unit), value in zip(units, values, strict=True):
            if value is not None:
                last.tell(name, printed(value.rstrip("%")), unit, number)

    def _array(self, number: int, text: str) -> bool:
        try:
            rows = json_value(text)
        except ValueError:
            raise ValueError("a line of JSON that is none") from None
        known = False
        for row in rows if isinstance(rows, list) else ():
            if not isinstance(row, dict):
                continue
            said = {str(name): str(value) for name, value in row.items()}
            if said.get("Prefix", "").strip(" []") == "Summary" and "Operation" in said:
                self._kind(number, said["Operation"][:80], said)
                known = True
            elif "tpmC" in said:
                self._total(number, [said.get(n) for n in ("tpmC", "tpmTotal", "efficiency")])
                known = True
            known = known or "Prefix" in said
        return known

    def finish(self) -> Sequence[Draft]:
        """The results."""
        found = [one for one in self._drafts if one.told]
        for draft in found:
            self._complete(draft)
        return found

    def _complete(self, draft: Draft) -> None:
        if self._warehouses is not None:
            draft.conditions["warehouses"] = self._warehouses
        draft.compare("nopm_ended", draft.told_value("tpmC"), "tpmC")
        takes = [one for one in draft.told if one.metric == "Takes"]
        ended = [one for one in draft.told if one.metric == "Count"]
        if takes and (longest := max(one.value for one in takes)) > 0:
            draft.conditions["duration_s"] = longest
            whole = sum(one.value for one in ended if not (one.of or "").endswith(ERROR_KINDS))
            how = "Count of all kinds by the longest Takes"
            draft.compare("tpm_all_ended", finite(whole / longest * 60), how)
        else:
            draft.missing.append("the kinds: only totals are there")
        if (
            ended and draft.told_value("tpmC") is not None
        ):  # whole: a kind without errors has no _ERR
            errors = [one.value for one in ended if (one.of or "").endswith(ERROR_KINDS)]
            draft.failed = int(sum(errors))
        if draft.told_value("tpmC") is None:
            draft.missing.append("tpmC")


def _told(name: str, value: float) -> tuple[str, float, str]:
    metric, unit = _KEYS[name]
    return metric, value, unit


FORMAT = Format(
    tool="go-tpc",
    form="summary",
    signs=re.compile(
        r"^\[Summary\] \w+ +- Takes\(s\)|^tpmC: [\d.]+|^\[Current\] \w+ +- Takes\(s\)"
        r"|\"Prefix\":\"\[?(?:Current|Summary)|\"tpmC\":\"|^\| *\[?(?:Summary|Current)\]? *\|"
    ),
    reader=_Reader,
)
