"""Probes that are switched on and off while a load runs: their order, and what they say.

A pair is two blocks of one probe side by side, with it and without, in random order; what drifts
slowly does the same to both. Pairs of all probes take turns, so that none has the warm or the late
part of a window to itself. d = ln(rate with / rate without) of each pair goes into the interval of
`stats.interval`, which holds for two pairs as for fifty.

Elasticity is how far throughput follows the price of a resource, e = -d / ln(factor): 1 where it
follows wholly, 0 where it does not care. Throughput falls by a share s if all that takes time takes
longer by the same factor; so the elasticities of all that takes time add up to 1. Where two
resources tie, each dear step counts both, and the sum is above 1 by more the larger the step is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, exp, log, sqrt

import numpy as np

from pgdyno.model.proof import (
    Block,
    Design,
    Effect,
    Elasticity,
    Price,
    Prices,
    Ratio,
    Sitting,
)
from pgdyno.stats.interval import estimate

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Turn:
    """What a block is to be."""

    probe: str  # "": one of all combinations
    on: tuple[str, ...]
    pair: int


def turns(
    probes: Sequence[str], design: Design, sitting: int, free: Sequence[str] = ()
) -> tuple[Turn, ...]:
    """The blocks of a sitting, a function of the design's seed and the sitting's number.

    Args:
        probes: Names.
        design: How many pairs of each.
        sitting: From 1.
        free: Those of which all combinations are made as well, after the pairs of each round.
    """
    random = np.random.default_rng([design.seed, sitting])
    found: list[Turn] = []
    for pair in range(design.pairs):
        for index in random.permutation(len(probes)):
            probe, states = probes[index], ((), (probes[index],))
            first = int(random.integers(2))
            found += [Turn(probe, states[one], pair) for one in (first, 1 - first)]
        cells = combinations_of(free) if free else ()
        found += [Turn("", cells[index], pair) for index in random.permutation(len(cells))]
    return tuple(found)


def effect(sittings: Sequence[Sitting], probe: str) -> Effect | None:
    """What a probe did, over all its pairs.

    Args:
        sittings: Their blocks.
        probe: Its name.

    Returns:
        None: there are fewer than two pairs in which both blocks ended transactions.
    """
    pairs = [
        pair
        for sitting in sittings
        for pair in _pairs([block for block in sitting.blocks if block.probe == probe]).values()
        if len(pair) == 2 and all(block.ended > 0 for block in pair.values())
    ]
    if len(pairs) < 2:
        return None
    ratios = [log(_per_s(pair[True]) / _per_s(pair[False])) for pair in pairs]
    found = estimate(np.array([ratios]), CONFIDENCE)
    ratio, low, high = (exp(float(one[0])) for one in (found.centre, found.low, found.high))
    factor = _factor([pair[True] for pair in pairs])
    return Effect(
        len(pairs), ratio, low, high, factor, _units_per_s([pair[False] for pair in pairs])
    )


def elasticity(effect: Effect) -> Elasticity | None:
    """How far throughput follows; None: the resource was not made dearer."""
    if effect.factor is None or effect.factor <= 1:
        return None
    step = log(effect.factor)
    return Elasticity(-log(effect.ratio) / step, -log(effect.high) / step, -log(effect.low) / step)


def total(found: Sequence[Elasticity]) -> Elasticity:
    """The sum of independent elasticities; errors add as squares.

    Args:
        found: At least one.
    """
    value = sum(one.value for one in found)
    below = sqrt(sum((one.value - one.low) ** 2 for one in found))
    above = sqrt(sum((one.high - one.value) ** 2 for one in found))
    return Elasticity(value, value - below, value + above)


def combinations_of(probes: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """All of them, none and each alone included, in the order of the probes."""
    return tuple(chosen for size in range(len(probes) + 1) for chosen in combinations(probes, size))


def prices(sittings: Sequence[Sitting], probes: Sequence[str]) -> Prices | None:
    """What each free resource is worth alone, last, and on average over all orders.

    Each repetition of all combinations gives one value of each, so that their intervals have as
    many values as there are repetitions.

    Args:
        sittings: Their blocks.
        probes: Of which all combinations were made.

    Returns:
        None: fewer than two repetitions in which all blocks ended transactions.
    """
    rounds = [one for sitting in sittings for one in _rounds(sitting, len(probes))]
    if len(rounds) < 2 or not probes:
        return None
    everything = frozenset(probes)
    found = [_price(probe, probes, rounds) for probe in probes]
    together = _ratio([one[everything] - one[frozenset()] for one in rounds])
    each = sorted(found, key=lambda one: -one.share.value)
    return Prices(len(rounds), together, tuple(each))


def _rounds(sitting: Sitting, probes: int) -> list[dict[frozenset[str], float]]:
    """Log rates by what was free, of each repetition that is whole."""
    found: dict[int, dict[frozenset[str], float]] = {}
    for block in sitting.blocks:
        if not block.probe and block.ended > 0:
            found.setdefault(block.pair, {})[frozenset(block.on)] = log(_per_s(block))
    return [one for one in found.values() if len(one) == 2**probes]


def _price(
    probe: str, probes: Sequence[str], rounds: Sequence[Mapping[frozenset[str], float]]
) -> Price:
    others = [one for one in probes if one != probe]
    alone, none, everything = frozenset({probe}), frozenset[str](), frozenset(probes)

    def gain(one: Mapping[frozenset[str], float], free: frozenset[str]) -> float:
        return one[free | alone] - one[free]

    weights = {
        frozenset(chosen): 1 / (len(probes) * comb(len(others), len(chosen)))
        for chosen in combinations_of(others)
    }
    after = {
        other: _ratio([one[alone | {other}] - one[alone] for one in rounds]) for other in others
    }
    exposes = max(after, key=lambda other: after[other].low, default=None)
    if exposes is not None and after[exposes].low <= 1:
        exposes = None
    return Price(
        probe,
        first=_ratio([gain(one, none) for one in rounds]),
        last=_ratio([gain(one, everything - alone) for one in rounds]),
        share=_ratio([sum(weight * gain(one, free) for free, weight in weights.items())
                      for one in rounds]),
        exposes=exposes,
        exposed=after[exposes] if exposes is not None else None,
    )  # fmt: skip


def _ratio(logs: Sequence[float]) -> Ratio:
    found = estimate(np.array([logs]), CONFIDENCE)
    return Ratio(*(exp(float(one[0])) for one in (found.centre, found.low, found.high)))


def _pairs(blocks: Sequence[Block]) -> Mapping[int, dict[bool, Block]]:
    found: dict[int, dict[bool, Block]] = {}
    for block in blocks:
        found.setdefault(block.pair, {})[bool(block.on)] = block
    return found


def _per_s(block: Block) -> float:
    return block.ended / (block.to_s - block.from_s)


def _factor(blocks: Sequence[Block]) -> float | None:
    """The mean factor, in logs as it is used."""
    factors = [one.dose.factor for one in blocks if one.dose is not None]
    known = [one for one in factors if one is not None]
    return exp(float(np.mean(np.log(known)))) if known else None


def _units_per_s(blocks: Sequence[Block]) -> float | None:
    known = [(one.dose.units, one.to_s - one.from_s) for one in blocks if one.dose is not None]
    return sum(units for units, _ in known) / sum(s for _, s in known) if known else None
