"""What was looked at while the load ran, what that cost, and what could not be seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class TelemetryCost:
    """What looking took in the trials of a stage."""

    stage: str
    set: str  # none, default or full
    cpu_share: float  # of one processor, while it was looked; mean of the trials
    looks_per_s: float  # takes of all samplers together
    lost_share: float | None  # of the looks that were due; None: none was


@dataclass(frozen=True, slots=True)
class Looks:
    """How often was looked at something in the trials of a stage."""

    stage: str
    what: str  # a tally by its name, or all series
    samplers: int
    due_per_s: float
    reached_per_s: float
    lost_share: float | None  # of those that were due; None: none was


@dataclass(frozen=True, slots=True)
class SamplerUse:
    """What one look of a sampler took of CPU time, beside what it may."""

    name: str
    budget_us: float
    stages: tuple[float | None, ...]  # µs of a look, mean of the trials; None: it was not read

    @property
    def exceeded(self) -> bool:
        """Whether it took more in any stage."""
        return any(one is not None and one > self.budget_us for one in self.stages)


@dataclass(frozen=True, slots=True)
class Lacking:
    """Something that could not be seen, or no longer."""

    name: str
    reason: str  # a fact, in lower case and without full stop
    remedy: str  # what would add it, e.g. a GRANT; empty: nothing that is known
    stages: tuple[str, ...]  # where


@dataclass(frozen=True, slots=True)
class SampledLevel:
    """A series in the windows of a stage."""

    mean: float  # median of the trials: growth a second of a counter, mean of any other
    greatest: float | None  # of all samples in these windows; None: it is a counter


@dataclass(frozen=True, slots=True)
class SampledSeries:
    """One series, stage by stage."""

    name: str
    unit: str  # of a sample; a counter is told by its growth a second
    kind: str  # counter, gauge, or rate
    stages: tuple[SampledLevel | None, ...]  # in the order of the plan; None: not known


@dataclass(frozen=True, slots=True)
class SampledGroup:
    """Series that tell of one thing."""

    title: str
    series: tuple[SampledSeries, ...]  # that were not zero throughout
    zero: tuple[str, ...]  # names of those that were
    unknown: tuple[str, ...]  # names of those of which nothing is known in any window
    left_out: int  # further series: too many to be shown


@dataclass(frozen=True, slots=True)
class SampledTable:
    """A tally, or a table that was read at the ends of the windows."""

    name: str
    kind: Literal["tally", "snapshot"]
    columns: tuple[str, ...]
    stages: tuple[int | None, ...]  # keys that were met, or rows at the end; the most of a trial


@dataclass(frozen=True, slots=True)
class Sampled:
    """All that was sampled in the windows."""

    groups: tuple[SampledGroup, ...] = ()
    tables: tuple[SampledTable, ...] = ()


@dataclass(frozen=True, slots=True)
class TelemetryFacts:
    """Of all stages."""

    costs: tuple[TelemetryCost, ...]
    looks: tuple[Looks, ...]
    lacking: tuple[Lacking, ...]
    samplers: tuple[SamplerUse, ...] = ()
    sampled: Sampled = Sampled()
