"""The account of a window's session time: what sessions did, in parts that add up to all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

RUNNING = "running"
WANTS_CPU = "wants_cpu"
IN_FLIGHT = "client_in_flight"
IDLE = "client_idle"
UNDIVIDED = "client"
UNTOLD = "untold"
"""Parts that are no class of wait events: on a CPU; runnable without one; waiting for the client
with a request of ours under way, and without; the same where the driver does not tell them apart;
neither waiting for an event nor on a CPU nor wanting one."""

PARTS = {
    RUNNING: "running",
    WANTS_CPU: "wanting a CPU",
    IN_FLIGHT: "waiting for the client, a request under way",
    IDLE: "waiting for the client, nothing asked",
    UNDIVIDED: "waiting for the client",
    UNTOLD: "doing what the server does not tell",
    "flush": "waiting for a flush of WAL",
    "wal_write": "waiting until WAL is written",
    "wal_insert": "waiting to put WAL into its buffers",
    "row": "waiting for a row",
    "lock": "waiting for a lock of an object",
    "lock_table": "waiting for the table of locks",
    "read": "waiting until a page is read",
    "write": "waiting until a page is written",
    "page": "waiting for the content of a page",
    "mapping": "waiting for the table of buffers",
    "pin": "waiting until others let go of a page",
    "extend": "waiting until a table has grown",
    "snapshot": "waiting to begin, to end or to look at transactions",
    "slru": "waiting for states of transactions",
    "predicate": "waiting to note what was read",
    "spin": "waiting for a spinlock",
    "vacuum": "waiting as vacuum paces itself",
    "replication": "waiting for a standby",
    "spill": "waiting for temporary files",
    "parallel": "waiting for parallel workers",
    "checkpoint": "waiting for a checkpoint",
    "archive": "waiting for the archive",
    "statistics": "waiting to hand in counts",
    "notify": "waiting for NOTIFY",
    "sleep": "sleeping, as was asked",
    "idle": "having nothing to do",
    "extension": "waiting for an extension",
    "other": "waiting for something rare",
}
"""What they are called, and the classes of waits."""

DRAWS = 500
"""How often seconds are drawn anew for an interval."""

Draws = npt.NDArray[np.float64]
"""The estimate, then what seconds drawn anew give: shape `(1 + draws,)`."""


@dataclass(frozen=True, slots=True)
class Account:
    """Session time of one window, in sessions on average: divided by seconds, it is time."""

    sessions: float  # that were there, on average
    looks: int
    seconds: int
    parts: Mapping[str, Draws]  # as they were met: they add up to `sessions`
    roots: Mapping[str, Draws]  # the same, waits moved to what their holders did
    moved: Mapping[str, Draws]  # of `roots`: what came there from waits for locks
    holders_seen: int  # looks at a session in a queue whose head was seen to do something
    in_flight: float | None  # connections with a request under way, by the driver; None: not told
    cpu_known: bool  # the kernel told what sessions ran, and waited to run
    excess: float  # of the kernel's account, that no sample has room for
    by_statement: tuple[StatementTime, ...]
    inside: Mapping[str, Draws] = field(default_factory=dict)
    """Of running and wanting a CPU: what samples showed as these waits, as they were met."""

    def share(self, *names: str, root: bool = True) -> Draws:
        """Of all session time: parts together."""
        source = self.roots if root else self.parts
        zero = np.zeros_like(next(iter(self.parts.values())))
        total = np.sum([source.get(name, zero) for name in names], axis=0) if names else zero
        return np.asarray(total / self.sessions, dtype=np.float64)

    def inside_share(self, name: str) -> Draws:
        """Of all session time: running and wanting a CPU while samples showed this wait."""
        zero = np.zeros_like(next(iter(self.parts.values())))
        return np.asarray(self.inside.get(name, zero) / self.sessions, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class StatementTime:
    """Where the time of one statement goes, in sessions on average."""

    kind: str
    statement: str
    in_flight: float | None  # by the driver: from its request to its answer; None: not told
    server: Mapping[str, float]  # by class of waits, `cpu` and `cpu_wait`, as they were met

    @property
    def active(self) -> float | None:
        """Sessions that were met with it; None: the server calls what is sent at once otherwise."""
        return None if "+" in self.statement and not self.server else sum(self.server.values())


@dataclass(frozen=True, slots=True)
class NoAccount:
    """Why there is none."""

    reason: str


def drawn_anew(rng: np.random.Generator, size: int) -> npt.NDArray[np.int64]:
    """Places of a sample as it is, then of samples drawn from it, shape `(1 + DRAWS, size)`."""
    return np.vstack([np.arange(size), rng.integers(size, size=(DRAWS, size))])


def quantiles(draws: Draws, confidence: float = 0.95) -> tuple[float, float, float]:
    """Low end, estimate and high end."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws[1:] if draws.size > 1 else draws, [tail, 1 - tail])
    return float(min(low, draws[0])), float(draws[0]), float(max(high, draws[0]))


def largest(parts: Mapping[str, Draws], besides: Sequence[str] = ()) -> list[tuple[str, float]]:
    """Parts by their estimate, the largest first."""
    found = [(name, float(draws[0])) for name, draws in parts.items() if name not in besides]
    return sorted(found, key=lambda one: -one[1])
