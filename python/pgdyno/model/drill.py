"""Drills: disasters rehearsed on the disks that one recorded load could have left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pgdyno.model.bounds import require_within
from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan
from pgdyno.model.repair import RepairReport
from pgdyno.model.wording import plural

State = Literal["whole", "lost", "damaged", "dead"]
"""What came back: all of it; less than was acknowledged; what contradicts itself; nothing."""
Down = Literal["ended", "hangs", "recovers", "waits"]
"""Its postmaster is gone; runs, and nobody recovers; runs, and somebody still does; or commits wait
for a standby that is gone."""


@dataclass(frozen=True, slots=True)
class Device:
    """What a disk is like; see `docs/concepts/power-cuts.md`."""

    sector_bytes: int = 512
    forgets_s: float = 0.0  # it acknowledges flushes and forgets what came so late
    written_back_s: float | None = None  # what is older needs no sync
    names_ordered: bool = True  # one journal, as XFS and ext4 have it


AS_WRITTEN = Device(written_back_s=0.0)
"""What a kernel that lives on keeps: all that was written."""


@dataclass(frozen=True, slots=True)
class NamedBlock:
    """A block of 8 KiB of which something was lost."""

    path: str  # of its file, in the data directory
    block: int
    sectors_open: int
    sectors_lost: int


@dataclass(frozen=True, slots=True)
class Spared:
    """What is not lost, though it was drawn so."""

    names: bool = False  # all names and sizes
    blocks: tuple[tuple[int, int], ...] = ()  # from, to (not included), of those that lose
    named_max: int = 0  # blocks that lost something, and are to be named


@dataclass(frozen=True, slots=True)
class Made:
    """How much of a disk was left to chance, and what came of it."""

    names_open: int
    names_lost: int
    sectors_open: int
    sectors_lost: int
    blocks_torn: int
    blocks_lost: int = 0  # that were to lose something, before any was spared
    named: tuple[NamedBlock, ...] = ()  # the first that lost something, as many as were asked for


ServerProcess = Literal["postmaster", "client backend", "checkpointer"]
"""As `pg_stat_activity` calls them, where it does."""


Recorder = Literal["mount", "library"]
"""What records a disk: a file system that is mounted over it, or a library in its server."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What a device does for a while, under a load that goes on."""

    calls: Literal["write", "grow", "sync"]  # that meet it; grow: those that need new room
    answer: Literal["error", "full", "nothing"]  # EIO, ENOSPC, or none until it is over
    seconds: float  # from the first call on that meets it
    folder: str | None = None  # only below this folder of the data directory; None: anywhere
    elsewhere: bool = False  # everywhere but there


@dataclass(frozen=True, slots=True)
class Standing:
    """A streaming standby that a load has, and what becomes of the two."""

    lost: Literal["primary", "standby", "both"]  # every process of it ends at once
    synchronous: bool = False  # commits wait for it
    behind_s: float = 0.0  # so long before, nothing is sent to it

    @property
    def takes_over(self) -> bool:
        """Whether it is promoted, and what is looked at; else the primary's disk is."""
        return self.lost == "primary"


@dataclass(frozen=True, slots=True)
class Disaster:
    """What strikes, at an instant of the load."""

    name: str
    what: str  # happens, a sentence
    device: Device
    again: bool = False  # it strikes once more, while the server recovers from the first time
    # These strike the load itself, so that each cut has a load of its own.
    fault: Fault | None = None  # of the disk
    kills: ServerProcess | None = None  # by SIGKILL, as the kernel does where memory is short
    starves: bool = False  # a session asks for more memory than its cgroup may have
    cuts: bool = False  # the power of the disk in use goes, and the disk itself is handed back
    standby: Standing | None = None  # None: the load has none

    @property
    def is_live(self) -> bool:
        """Whether it strikes a load that goes on, and not a disk that was made of its record."""
        faulty = self.fault is not None or self.kills is not None
        return faulty or self.starves or self.cuts or self.standby is not None


RECORD_MIN_GIB = 0.1
"""Of a record: less holds no data to begin with."""
MINUTES_MIN = 0.1
"""Of a drill: less is over before a load is recorded."""


@dataclass(frozen=True, slots=True)
class DrillDesign:
    """What strikes, how often, and into how much load."""

    disasters: tuple[str, ...] = ("crash", "power")
    cuts: int = 10  # of each disaster, for each stage
    load_s: float = 10.0  # that is recorded of each stage
    seed: int = 1  # of instants, and of what each disk keeps
    shrinks: bool = False  # whether the first harm of each kind is made as small as it can be
    record_max_gib: float = 8.0  # for each stage, the data that it begins with included
    recorder: Recorder | None = None  # None: a mount where one is possible
    minutes: float | None = None  # for all of it, and again when it is resumed; None: as it takes

    def __post_init__(self) -> None:
        if self.cuts < 1 or self.load_s < 1 or not self.disasters:
            raise PlanError(
                f"{plural(self.cuts, 'cut')} of {plural(len(self.disasters), 'disaster')} into"
                f" {self.load_s:g} s of load",
                "A drill takes a disaster, a cut, and a second of load to cut into.",
            )
        require_within("seed", self.seed, 0, None, "Instants and disks follow from it.")
        require_within(
            "record_max_gib", self.record_max_gib, RECORD_MIN_GIB, None, "It is told in GiB."
        )
        if self.minutes is not None:
            require_within("minutes", self.minutes, MINUTES_MIN, None, "A cut takes some seconds.")


@dataclass(frozen=True, slots=True)
class Gain:
    """What a stage brought in an earlier run: its throughput / that of the first stage."""

    stage: str
    base: str
    ratio: float
    low: float
    high: float
    n: int  # paired rounds
    verdict: str


@dataclass(frozen=True, slots=True)
class Gains:
    """Of an earlier run of the same stages."""

    run: str  # its ident
    headline: str  # what is compared, e.g. NOPM
    each: tuple[Gain, ...]  # the first stage, which all others are compared with, is missing
    confidence: str = ""  # of its report; empty: an earlier pgdyno did not ask


@dataclass(frozen=True, slots=True)
class DrillAsked:
    """What is to be rehearsed."""

    plan: Plan
    stages: tuple[str, ...]
    disasters: tuple[Disaster, ...]
    design: DrillDesign
    gains: Gains | None = None  # None: no run was named that tells them


@dataclass(frozen=True, slots=True)
class Outage:
    """How a disaster that struck the load itself kept it from committing."""

    seconds: float  # the longest time without a commit, from the disaster on; of one that lasts:
    # until the load ended
    # The server is gone, does not come back within `drills.load.BACK_S` of the load's end, or its
    # commits wait for a standby that is gone: somebody has to do something.
    needs_somebody: bool
    down: Down | None = None  # in what way; None: it is not, or an older run file does not tell
    waited_s: float | None = None  # for one that hangs or recovers, since the load ended


@dataclass(frozen=True, slots=True)
class RecordedLoad:
    """The load of a stage, as it was recorded."""

    stage: str
    server: str
    acknowledged: int  # commits, from the begin to the end
    seconds: float
    record_bytes: int


@dataclass(frozen=True, slots=True)
class Cut:
    """One disaster: the disk that it left, and what the server made of it."""

    stage: str
    disaster: str
    number: int  # from 1, of this disaster for this stage
    seed: int  # makes the same disk again, of the same record
    at_s: float  # since the load began
    made: Made
    state: State
    acknowledged: int  # commits until then
    uncertain: int  # commits that were under way: they may be there or not
    lost: int = 0  # acknowledged commits that are gone
    lost_s: float = 0.0  # since the first of them was acknowledged
    recovery_s: float | None = None  # until the server answered; None: it does not
    reasons: tuple[str, ...] = ()  # of any state but "whole", sentences
    outage: Outage | None = None  # None: it struck no load that goes on
    met: int | None = None  # calls that met the fault; None: there is none
    repair: RepairReport | None = None  # of a guarded stage; None: there was none, or it refused
    emptied: int = 0  # unlogged tables that had lost all rows


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The smallest loss found that does the same harm as a cut."""

    stage: str
    disaster: str
    number: int
    tried: int  # disks
    names: bool  # whether names or sizes must be lost for it
    blocks: tuple[NamedBlock, ...]
    blocks_lost: int  # of the cut itself
    state: State
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Control:
    """A fault that was planted, and must be found."""

    stage: str
    what: str  # was done, a sentence
    found: str | None  # what the checks said; None: nothing, so that they prove nothing


@dataclass(frozen=True, slots=True)
class Drilled:
    """A drill as far as it came: what is kept after each cut."""

    asked: DrillAsked
    loads: tuple[RecordedLoad, ...] = ()
    cuts: tuple[Cut, ...] = ()
    controls: tuple[Control, ...] = ()
    shrunk: tuple[Shrunk, ...] = ()
    out_of_time: bool = False  # cuts are left, and its minutes were over
