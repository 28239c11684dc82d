"""How near a trial came to what the driver reaches on this machine against the null server."""

from __future__ import annotations

from pgdyno.analysis.efficiency import transactions
from pgdyno.model.fleet import HostResult
from pgdyno.model.plan import Workload
from pgdyno.model.run import RunInfo, TrialResult
from pgdyno.stats.ceiling import ceiling_per_s, ceiling_that_fits


def ceiling_of_trial(info: RunInfo, workload: Workload, result: TrialResult) -> float | None:
    """Transactions a second that the driver could have reached; None: it was not calibrated."""
    # A run file keeps the ceilings of its own machine only.
    opened = workload.connections + workload.replica_connections
    found = ceiling_that_fits(info.calibration, workload, opened)
    return None if found is None else ceiling_per_s(found, result.client.threads)


def ceiling_of_host(info: RunInfo, workload: Workload, host: HostResult) -> float | None:
    """Transactions a second that one of several hosts could have reached; None: not known."""
    found = ceiling_that_fits(
        info.host_ceilings.get(host.name, ()), workload, max(1, host.connections)
    )
    return None if found is None else ceiling_per_s(found, host.client.threads)


def rate(result: TrialResult) -> float:
    """Transactions a second that came to their end, rollbacks included."""
    return transactions(result) / result.window_s
