"""What a report says of profiles: a tree of all stages, heavy functions, what was not seen."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.profile import Lack


@dataclass(frozen=True, slots=True)
class Branch:
    """What a stage had in each node of a tree, with all that the node called."""

    stage: str
    values: tuple[float, ...]
    errors: tuple[float, ...]  # standard errors
    whole: float  # of all roots together


@dataclass(frozen=True, slots=True)
class Tree:
    """Stacks of all stages in one tree; nodes that no stage had enough of are left out."""

    unit: str  # of values: "µs a transaction", "processes"
    functions: tuple[tuple[str, str], ...]  # name, module
    parents: tuple[int, ...]  # of each node; -1: it is a role
    names: tuple[int, ...]  # of each node: its function
    branches: tuple[Branch, ...]
    quantile: float  # standard errors by which two stages must differ


@dataclass(frozen=True, slots=True)
class Share:
    """One stage's share of a function."""

    own: float  # in the unit of the tree, in the function itself
    own_share: float  # of its role
    total: float  # with what it called


@dataclass(frozen=True, slots=True)
class Heavy:
    """A function that weighs, of one role."""

    role: str
    name: str
    module: str
    shares: tuple[Share, ...]  # in the order of the stages


@dataclass(frozen=True, slots=True)
class RoleShare:
    """What a role had, in each stage."""

    role: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """A function whose own time differs between two stages by more than chance."""

    stage: str
    base: str
    role: str
    name: str
    module: str
    base_value: float
    value: float
    low: float  # of the difference
    high: float


@dataclass(frozen=True, slots=True)
class Named:
    """How much of what was sampled has a name, all trials of a stage together."""

    stage: str
    who: str
    samples: int
    lost: int
    frames_named: float | None  # share; None: no frames
    whole: float | None  # share of stacks that reach where a process begins
    seen: float | None  # CPU time of the samples, by what the kernel says was used; None: not told
    unnamed: tuple[tuple[str, float], ...]  # module, share of all frames


@dataclass(frozen=True, slots=True)
class ProfileStage:
    """What the profiles of a stage hold."""

    stage: str
    profiles: int
    seconds: int
    transactions: float
    sample_us: float | None  # CPU time of a transaction that one sample stands for; None: no perf


@dataclass(frozen=True, slots=True)
class ProfileFacts:
    """All of it."""

    stages: tuple[ProfileStage, ...]
    tool: str
    unwinding: tuple[str, ...]
    cpu: Tree | None
    cpu_roles: tuple[RoleShare, ...]
    heavy: tuple[Heavy, ...]
    changed: tuple[Changed, ...]
    waiting: Tree | None
    waits: tuple[Heavy, ...]
    named: tuple[Named, ...]
    lacks: tuple[Lack, ...]
