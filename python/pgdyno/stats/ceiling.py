"""Ceilings: from rounds against the null server, and the one that fits a run. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from pgdyno.model.calibration import Ceiling, Estimate, Limit, Machine
from pgdyno.model.errors import PgdynoError
from pgdyno.stats.interval import estimate

CONFIDENCE = 0.95
# A thread that ran or waited for a CPU this share of the time had no more to give; the rest are
# the moments between the last answer of a batch of events and the next.
WANTED_MIN = 0.95


@dataclass(frozen=True, slots=True)
class Round:
    """One window against the null server."""

    transactions: int
    round_trips: float
    window_s: float
    cpu_s: float  # of the driver
    driver_wanted: float  # share of the window, of its busiest thread
    server_wanted: float | None


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


def ceiling_per_s(ceiling: Ceiling, threads: int) -> float:
    """Transactions a second that so many driver threads reach: they share nothing, so it scales."""
    return ceiling.transactions_per_s.centre / ceiling.threads * threads
