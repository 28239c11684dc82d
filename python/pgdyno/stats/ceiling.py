"""Ceilings: from rounds against the null server, and the one that fits a run. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np

from pgdyno.model.calibration import Calibrated, Ceiling, Estimate, Limit, Machine, Round
from pgdyno.model.errors import PgdynoError
from pgdyno.model.workload import Workload
from pgdyno.stats.interval import estimate

CONFIDENCE = 0.95
# A thread that ran or waited for a CPU this share of the time had no more to give; the rest are
# the moments between the last answer of a batch of events and the next.
WANTED_MIN = 0.95


def typical(values: Sequence[float]) -> Estimate:
    """The typical value of some rounds: the median of all pairwise means, on a log scale.

    Args:
        values: One for each round, above 0.

    Raises:
        PgdynoError: No value, or one that is not above 0.
    """
    logs = np.log(np.array(values, dtype=np.float64)) if all(v > 0 for v in values) else None
    if logs is None or logs.size == 0:
        raise PgdynoError(f"rounds have values {list(values)}, above 0 expected")
    if logs.size == 1:
        return Estimate(float(values[0]), None, None, 1, CONFIDENCE)
    found = estimate(logs[np.newaxis, :], CONFIDENCE)
    centre, low, high = (float(np.exp(x[0])) for x in (found.centre, found.low, found.high))
    return Estimate(centre, low, high, logs.size, found.confidence)


def limit(rounds: Sequence[Round]) -> Limit:
    """What kept the rate from rising: the driver's threads, the null server's, or neither.

    Neither is "latency": so few connections that both sides waited for each other.
    """
    if np.median([each.driver_wanted for each in rounds]) >= WANTED_MIN:
        return "driver"
    server = [each.server_wanted for each in rounds if each.server_wanted is not None]
    if server and np.median(server) >= WANTED_MIN:
        return "null server"
    return "latency"


def ceilings(calibrated: Calibrated) -> tuple[Ceiling, ...]:
    """The ceiling for each workload that was measured, by its rounds.

    Raises:
        PgdynoError: None was.
    """
    step = len(calibrated.workloads)
    found = tuple(
        _ceiling(workload, calibrated, calibrated.measured[number::step])
        for number, workload in enumerate(calibrated.workloads[: len(calibrated.measured)])
    )
    if not found:
        raise PgdynoError("no window was measured", "`pgdyno resume` resumes the run file.")
    return found


def _ceiling(workload: Workload, calibrated: Calibrated, rounds: Sequence[Round]) -> Ceiling:
    servers = [each.server_wanted for each in rounds if each.server_wanted is not None]
    return Ceiling(
        workload=workload.kind,
        face=workload.face,
        connections=workload.connections,
        threads=len(calibrated.driver_cpus),
        transactions_per_s=typical([each.transactions / each.window_s for each in rounds]),
        round_trips_per_s=typical([each.round_trips / each.window_s for each in rounds]),
        cpu_s_per_transaction=typical([each.cpu_s / each.transactions for each in rounds]),
        cpu_s_per_round_trip=typical([each.cpu_s / each.round_trips for each in rounds]),
        round_trips_per_transaction=float(
            np.median([each.round_trips / each.transactions for each in rounds])
        ),
        driver_wanted=float(np.median([each.driver_wanted for each in rounds])),
        server_wanted=float(np.median(servers)) if servers else None,
        limit=limit(rounds),
        driver_cpus=calibrated.driver_cpus,
        server_cpus=calibrated.server_cpus,
        window_s=calibrated.window_s,
        machine=calibrated.machine,
        pgdyno=calibrated.pgdyno,
        measured_unix_ns=calibrated.started_unix_ns,
    )


def fitting(
    ceilings: Sequence[Ceiling], machine: Machine, workload: str, face: str, connections: int
) -> Ceiling | None:
    """The ceiling of this machine that fits a run best; None: it was never measured.

    Only those count where the driver was the limit. Among several the nearest number of connections
    is taken, then the newest.
    """
    known = [
        ceiling
        for ceiling in ceilings
        if (ceiling.machine, ceiling.workload, ceiling.face) == (machine, workload, face)
        and ceiling.limit == "driver"
    ]
    return min(
        known,
        key=lambda c: (abs(log(c.connections / connections)), -c.measured_unix_ns),
        default=None,
    )


def ceiling_that_fits(
    known: Sequence[Ceiling], workload: Workload, connections: int
) -> Ceiling | None:
    """The ceiling of one machine that fits its part of a workload best; None: not known.

    Args:
        known: Of that machine alone.
        workload: What it drives.
        connections: That it has of it.
    """
    if not known or workload.engine != "pgdyno":
        return None  # it is that of our own driver
    return fitting(known, known[0].machine, workload.kind, workload.face, connections)


def ceiling_per_s(ceiling: Ceiling, threads: int) -> float:
    """Transactions a second that so many driver threads reach: they share nothing, so it scales."""
    return ceiling.transactions_per_s.centre / ceiling.threads * threads
