"""What HammerDB prints for its virtual users, in its console, its CLI and its log; jobs as JSON.

NOPM is the growth of orders in the database a minute. TPM is commits and rollbacks of all databases
of the server: another figure than anybody else's transactions. Which comes first depends on a
setting, so each number is read with its name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pgdyno.imports.format import Draft, Drafts, Format
from pgdyno.imports.numbers import whole
from pgdyno.model.record_json import json_value

_RESULT = re.compile(
    r"TEST RESULT\s*: System achieved (?:(\d+) NOPM from (\d+) ([\w ]*?)\s*TPM"
    r"|(\d+) ([\w ]*?)\s*TPM at (\d+) NOPM)"
)
_USERS = re.compile(r"(?<!\d)(\d+) Active Virtual Users configured")
_PERIOD = re.compile(r"Timing test period of (\d+) in minutes")
_RAMPUP = re.compile(r"Beginning rampup time of (\d+) minutes?|Rampup (\d+) minutes? complete")
_BANNER = re.compile(r"HammerDB(?: CLI| Log)? v(\d[\w.]*)")
_MODE = re.compile(
    r"\b(Primary|Replica|Master|Slave) (?:mode|instance)|(?:Setting|Mode).{0,200}(Primary|Replica)"
    r"|No snapshots are taken",
    re.IGNORECASE,
)
_WAREHOUSES = re.compile(r"(?:pg|ora|mssqls|mysql|maria|db2)_count_ware\s*[=:]?\s*(\d+)")
_FAILED = re.compile(r"Error in Virtual User|FINISHED FAILED")
_CHATTER = re.compile(
    r"^(?:Vuser \d+:|Hammerdb Log|HammerDB|Virtual User|Dictionary|Script loaded|\|)", re.IGNORECASE
)
_NEEDED = {"number of virtual users": "clients", "test period": "duration_s"}
_SPOKEN_MAX = 1000


class _Reader:
    def __init__(self) -> None:
        self._drafts = Drafts()
        self._open: Draft | None = None
        self._version: str | None = None

    def line(self, number: int, text: str) -> bool:
        """Take a line."""
        if text.lstrip().startswith("["):  # a job as JSON: a list of what each user said
            return self._job(number, text)
        return self._said(number, text.strip().strip('",'))

    def _job(self, number: int, text: str) -> bool:
        try:
            spoken = json_value(text)
        except ValueError:
            return text.strip() == "["
        known = (
            [self._said(number, str(one)) for one in spoken[:_SPOKEN_MAX]]
            if isinstance(spoken, list)
            else []
        )
        return any(known)

    def _said(self, number: int, text: str) -> bool:
        if found := _BANNER.search(text):
            self._version, self._open = found[1], None
        elif found := _RESULT.search(text):
            self._result(number, found)
        elif found := _USERS.search(text):
            self._draft(number, "clients").conditions["clients"] = whole(found[1])
        elif found := _PERIOD.search(text):
            self._draft(number, "duration_s").conditions["duration_s"] = whole(found[1]) * 60.0
        elif found := _RAMPUP.search(text):
            self._draft(number).conditions["rampup_s"] = whole(found[1] or found[2]) * 60.0
        elif found := _WAREHOUSES.search(text):
            self._draft(number).conditions["warehouses"] = whole(found[1])
        elif found := _MODE.search(text):
            one = found[1] or found[2]
            is_replica = one is None or one.lower() in ("replica", "slave")
            self._draft(number).conditions["instance"] = "replica" if is_replica else "primary"
        elif _FAILED.search(text):
            self._draft(number).count("virtual users that failed")
        else:
            return _CHATTER.match(text) is not None
        return True

    def _draft(self, number: int, condition: str | None = None) -> Draft:
        """The open result; a condition that it has begins another, once its figures are told."""
        is_told = self._open is not None and self._open.told_value("NOPM") is not None
        if self._open is None or (is_told and condition in self._open.conditions):
            self._open = Draft(number, version=self._version)
            self._drafts.append(self._open)
        return self._open

    def _result(self, number: int, found: re.Match[str]) -> None:
        draft = self._draft(number)
        if draft.told_value("NOPM") is not None:
            self._open = None
            draft = self._draft(number)
        nopm, tpm, database = (
            (found[1], found[2], found[3]) if found[1] else (found[6], found[4], found[5])
        )
        draft.tell("NOPM", whole(nopm), "1/min", number)
        draft.tell("TPM", whole(tpm), "1/min", number)
        if database:
            draft.conditions["database"] = database.strip()

    def finish(self) -> Sequence[Draft]:
        """The results."""
        found = [one for one in self._drafts if one.told]
        for draft in found:
            draft.compare("nopm_committed", draft.told_value("NOPM"), "NOPM")
            draft.missing += [name for name, key in _NEEDED.items() if key not in draft.conditions]
        return found


FORMAT = Format(
    tool="HammerDB",
    form="console",
    signs=re.compile(
        r"TEST RESULT\s*: System achieved|^Vuser \d+:|^HammerDB CLI v|\d Active Virtual Users"
    ),
    reader=_Reader,
)
