"""The ceiling of a machine: what the driver reaches there against a server that does nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pgdyno.model.workload import Workload

WARMUP_S = 1.0  # before a window, or as long as the window where that is shorter
Limit = Literal["driver", "null server", "latency"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A quantity measured in several rounds, with the interval of its typical value."""

    centre: float
    low: float | None  # None: one round has no interval
    high: float | None
    n: int  # rounds
    confidence: float


@dataclass(frozen=True, slots=True)
class Machine:
    """What a ceiling depends on besides the driver itself."""

    cpu_model: str
    cpus: int
    kernel: str


@dataclass(frozen=True, slots=True)
class Round:
    """One window against the null server."""

    transactions: int
    round_trips: float
    window_s: float
    cpu_s: float  # of the driver
    driver_wanted: float  # share of the window, of its busiest thread
    server_wanted: float | None


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A calibration as far as it came: what is kept after each window."""

    workloads: tuple[Workload, ...]  # they differ e.g. in their face
    rounds: int  # windows for each
    window_s: float
    driver_cpus: tuple[int, ...]
    server_cpus: tuple[int, ...]
    machine: Machine
    pgdyno: str  # version, and commit where known
    started_unix_ns: int
    kept: bool  # whether its ceilings are for later reports
    measured: tuple[Round, ...] = ()  # round by round, in each the workloads in their order

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to be measured."""
        return len(self.measured) == self.rounds * len(self.workloads)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What the driver reached against the null server over a Unix socket, as fast as it could."""

    workload: str  # kind
    face: str
    connections: int
    threads: int  # of the driver
    transactions_per_s: Estimate
    round_trips_per_s: Estimate
    cpu_s_per_transaction: Estimate  # of the driver, user and system
    cpu_s_per_round_trip: Estimate
    round_trips_per_transaction: float
    driver_wanted: float  # share of the window that its busiest thread ran or waited for a CPU
    server_wanted: float | None  # the same of the null server; None: not measured
    limit: Limit  # what kept the rate from rising further
    driver_cpus: tuple[int, ...]
    server_cpus: tuple[int, ...]  # the same as the driver's where there is only one
    window_s: float
    machine: Machine
    pgdyno: str  # version, and commit where known
    measured_unix_ns: int

    @property
    def key(self) -> tuple[object, ...]:
        """Two ceilings of the same key replace each other."""
        return (
            self.machine, self.pgdyno, self.workload, self.face, self.connections, self.threads
        )  # fmt: skip

    @property
    def per_core_s(self) -> float:
        """Transactions for each second of CPU that the driver uses."""
        return 1 / self.cpu_s_per_transaction.centre
