"""How near a trial came to what the driver reaches on this machine against the null server."""

from __future__ import annotations

from pgdyno.analysis.efficiency import transactions
from pgdyno.model.plan import Workload
from pgdyno.model.run import RunInfo, TrialResult
from pgdyno.stats.ceiling import ceiling_per_s, fitting


def ceiling_of_trial(info: RunInfo, workload: Workload, result: TrialResult) -> float | None:
    """Transactions a second that the driver could have reached; None: it was not calibrated."""
    known = info.calibration
    if not known or workload.engine != "pgdyno":
        return None  # it is that of our own driver
    # A run file keeps the ceilings of its own machine only.
    machine = known[0].machine
    found = fitting(known, machine, workload.kind, workload.face, workload.connections)
    return None if found is None else ceiling_per_s(found, result.client.threads)


def rate(result: TrialResult) -> float:
    """Transactions a second that came to their end, rollbacks included."""
    return transactions(result) / result.window_s
