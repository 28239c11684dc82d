"""A resolved plan: everything that shapes a result, before anything is touched."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from pgdyno.model.build import Build
from pgdyno.model.cycle import Checkpoints
from pgdyno.model.durability import NOT_KNOWN, Durability
from pgdyno.model.errors import PlanError
from pgdyno.model.fleet import Fleet
from pgdyno.model.looks import LOOKS, Stop
from pgdyno.model.pooler import Pooler
from pgdyno.model.profile import PROFILE_WARMUP_S
from pgdyno.model.proposal import Prediction
from pgdyno.model.record_json import JsonObject
from pgdyno.model.settings import Rung, Setting
from pgdyno.model.wording import listed
from pgdyno.model.workload import Share, Workload

__all__ = ["Estimate", "Plan", "Protocol", "Stage", "Target", "TargetKind", "Telemetry", "Trial",
           "Workload"]  # fmt: skip

StageFlag = Literal["guard", "unlogged", "lying_disk", "synchronous"]
STAGE_FLAGS: tuple[StageFlag, ...] = get_args(StageFlag)
"""What a stage says beside its settings, and a stage that builds on it too."""
TargetKind = Literal["embedded", "installed", "running"]
Telemetry = Literal["none", "default", "full"]
"""What is sampled while a load is driven: nothing, what costs below 1%, or all that can be."""


@dataclass(frozen=True, slots=True)
class Target:
    """The server that is measured."""

    kind: TargetKind
    bindir: str | None = None  # installed: folder of initdb and postgres
    conninfo: str | None = None  # running: without its password
    initdb: tuple[str, ...] = ()  # further arguments, e.g. ("--no-data-checksums",)
    transport: Literal["socket", "tcp"] = "socket"
    servers: tuple[str, ...] = ()  # running: of several servers all, instead of `conninfo`
    share: Share = "alike"  # what each of them has of the workload
    replica: str | None = None  # running: a standby that answers what only reads
    replicas: int = 0  # private clusters: how many such standbys are made for a trial

    @property
    def conninfos(self) -> tuple[str, ...]:
        """Of the servers that run already, in the order of their parts."""
        return self.servers or ((self.conninfo,) if self.conninfo is not None else ())


ROUNDS_MAX = 1000
"""Of a plan; an effect that needs more is not within reach."""
WINDOW_MIN_S = 1
"""Shorter windows are for tests of the driver."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """How a stage is measured."""

    rounds: int  # with stop = "decided": at most
    warmup_s: float
    window_s: float
    drain_s: float
    prewarm: bool  # tables and indexes are read into memory before the load
    margin: float  # stages whose ratio lies within +-margin are equivalent
    confidence: float
    lowest_rung: Rung  # stages below it are refused
    survive: bool = False  # trials that lost connections and got them back are valid
    crash_recovery: bool = False  # the server is killed after the load, and its recovery timed
    checked_rounds: int | None = None  # the first ones, whose trials are checked; None: all
    checkpoints: Checkpoints = "ignore"  # how windows follow them
    cycles: int = 2  # whole ones in each window, at least; with checkpoints = "cycles"
    anchors: int = 2  # first rounds whose trials are anchors; with checkpoints = "anchors"
    stop: Stop = "rounds"  # "decided": stages are measured until a look has decided them
    whole_rounds: int | None = None  # of the plan that stops so, of which --quick has the first
    reconnect_s: float = 60.0  # so long a running server that went away is waited for
    checkpoint_before: bool = True  # a CHECKPOINT ends before the load begins
    telemetry: Telemetry = "default"
    profile_s: float = 0.0  # of a further load after each window, while perf looks on; 0: none
    fleet: Fleet | None = None  # the hosts that the load comes from; None: one process of this one

    @property
    def profiling_s(self) -> float:
        """Seconds of load that a profile adds to a trial."""
        return PROFILE_WARMUP_S + self.profile_s + self.drain_s if self.profile_s else 0.0

    @property
    def rounds_max(self) -> int | None:
        """The most rounds of a plan that stops when it is decided; None: it does not.

        The first rounds of such a plan are judged as its looks judge them, also where --quick ends
        it after them: a first look is never called better where the plan would go on.
        """
        return self.rounds if self.stop == "decided" else self.whole_rounds

    @property
    def looks(self) -> tuple[int, ...]:
        """Rounds after which is looked whether to go on."""
        return self.judged_after if self.stop == "decided" else ()

    @property
    def judged_after(self) -> tuple[int, ...]:
        """Rounds whose verdicts are those of a look: fewer than there are looks with --quick."""
        planned = () if self.rounds_max is None else LOOKS[self.rounds_max]
        return tuple(one for one in planned if one <= self.rounds)


@dataclass(frozen=True, slots=True)
class EarlierReport:
    """Where the figures come from that stages are held against: another machine, another time."""

    source: str
    machine: str
    runs: int  # behind each figure


@dataclass(frozen=True, slots=True)
class Stage:
    """A named bundle of settings, resolved: all that it sets, also from the stages before."""

    name: str
    why: str
    afresh: bool  # does not build on the stage before
    settings: tuple[Setting, ...]  # complete, sorted by name
    rung: Rung
    rung_reason: str  # e.g. "synchronous_commit = off"
    workload: Workload  # what is driven in this stage; its data are those of the plan's
    client: tuple[Setting, ...] = ()  # keys of the workload that stages chose, sorted by name
    twin_of: str | None = None  # --aa: measures the same settings as this stage again
    build: Build | None = None  # what it runs on; None: the target's own installation
    earlier: dict[str, float] = field(default_factory=dict)  # metric -> what a report measured
    folder: str | None = None  # holds the cluster of its trials; None: pgdyno's own
    durability: Durability | None = None  # all that is known beforehand; None: an earlier pgdyno
    checkpoints: Checkpoints = "ignore"  # how its windows follow them
    expects: Prediction | None = None  # to the first stage, written down beforehand
    guard: bool = False  # torn pages are repaired from a standby
    standby: bool = False  # one that is made for its trials follows: the guard's, or a replica
    host: tuple[Setting, ...] = ()  # of the machine while its trials run, sorted by name
    unlogged: bool = False  # the workload's tables are: a crash of the server empties them
    pooler: Pooler | None = None  # between the driver and the server; None: none
    lying_disk: bool = False  # it acknowledges flushes and has made none
    synchronous: bool = False  # commits wait until the guard's standby has flushed them

    @property
    def values(self) -> dict[str, str]:
        """What it sets, of the server and of the machine, by name."""
        return {one.name: one.value for one in (*self.settings, *self.host)}

    @property
    def flags(self) -> dict[StageFlag, bool]:
        """What it says beside its settings of what it may lose."""
        return {key: getattr(self, key) for key in STAGE_FLAGS}

    @property
    def rung_known(self) -> str:
        """The rung, or `NOT_KNOWN` where nothing was found but not all could be looked at."""
        if self.durability is not None and self.durability.rung is None:
            return NOT_KNOWN
        return self.rung.value


@dataclass(frozen=True, slots=True)
class Trial:
    """One stage in one round. `ident` is the hash of everything that shapes its result."""

    number: int  # from 1, in the order of execution
    round: int  # from 1
    stage: str
    ident: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the plan will take, before it starts."""

    measuring_s: float  # warm-up and windows
    other_s: float  # loading, restoring, starting, checking
    disk_bytes: int  # needed at most at one time
    memory_bytes: int  # needed by the hungriest stage


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan that can be carried out on this host and this server."""

    name: str
    question: str
    source: str  # path of the TOML file, as given
    text: str  # the TOML itself
    target: Target
    workload: Workload  # what is loaded, and driven where a stage says nothing else
    protocol: Protocol
    stages: tuple[Stage, ...]
    trials: tuple[Trial, ...]
    estimate: Estimate
    quick: bool = False
    overrides: tuple[str, ...] = ()  # --set a.b=c, in order
    aa: bool = False
    folders: tuple[str, ...] = ()  # of --folder, for which stages are repeated
    notes: tuple[str, ...] = ()  # what a reader of the report must know of the plan
    reference: JsonObject = field(default_factory=dict)  # figures of others, to be shown beside
    earlier: EarlierReport | None = None  # of the figures that stages carry
    # dotted key of target, workload, protocol -> "default", the plan's path, "quick", "--set ..."
    origins: dict[str, str] = field(default_factory=dict)

    def stage(self, name: str) -> Stage:
        """The stage of this name; a missing one is a bug."""
        return next(stage for stage in self.stages if stage.name == name)

    def named(self, name: str) -> Stage:
        """The stage that somebody named.

        Raises:
            PlanError: There is none of this name.
        """
        names = [one.name for one in self.stages]
        if name not in names:
            raise PlanError(f"no stage is called {name!r}, there are {listed(names)}")
        return self.stage(name)
