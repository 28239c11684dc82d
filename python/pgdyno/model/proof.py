"""Proof by intervention: probes that make a resource dearer or free, and what each block gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pgdyno.model.bounds import require_within
from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan
from pgdyno.model.wording import plural

Means = Literal["dearer", "added", "free", "nothing"]
WRITES_THAT_FLUSH = ("open_sync", "open_datasync")
"""Values of wal_sync_method with which writes flush themselves, which no library can touch."""
BLOCK_MIN_S = 2  # a second of it is lost to what the block before left behind
DEARER = 0.20
"""By so much a resource is made dearer: more bends the answer where two resources tie, less drowns
in noise."""


ROUND_TRIP_NS = 250_000
"""What is added to a round trip: about one network between the two more."""


@dataclass(frozen=True, slots=True)
class Slowdown:
    """Some seconds of a window in which each exchange with the server costs the driver more."""

    from_s: float
    until_s: float
    spin_ns: int = 0  # of CPU time
    delay_ns: int = 0  # before it is sent


@dataclass(frozen=True, slots=True)
class Probe:
    """One way to touch a resource while the load runs."""

    name: str
    resource: str  # in words, as a sentence names it; plural where `are` follows
    means: Means
    how: str  # what is done, a sentence
    misleads: str  # how it can, a sentence
    loses: str | None = None  # what a real server would lose that ran so; None: nothing
    counts: bool = False  # towards the sum: the resource is time, and no other probe has it too


@dataclass(frozen=True, slots=True)
class Design:
    """How probes are toggled within one server's life."""

    block_s: int = 4  # of each state
    dropped_s: int = 1  # at the begin of a block, not counted
    pairs: int = 4  # of each probe in a sitting: a block with it, and one without
    sittings: int = 3  # each on a fresh copy of the data, with a server of its own
    seed: int = 1  # of the order of probes and blocks
    prices: bool = False  # whether all combinations of free probes are made, once a pair

    def __post_init__(self) -> None:
        if self.block_s < BLOCK_MIN_S or not 0 < self.dropped_s < self.block_s:
            raise PlanError(
                f"a block of {self.block_s} s of which {self.dropped_s} s are dropped",
                f"Blocks take whole seconds, at least {BLOCK_MIN_S}, and keep at least one.",
            )
        if self.pairs < 1 or self.sittings < 1 or self.pairs * self.sittings < 2:
            raise PlanError(
                f"{plural(self.pairs, 'pair')} in each of {plural(self.sittings, 'sitting')}",
                "An interval takes two pairs of each probe at least.",
            )
        require_within("seed", self.seed, 0, None, "The order of probes follows from it.")


@dataclass(frozen=True, slots=True)
class Dose:
    """What a probe did to its resource in the counted part of a block."""

    units: float  # flushes, reads, requests; of CPU: 0
    spent_ns: float  # that they took, without what was added
    added_ns: float  # by the probe

    @property
    def factor(self) -> float | None:
        """By which the resource was dearer; None: it was not used."""
        return 1 + self.added_ns / self.spent_ns if self.spent_ns > 0 else None


@dataclass(frozen=True, slots=True)
class Block:
    """Some seconds of load, with probes on or without any."""

    probe: str  # that it belongs to, as one of a pair; "": one of all combinations
    on: tuple[str, ...]  # probes
    pair: int  # of this probe, or of all combinations, in the sitting; from 0
    from_s: int  # counted part, from the begin of the window
    to_s: int
    ended: float  # transactions that came to their end in it
    dose: Dose | None = None  # None: the probe does not tell


@dataclass(frozen=True, slots=True)
class Sitting:
    """The blocks of one server's life, in their order."""

    number: int  # from 1
    server: str
    blocks: tuple[Block, ...]
    outcome: str  # of the driver
    failed: int = 0  # transactions that ended with an error
    checkpoints: int = 0  # that completed meanwhile
    late_ns: int = 0  # the latest that a probe was toggled after its block began


@dataclass(frozen=True, slots=True)
class Effect:
    """What a probe did to throughput: with it / without it."""

    pairs: int
    ratio: float
    low: float  # interval of 95 %
    high: float
    factor: float | None  # by which its resource was dearer; None: not dearer, or not used
    units_per_s: float | None  # of the resource, in blocks without the probe; None: not told


@dataclass(frozen=True, slots=True)
class Elasticity:
    """How far throughput follows the price of a resource."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Ratio:
    """Throughput with something / without it."""

    value: float
    low: float  # interval of 95 %
    high: float


@dataclass(frozen=True, slots=True)
class Price:
    """What a resource costs among others: all combinations of them were made free."""

    probe: str
    first: Ratio  # free alone
    last: Ratio  # free as the last one, all others are free already
    share: Ratio  # mean over all orders in which they could become free (Shapley)
    exposes: str | None  # the probe that is worth most once this one is free; None: none is
    exposed: Ratio | None  # what that one is worth then


@dataclass(frozen=True, slots=True)
class Prices:
    """All of them; the shares multiply to `together`."""

    repetitions: int  # of all combinations
    together: Ratio  # all free
    each: tuple[Price, ...]  # dearest share first


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A probe that could not be made."""

    probe: str
    why: str  # a sentence


@dataclass(frozen=True, slots=True)
class ProofAsked:
    """What is to be proved: a stage of an earlier run, and by which probes."""

    plan: Plan
    stage: str
    run: str  # ident of the earlier run
    believed: str | None  # what diagnosis said of the stage there; None: it could not be asked
    probes: tuple[Probe, ...]
    exchange_cpu_ns: float | None  # that the driver took for one there; None: not known
    left_out: tuple[LeftOut, ...]
    design: Design

    @property
    def combined(self) -> list[str]:
        """Names of the probes of which all combinations are made; none unless that is asked for."""
        return [one.name for one in self.probes if one.means == "free" and self.design.prices]


@dataclass(frozen=True, slots=True)
class Proved:
    """A proof as far as it came: what is kept after each sitting."""

    asked: ProofAsked
    sittings: tuple[Sitting, ...] = ()
