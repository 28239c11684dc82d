"""One window as the rules of diagnosis read it: its account, its counters, its load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from pgdyno.analysis.account_facts import Account, NoAccount
from pgdyno.model.plan import Telemetry


@dataclass(frozen=True, slots=True)
class Load:
    """What was asked of the server, and what of it was done."""

    arrivals: Literal["closed", "open"]
    connections: int  # of all databases
    due: int
    ended: int  # committed or rolled back
    failed: int
    skipped: int
    unanswered: int
    waits_share: float  # of a terminal's time, that it keys and thinks; 0: it always asks
    round_trips: float | None  # for each transaction; None: not told
    per_s: float  # transactions that ended


@dataclass(frozen=True, slots=True)
class Driver:
    """What the driver took, and could have given."""

    engine: str
    cpus: int  # of its host
    cpu_s: float | None  # None: not known
    wanted: float | None  # share of time the busiest thread ran or waited for a CPU; None: untold
    busiest: float | None  # share of time the busiest thread ran
    ceiling_share: float | None  # of what it reaches on this machine; None: not calibrated
    beside_server: bool  # on one host


@dataclass(frozen=True, slots=True)
class CheckpointSpan:
    """A checkpoint, seconds since the window began."""

    start_s: float
    end_s: float | None  # None: it went on
    sync_s: float | None


@dataclass(frozen=True, slots=True)
class WindowFacts:
    """Everything that rules may read of one window; what was not measured is not in it."""

    trial: int
    round: int
    stage: str
    window_s: float
    telemetry: Telemetry
    missing: tuple[str, ...]  # what could not be read, each with its reason
    account: Account | NoAccount
    load: Load
    driver: Driver
    grown: Mapping[str, float]  # counters, over the window
    gauges: Mapping[str, float]  # means
    highest: Mapping[str, float]  # of gauges
    settings: Mapping[str, str]  # as read back
    checkpoints: tuple[CheckpointSpan, ...] | None  # in the window; None: not known
    second: npt.NDArray[np.float64] = field(repr=False)  # middle of each, since the window began
    ended: npt.NDArray[np.float64] = field(repr=False)  # transactions in each
    costs: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict, repr=False)
    dead_share: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # begin, end
    remedies: Mapping[str, str] = field(default_factory=dict)  # by what could not be read
    client: frozenset[str] = frozenset()  # how it works already, as knobs say it: "face = pipeline"
    shortened: bool = False  # its length is that of --quick; the plan's is another

    def per_s(self, *names: str) -> float | None:
        """Counters together, a second; None: one of them was not sampled."""
        if self.window_s <= 0 or not self.has(*names):
            return None
        return sum(self.grown[name] for name in names) / self.window_s

    def per_transaction(self, *names: str) -> float | None:
        """The same for each transaction that ended."""
        if not self.load.ended or not self.has(*names):
            return None
        return sum(self.grown[name] for name in names) / self.load.ended

    def has(self, *names: str) -> bool:
        """Whether all these counters were sampled."""
        return all(name in self.grown for name in names)


@dataclass(frozen=True, slots=True)
class StageWindows:
    """The windows of a stage whose numbers may be used."""

    stage: str
    windows: Sequence[WindowFacts]
