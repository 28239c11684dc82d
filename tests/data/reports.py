"""The settings of the four field reports, and what the linter finds in them.

`python -m tests.data.reports` prints the table of docs/numbers.md; a test holds it against that.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

from pgdyno.lint import Finding, Severity, Source, System, check, read_source
from pgdyno.lint.system import GIB

FOLDER = Path(__file__).parent / "lint"
MEMORY_GIB = {  # of the machines that the reports were written on
    "tpcc-six-stages": 256,
    "tpcc-six-stages-summary": 256,
    "benchmarksql-9.5": 256,
    "full-page-writes": 64,
    "storage-comparison": 512,
}
REPORTS = tuple(MEMORY_GIB)
LETTERS = dict(zip(REPORTS, "ABCDE", strict=True))


@cache
def sources(report: str) -> tuple[Source, ...]:
    """All files of a report."""
    return tuple(read_source(str(path)) for path in sorted((FOLDER / report).iterdir()))


@cache
def findings(report: str) -> tuple[Finding, ...]:
    """Of all files of a report together, for the latest PostgreSQL and Linux."""
    return check(sources(report), System(18, (6, 18), MEMORY_GIB[report] * GIB))


def table() -> str:
    """Every finding, each once with the reports that have it, worst first."""
    found: dict[tuple[int, str, str, str, str], set[str]] = {}
    for report in REPORTS:
        for one in findings(report):
            where = Path(one.at.path).name
            key = (one.severity.rank, where, one.at.name, one.at.value, one.text)
            found.setdefault(key, set()).add(LETTERS[report])
    lines = ["| | file | setting | in | what is the matter |", "|---|---|---|---|---|"]
    for (rank, where, name, value, text), letters in sorted(found.items()):
        severity = list(Severity)[rank]
        setting = f"{name} = {value}"
        cells = (severity.value, where, f"`{setting}`", " ".join(sorted(letters)), text)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def counts() -> str:
    """How many settings and findings, by severity, each report has."""
    lines = [
        "| | report | settings | " + " | ".join(one.value for one in Severity) + " |",
        "|---|---|" + "---:|" * (1 + len(Severity)),
    ]
    for report in REPORTS:
        number = sum(len(source.assignments) for source in sources(report))
        by = Counter(one.severity for one in findings(report))
        cells = [LETTERS[report], report, str(number), *(str(by[one]) for one in Severity)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(f"{counts()}\n\n{table()}")
