"""What the core says of a load or an export, read into records: of the versions known here only."""

from __future__ import annotations

import json
from typing import TypeVar

from pgdyno.core import require_written
from pgdyno.model.loading import ExportReport, LoadEstimate, LoadReport
from pgdyno.model.record_json import from_plain

REPORT_VERSION = 1
"""Of the core's reports and estimates: those that this reads."""

_Report = TypeVar("_Report", LoadReport, LoadEstimate, ExportReport)
_NAMES = {
    LoadReport: "the loader's report",
    LoadEstimate: "the loader's estimate",
    ExportReport: "the export's report",
}


def read_report(kind: type[_Report], text: str) -> _Report:
    """A report of the core as its record.

    Raises:
        DriveError: It is of another version, because core and Python were built apart.
    """
    plain = json.loads(text)
    require_written(_NAMES[kind], plain.get("version"), REPORT_VERSION)
    return from_plain(kind, plain)
