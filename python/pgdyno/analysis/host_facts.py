"""What a report says of the hosts that a load came from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostRow:
    """One host in all finished rounds of a stage; medians, and of times the worst round."""

    stage: str
    host: str
    connections: int
    terminals: int
    rounds: int
    per_s: float  # transactions that came to their end, median
    share: float  # of all hosts' transactions, median
    cpu_share: float  # of the CPUs that it may use, median
    cpu_us: float  # of CPU for a transaction, median
    wanted: float  # share of time that its busiest thread ran or waited for a CPU, the worst round
    late_p999_ns: int  # how late it noticed due times, the worst round
    begun_late_ns: int  # from its instant to when its threads knew, the worst round
    bound_ns: int  # within which its clock is known, the worst round
    drift_ppm: float  # of its clock against the head's, furthest from 0
    drift_bound_ppm: float  # within which that is known, the same round
    unlike: float | None  # by which share its service time differs, median; None: nothing to say
    ceiling_per_s: float | None  # what its driver could have reached, least; None: not known
    ceiling_share: float | None  # of that it reached, the worst round
    card: str  # the network card that carried most, with its share of the speed, the worst round
    beside: float | None  # of its CPUs used by others than the driver, the worst round
    carriers: dict[str, float]  # CPUs that carried lines to the head took in the window, most
    limit: str  # was it the limit? clear | finding | unknown, of the most doubtful round
    limit_fact: str
    remarks: tuple[str, ...]  # what is unlike the others, each a clause


@dataclass(frozen=True, slots=True)
class FleetRow:
    """How the hosts of a stage drove together, the worst of its finished rounds."""

    stage: str
    hosts: int
    overlap: float  # share of the window in which all drove, at least
    skew_ns: int  # between the begins of two hosts, at most


@dataclass(frozen=True, slots=True)
class DegradedRow:
    """A trial that went on without hosts that were lost, as the plan asks: compared with nothing.

    Its numbers are of the hosts that were left. What a lost one had asked for until then the server
    did, and nobody counted.
    """

    trial: int
    round: int
    stage: str
    lost: tuple[str, ...]  # sentences without full stop
    hosts: int  # that were left
    terminals_lost: int
    connections_lost: int
    throughput: float | None
    tpm_total: float | None


@dataclass(frozen=True, slots=True)
class FleetFacts:
    """The hosts of a run."""

    stages: tuple[FleetRow, ...]
    hosts: tuple[HostRow, ...]
    machines: tuple[tuple[str, str], ...]  # host, and what it is
    degraded: tuple[DegradedRow, ...] = ()
