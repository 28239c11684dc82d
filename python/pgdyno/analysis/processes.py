"""What the processes of a server did in the windows, by their roles: CPU, reads and writes."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.analysis.resource_facts import ProcessRow, ProcessUse
from pgdyno.analysis.resources import members
from pgdyno.analysis.seen import Seen, mean_of, seen_by_stage
from pgdyno.model.run import TrialRecord

_PREFIX = "process."


def process_rows(stages: Sequence[str], trials: Sequence[TrialRecord]) -> tuple[ProcessRow, ...]:
    """Each role that did anything in any window, those first that used most CPU.

    Args:
        stages: Their names, in the order of the plan.
        trials: Those whose numbers may be used.
    """
    seen = seen_by_stage(stages, trials)
    names = (name for windows in seen.values() for one in windows for name in one.result.deltas)
    rows = [
        ProcessRow(role, tuple(_use(role, windows) for windows in seen.values()))
        for role in members(names, _PREFIX)
    ]
    return tuple(sorted((one for one in rows if _most(one) > 0), key=_cpus, reverse=True))


def _use(role: str, windows: Sequence[Seen]) -> ProcessUse | None:
    fields = (
        f"{_PREFIX}{role}.{one}" for one in ("cpu_s", "wait_cpu_s", "read_bytes", "write_bytes")
    )
    use = ProcessUse(*(mean_of(one.per_s(field) for one in windows) for field in fields))
    return None if use == ProcessUse(None, None, None, None) else use


def _cpus(row: ProcessRow) -> float:
    return max(one.cpus or 0.0 for one in row.stages if one is not None)


def _most(row: ProcessRow) -> float:
    return max(
        one or 0.0
        for use in row.stages
        if use is not None
        for one in (use.cpus, use.waiting, use.read_bytes_per_s, use.written_bytes_per_s)
    )
