"""A load that comes from several hosts: which they are, what each did, and how they kept time."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.client import Client

OVERLAP_MIN = 0.999
"""Share of the window in which all hosts drove, below which its numbers must not be used."""
LOST_AFTER_S = 5.0
"""A host says something twice a second; one that was silent for so long is lost."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """The hosts of a load, as a plan names them; each drives a part of all terminals."""

    hosts: tuple[str, ...]  # e.g. "local:a", "netns:client", "ssh://bench@b:2222"
    python: str = "python3"  # that has pgdyno, on hosts that are reached by SSH
    ssh_config: str | None = None  # a file for `ssh -F`; None: the user's own
    degraded: bool = False  # the load goes on without hosts that were lost in the window


@dataclass(frozen=True, slots=True)
class Machine:
    """What a host says of itself before it drives anything."""

    pgdyno: str  # version
    contract: int  # version of what crosses between Python and the core
    core: str  # hash of the core's file
    python: str  # version
    kernel: str  # release
    boot: str  # of the kernel, by which processes of one machine are known
    network: str  # namespace, by which hosts of one kernel are told apart
    cpus: int  # that the driver may use
    descriptors_max: int  # files and sockets that it may open


@dataclass(frozen=True, slots=True)
class Offset:
    """How far a host's steady clock is ahead of the head's, measured by a question and its answer.

    The true offset lies within the bound on either side: half of the time that passed on the way.
    """

    at_ns: int  # of the head's steady clock
    offset_ns: int
    bound_ns: int

    @property
    def ahead_s(self) -> float:
        """The offset in seconds."""
        return self.offset_ns / 1e9


@dataclass(frozen=True, slots=True)
class HostKind:
    """One kind of transaction, as one host saw it; histograms as in `KindResult`."""

    kind: str
    ended: int  # came to their end in the window
    response: str
    service: str
    queue: str
    response_ns: dict[str, int]
    service_ns: dict[str, int]
    queue_ns: dict[str, int]


@dataclass(frozen=True, slots=True)
class NetworkCard:
    """What went over one network card of a host between two readings."""

    name: str
    received_bytes: int
    sent_bytes: int
    speed_bits_s: int  # as it says; 0: it does not, as virtual ones


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a whole host did while its driver drove the window."""

    seconds: float  # between both readings
    cpu_busy_s: float  # of all its CPUs
    cpu_total_s: float
    cpu_ours_s: float  # of the driver's process
    carriers_cpu_s: dict[str, float]  # of processes that carry lines to the head: "ray", "ssh"
    cards: tuple[NetworkCard, ...]  # the one that carried most; none: only loopback was used

    @property
    def idle_share(self) -> float | None:
        """Of all CPU time of the host; None: too little passed to say."""
        if self.cpu_total_s <= 0:
            return None
        return min(1.0, max(0.0, 1 - self.cpu_busy_s / self.cpu_total_s))

    @property
    def card_share(self) -> float | None:
        """What its busiest card carried in one direction, of its speed; None: not known."""
        if not self.cards or not self.cards[0].speed_bits_s or self.seconds <= 0:
            return None
        card = self.cards[0]
        bits = 8 * max(card.received_bytes, card.sent_bytes)
        return bits / self.seconds / card.speed_bits_s


@dataclass(frozen=True, slots=True)
class HostResult:
    """What one host did in a trial."""

    name: str
    machine: Machine
    connections: int  # those with a replica among them
    terminals: int
    offsets: tuple[Offset, Offset]  # before the begin, and after the end
    window_ns: tuple[int, int]  # from when it drove to the end, of the head's steady clock
    begun_late_ns: int  # from the instant that it was told to when its threads knew
    kinds: tuple[HostKind, ...]
    client: Client
    late_ns: dict[str, int]  # how late its schedule noticed due times, at a glance
    requests: int  # of the whole run, in its part of the stream's digest
    digest: str
    around: Surroundings | None = None  # None: not read

    @property
    def ended(self) -> int:
        """Transactions that came to their end in the window."""
        return sum(kind.ended for kind in self.kinds)

    @property
    def bound_ns(self) -> int:
        """How far its begin and end may lie from where they are told."""
        return max(one.bound_ns for one in self.offsets)

    @property
    def drift_ppm(self) -> float:
        """By how much faster its steady clock went than the head's, between both measurements."""
        before, after = self.offsets
        passed_ns = after.at_ns - before.at_ns
        return (after.offset_ns - before.offset_ns) / passed_ns * 1e6 if passed_ns > 0 else 0.0

    @property
    def drift_bound_ppm(self) -> float:
        """Within which the drift is known: two offsets that are known to their bounds."""
        before, after = self.offsets
        passed_ns = after.at_ns - before.at_ns
        return (before.bound_ns + after.bound_ns) / passed_ns * 1e6 if passed_ns > 0 else 0.0


@dataclass(frozen=True, slots=True)
class FleetResult:
    """How the hosts of a trial drove together."""

    hosts: tuple[HostResult, ...]
    lost: tuple[str, ...] = ()  # sentences without full stop: who, when, how it was noticed
    whole: bool = True  # False: windows end with the last request, each host's with its own
    went_on: bool = False  # without those that were lost, as the plan asks
    terminals_lost: int = 0  # of them
    connections_lost: int = 0

    @property
    def is_degraded(self) -> bool:
        """Whether its numbers are those of the hosts that were left, and of another load."""
        return self.went_on and bool(self.lost)

    @property
    def overlap(self) -> float:
        """The share of the window in which all hosts drove, at least."""
        if not self.hosts:
            return 0.0
        latest = max(one.window_ns[0] + one.bound_ns for one in self.hosts)
        ends = [one.window_ns[1] - one.bound_ns for one in self.hosts]
        end = min(ends) if self.whole else max(ends)
        length = max(one.window_ns[1] for one in self.hosts) - min(
            one.window_ns[0] for one in self.hosts
        )
        return max(0.0, (end - latest) / length) if length > 0 else 0.0

    @property
    def skew_ns(self) -> int:
        """How far apart two hosts may have begun, at most."""
        begins = [(one.window_ns[0], one.bound_ns) for one in self.hosts]
        if len(begins) < 2:
            return 0
        latest = max(at_ns + bound_ns for at_ns, bound_ns in begins)
        return latest - min(at_ns - bound_ns for at_ns, bound_ns in begins)
