"""What a report says of a proof by intervention, as records; `analysis.proof` makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pgdyno.model.proof import Design, Effect, Elasticity, LeftOut, Prices, Probe

State = Literal["limits", "cleared", "gains", "nothing", "unsettled", "unused", "noise", "unknown"]
Whole = Literal["whole", "missing", "above", "wide"]


@dataclass(frozen=True, slots=True)
class ProbeFacts:
    """What a probe showed.

    limits: throughput follows the price of the resource; cleared: it does not. gains: it rises
    where the resource is free; nothing: it does not. unsettled: the interval holds both. unused:
    the load did not use the resource. noise: what blocks differ by with nothing changed. unknown:
    too few pairs.
    """

    probe: Probe
    state: State
    effect: Effect | None
    elasticity: Elasticity | None  # of what was made dearer


@dataclass(frozen=True, slots=True)
class Sum:
    """Whether the elasticities of all that takes time add up to 1, as they must.

    whole: the interval holds 1. missing: it ends below, something that takes time is no probe's.
    above: it begins above, resources tie. wide: it holds 1, and much else.
    """

    of: tuple[str, ...]  # resources, in words
    total: Elasticity
    state: Whole


@dataclass(frozen=True, slots=True)
class ProofFacts:
    """A proof, and what it amounts to."""

    ident: str
    pgdyno: str
    run: str  # ident of the earlier run
    stage: str
    believed: str | None  # by diagnosis, of the earlier run
    server: str
    design: Design
    sittings: int  # that were held
    probes: tuple[ProbeFacts, ...]
    left_out: tuple[LeftOut, ...]
    sum: Sum | None  # None: nothing that takes time was made dearer
    prices: Prices | None  # None: combinations were not made, or too few of them
    sentences: tuple[str, ...]  # the answer: what limits, what a free resource brings, how sure
    doubts: tuple[str, ...]  # what a reader must know before believing it
