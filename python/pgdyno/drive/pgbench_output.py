"""What pgbench prints, of PostgreSQL 12 to 18: progress, summary, statements, errors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.model.errors import DriveError
from pgdyno.model.numbers import finite
from pgdyno.model.run import PgbenchStatement, PgbenchSummary

_MS_PER_S = 1e3
_PROGRESS = re.compile(
    r"progress: ([\d.]+) s, (\S+) tps, lat (\S+) ms stddev ([^\s,]+)(.*)"
)  # fmt: skip
_COUNTED = re.compile(r", (\d+) (failed|skipped|retries)\b")
_STATEMENT = re.compile(r"\s+(\d+\.\d+)\s+(?:(\d+)\s+(?:(\d+)\s+)?)?(\S.*)")
_ERROR = re.compile(r"pgbench: (?:error|fatal): (.+)|(client \d+ .*aborted .+)")
_NUMBERS = {
    "transactions": r"^number of transactions actually processed: (\d+)",
    "failed": r"^number of failed transactions: (\d+)",
    "retries": r"^total number of retries: (\d+)",
    "latency_mean_s": r"^latency average = ([\d.]+) ms",
    "latency_sd_s": r"^latency stddev = ([\d.]+) ms",
    "connect_s": r"^initial connection time = ([\d.]+) ms",
    "tps": r"^tps = ([\d.]+) \((?:without initial|excluding) connection",
}


@dataclass(frozen=True, slots=True)
class Progress:
    """One line of `--progress`."""

    at_s: float  # since the epoch with `--progress-timestamp`, else since the start
    tps: float
    latency_mean_s: float | None  # None: nothing ended
    failed: int
    retries: int


def progress_of(line: str) -> Progress | None:
    """The progress that a line tells; None if it tells something else."""
    found = _PROGRESS.match(line)
    if found is None:
        return None
    at, tps, mean, _sd, rest = found.groups()
    try:
        counts = {name: int(finite(count)) for count, name in _COUNTED.findall(rest)}
        latency = None if "nan" in mean.lower() else finite(mean) / _MS_PER_S
        failed, retries = counts.get("failed", 0), counts.get("retries", 0)
        return Progress(finite(at), finite(tps), latency, failed, retries)
    except ValueError:  # two programs wrote into one line; the summary is what counts
        return None


def error_of(line: str) -> str | None:
    """What went wrong, if a line says so; pgbench then makes no usable result any more."""
    found = _ERROR.match(line)
    return None if found is None else (found[1] or found[2])


def summary(lines: Sequence[str], version: str, kinds: Sequence[str]) -> PgbenchSummary:
    """The summary of a run.

    Args:
        lines: Everything printed, without the progress.
        version: Of pgbench.
        kinds: What its scripts are called here, in their order.

    Raises:
        DriveError: It is not the summary of a whole run.
    """
    text = "\n".join(lines)
    found = {name: re.search(line, text, re.MULTILINE) for name, line in _NUMBERS.items()}
    try:
        values = {name: finite(match[1]) for name, match in found.items() if match}
        statements = _statements(lines, kinds)
    except ValueError as error:
        raise DriveError(f"pgbench's summary is not understood: {error}") from error
    if "transactions" not in values or "tps" not in values:
        raise DriveError(f"pgbench printed no summary that is understood: {text[-300:]!r}")
    return PgbenchSummary(
        version=version,
        transactions=int(values["transactions"]),
        failed=int(values.get("failed", 0)),
        retries=int(values.get("retries", 0)),
        tps=values["tps"],
        latency_mean_s=_seconds(values, "latency_mean_s"),
        latency_sd_s=_seconds(values, "latency_sd_s"),
        connect_s=_seconds(values, "connect_s"),
        statements=statements,
    )


def _seconds(values: dict[str, float], name: str) -> float | None:
    return values[name] / _MS_PER_S if name in values else None


def _statements(lines: Sequence[str], kinds: Sequence[str]) -> tuple[PgbenchStatement, ...]:
    """The mean latency of each command; of a statement of several lines the first is shown.

    Raises:
        ValueError: A number is none, or of a script that was not run.
    """
    script, inside, found = 0, False, []
    for line in lines:
        if heading := re.match(r"SQL script (\d+):", line):
            script, inside = int(finite(heading[1])) - 1, False
        elif "statement latencies in milliseconds" in line:
            inside = True
        elif inside and (match := _STATEMENT.match(line)):
            if not 0 <= script < len(kinds):
                raise ValueError(f"script {script + 1} of {len(kinds)}")
            mean_ms, *counts, text = match.groups()
            failures, retries = (int(finite(count or 0)) for count in counts)
            mean_s = finite(mean_ms) / _MS_PER_S
            found.append(PgbenchStatement(kinds[script], text, mean_s, failures, retries))
    return tuple(found)
