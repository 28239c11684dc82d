"""The noise floor: what a plan reports where there is nothing to report.

Identical stages (`--aa`) are measured like different ones; the spread of their paired log ratios
is what an effect must stand out from. Their true ratio is known, 1: so twins that differ alike in
every round are noise as well, and the more of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, inf, log1p, sqrt

import numpy as np
from scipy import special

from pgdyno.model.errors import PgdynoError
from pgdyno.model.plan import ROUNDS_MAX
from pgdyno.model.wording import plural
from pgdyno.stats.interval import FloatArray
from pgdyno.stats.power import rounds_for, smallest_effect
from pgdyno.stats.table import Table, log_tpm

EFFECTS = (0.01, 0.03, 0.05, 0.10)
ROUNDS = (3, 5, 10)


@dataclass(frozen=True, slots=True)
class Needed:
    """Rounds to see an effect with 80% chance; `None`: more than 1000."""

    effect: float  # as a share, e.g. 0.03
    rounds: int | None
    rounds_worst: int | None  # should the spread be at the upper end of its interval


@dataclass(frozen=True, slots=True)
class Shown:
    """Smallest effect that a number of rounds shows with 80% chance."""

    rounds: int
    effect: float  # as a share
    effect_worst: float  # should the spread be at the upper end of its interval


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """Spread of a paired log ratio between identical stages."""

    sd: float
    sd_low: float
    sd_high: float  # ends of the interval of `sd`, normal noise taken for granted
    confidence: float
    freedom: int  # degrees of freedom behind `sd`
    widest: float  # largest |ratio - 1| between two identical trials of one round
    shown: tuple[Shown, ...]
    needed: tuple[Needed, ...]
    warnings: tuple[str, ...]


def noise_floor(
    table: Table, groups: Sequence[Sequence[str]], confidence: float = 0.95
) -> NoiseFloor:
    """Measure the noise floor from groups of identical stages.

    Args:
        table: Throughput, see `table_of`.
        groups: Names of stages with identical settings, two or more in each group.
        confidence: Of the intervals, those of the spread and those the rounds are counted for.

    Raises:
        PgdynoError: No group has two stages in two rounds, or all trials agree exactly.
    """
    squares, freedom, widest, left_out = 0.0, 0, 0.0, 0
    for group in groups:
        if len(set(group)) != len(group) or len(group) < 2:
            raise PgdynoError(f"group of identical stages {list(group)}, two names are needed")
        tpm = table.only(group).tpm
        whole = (tpm > 0).all(axis=0)
        left_out += int((~whole).sum())
        if whole.sum() < 2:
            continue
        logs = log_tpm(tpm[:, whole])
        apart = logs - logs.mean(axis=0)  # within rounds; between twins there is nothing to tell
        squares += 2 * float((apart**2).sum())  # a ratio has the noise of two
        freedom += (len(group) - 1) * logs.shape[1]
        widest = max(widest, float(np.expm1(np.ptp(logs, axis=0)).max()))
    if freedom == 0:
        raise PgdynoError(
            "fewer than 2 rounds hold all identical stages",
            hint="Measure the noise floor with at least 3 rounds.",
        )
    if squares == 0:
        raise PgdynoError("identical stages agree exactly, which measured data never do")
    sd = sqrt(squares / freedom)
    low, high = _sd_interval(sd, freedom, confidence)
    warnings = (
        [f"{plural(left_out, 'round is', 'rounds are')} left out: a trial is missing"]
        if left_out
        else []
    )
    if high > 2 * sd:
        warnings.append(
            f"the spread is known only within {low:.2%} to {high:.2%}: "
            f"{plural(freedom, 'degree')} of freedom; more rounds show more"
        )
    alpha = 1 - confidence
    return NoiseFloor(
        sd=sd, sd_low=low, sd_high=high, confidence=confidence, freedom=freedom, widest=widest,
        shown=tuple(_shown(rounds, sd, high, alpha) for rounds in ROUNDS),
        needed=tuple(_needed(effect, sd, high, alpha) for effect in EFFECTS),
        warnings=tuple(warnings),
    )  # fmt: skip


def _sd_interval(sd: float, freedom: int, confidence: float) -> tuple[float, float]:
    both = [(1 + confidence) / 2, (1 - confidence) / 2]
    ends: FloatArray = np.asarray(2 * special.gammaincinv(freedom / 2, both), dtype=np.float64)
    return sd * sqrt(freedom / ends[0]), sd * sqrt(freedom / ends[1])


def _shown(rounds: int, sd: float, sd_high: float, alpha: float) -> Shown:
    assert 2 <= rounds <= ROUNDS_MAX
    effects = [_share(smallest_effect(one, rounds, alpha)) for one in (sd, sd_high)]
    return Shown(rounds, effects[0], effects[1])


def _needed(effect: float, sd: float, sd_high: float, alpha: float) -> Needed:
    return Needed(
        effect, rounds_for(log1p(effect), sd, alpha), rounds_for(log1p(effect), sd_high, alpha)
    )


def _share(log_ratio: float) -> float:
    """A log ratio as a change; beyond e^700 a float cannot hold it, and nobody needs it to."""
    return expm1(log_ratio) if log_ratio < 700 else inf
