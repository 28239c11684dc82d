"""Few anchors joined to many short rounds: double sampling with Cochran's regression estimator.

Short windows are precise and wrong, in every round alike; anchors are right and dear. The log ratio
of two stages is that of their anchors, moved by how far the short windows of the anchored rounds
lie off those of all rounds:

    ratio = L_anchors + beta (S_all - S_anchored)

With beta = 1, the default, this is the mean of all short windows plus the mean of what the anchors
say is wrong with them. Both parts have their own spread, so that the interval is Student's by Welch
and Satterthwaite. The covariance of the parts is left out: where whole cycles scatter less than
short windows it is negative, and the interval a little too wide. Coverage: tests/method.

Source: W. G. Cochran, "Sampling Techniques", chapter 12 (regression estimators in double sampling).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy import special

from pgdyno.stats.interval import FloatArray
from pgdyno.stats.table import Table, log_tpm

METHOD = "anchors of whole checkpoint cycles joined to short rounds (Student, Welch-Satterthwaite)"
ANCHORS_MIN = 2  # one anchor has no spread


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Log ratios of many experiments with their intervals, each array of shape `(experiments,)`."""

    centre: FloatArray
    error: FloatArray  # standard error
    freedom: FloatArray  # degrees of freedom behind it
    low: FloatArray
    high: FloatArray
    p: FloatArray  # two-sided, of "no difference"


def join(
    whole: FloatArray,
    anchored: FloatArray,
    every: FloatArray,
    confidence: float,
    beta: float = 1.0,
) -> Joined:
    """Estimate the log ratio of each experiment over whole cycles.

    Args:
        whole: Log ratios of anchors, shape `(experiments, anchors)`, two anchors at least.
        anchored: Log ratios of the short windows of the same rounds, same shape.
        every: Log ratios of the short windows of all rounds, those included; shape
            `(experiments, rounds)`; as many as anchors: the anchors alone tell.
        confidence: Of the interval.
        beta: How far a whole cycle follows the short window of its round.
    """
    anchors, rounds = whole.shape[1], every.shape[1]
    assert anchors >= ANCHORS_MIN
    if rounds == anchors:  # nothing beside the anchors: their mean, and their spread
        anchored, every = np.zeros_like(anchored), np.zeros_like(every)
    correction = whole - beta * anchored
    centre = correction.mean(axis=1) + beta * every.mean(axis=1)
    of_anchors = correction.var(axis=1, ddof=1) / anchors
    of_rounds = beta**2 * every.var(axis=1, ddof=1) / rounds
    square = of_anchors + of_rounds
    below = of_anchors**2 / (anchors - 1) + of_rounds**2 / (rounds - 1)
    freedom = np.divide(square**2, below, out=np.full_like(square, rounds - 1.0), where=below > 0)
    error = np.sqrt(square)
    half = special.stdtrit(freedom, (1 + confidence) / 2) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(error > 0, np.abs(centre) / error, np.where(centre == 0, 0.0, np.inf))
    return Joined(
        centre=np.asarray(centre, dtype=np.float64),
        error=np.asarray(error, dtype=np.float64),
        freedom=np.asarray(freedom, dtype=np.float64),
        low=np.asarray(centre - half, dtype=np.float64),
        high=np.asarray(centre + half, dtype=np.float64),
        p=np.asarray(2 * special.stdtr(freedom, -t), dtype=np.float64),
    )


def expected_error(sd: float, correlation: float, anchors: int, rounds: int) -> float:
    """Standard error of the joined log ratio, of pairs with this spread, whole and short alike.

    With beta 1; `correlation` is that of whole and short log ratios within a round.
    """
    correction = 2 * (1 - correlation) / anchors
    both = -2 * (1 - correlation) / rounds
    return sd * sqrt(correction + 1 / rounds + both)


@dataclass(frozen=True, slots=True, eq=False)
class Cycles:
    """What is known of the whole cycles of a plan's stages."""

    whole: Table  # throughput over whole cycles, as anchors tell it; NaN: no anchor
    not_judged: Callable[[str, str], str | None]  # of stage and base: the reason, if they are not

    def joined(self, table: Table, stage: str, base: str, confidence: float) -> Joined | None:
        """The comparison of two stages over whole cycles; None: no anchors, or too few.

        A stage whose windows hold whole cycles has them in every round of `table`.
        """
        if not any((self.whole.row(name) > 0).any() for name in (stage, base)):
            return None
        rows = [table.row(stage), table.row(base)]
        cycles = [
            row if np.isnan(self.whole.row(name)).all() else self.whole.row(name)
            for name, row in zip((stage, base), rows, strict=True)
        ]
        used = (rows[0] > 0) & (rows[1] > 0)
        both = used & (cycles[0] > 0) & (cycles[1] > 0)
        if both.sum() < ANCHORS_MIN:
            return None
        every = (log_tpm(rows[0]) - log_tpm(rows[1]))[used]
        anchored = (log_tpm(rows[0]) - log_tpm(rows[1]))[both]
        whole = (log_tpm(cycles[0]) - log_tpm(cycles[1]))[both]
        return join(whole[np.newaxis], anchored[np.newaxis], every[np.newaxis], confidence)
