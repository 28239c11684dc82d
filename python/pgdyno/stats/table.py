"""The stage x round table of a plan's throughput, and which of its trials look disturbed.

Missing and invalid trials are NaN and stay so: nothing is imputed, no outlier is removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import isfinite

import numpy as np
import numpy.typing as npt

from pgdyno.model.errors import PgdynoError
from pgdyno.model.wording import plural
from pgdyno.stats.interval import FloatArray

CLEAN_PLANS_WARNED_MAX = 0.02  # share of plans without interference that get a warning
CLEAN_DRAWS = 20_000
CLEAN_SEED = 19_930_101
FREE_MIN = 3  # residuals that are free to vary; of two, one is always far from the other


Attempt = tuple[int, int]
"""A round, and which measurement of it, from 1: rounds that broke may be measured again."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """How often a stage was tried, and where that gave no number that may be used."""

    tried: int = 0
    failed: frozenset[Attempt] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Throughput of each stage in each round."""

    stages: tuple[str, ...]  # in plan order
    rounds: tuple[int, ...]  # ascending
    tpm: FloatArray  # (stages, rounds); NaN: no valid trial; 0: nothing was completed
    attempts: Mapping[str, Attempts] = field(default_factory=dict)  # by stage; none: none failed
    left_out: Mapping[str, frozenset[int]] = field(default_factory=dict)  # rounds, see `ended`

    def row(self, stage: str) -> FloatArray:
        """Throughput of a stage, shape `(rounds,)`; an unknown stage is a bug."""
        return np.asarray(self.tpm[self.stages.index(stage)], dtype=np.float64)

    def only(self, stages: Sequence[str]) -> Table:
        """The same rounds of some of the stages."""
        rows = np.array([self.row(name) for name in stages])
        return replace(self, stages=tuple(stages), tpm=rows)

    def until(self, last: int) -> Table:
        """The rounds up to this one, and what failed in them."""
        kept = [index for index, number in enumerate(self.rounds) if number <= last]
        attempts = {
            stage: Attempts(one.tried, frozenset(a for a in one.failed if a[0] <= last))
            for stage, one in self.attempts.items()
        }
        left_out = {
            stage: frozenset(number for number in rounds if number <= last)
            for stage, rounds in self.left_out.items()
        }
        return Table(self.stages, self.rounds[: len(kept)], self.tpm[:, kept], attempts, left_out)

    def ended(self, stage: str) -> npt.NDArray[np.bool_]:
        """In which rounds its trial came to an end, well or badly; shape `(rounds,)`.

        Some end without a number for which the stage is not to blame: what they had is left out.
        """
        numbers = {round_ for round_, _ in self._failed(stage)} | self.left_out.get(stage, set())
        return ~np.isnan(self.row(stage)) | np.isin(self.rounds, sorted(numbers))

    def lost(self, stage: str, other: str) -> int:
        """Attempts that this stage failed in and the other one did not.

        Where both failed, neither is worse than the other: a full disk is nobody's fault.
        """
        return len(self._failed(stage) - self._failed(other))

    def failures(self, stage: str) -> str | None:
        """How many of its trials failed, e.g. `2 of 5 trials of tuned failed`; None: none did."""
        failed = len(self._failed(stage))
        tried = plural(self.attempts[stage].tried, "trial") if failed else ""
        return f"{failed} of {tried} of {stage} failed" if failed else None

    def _failed(self, stage: str) -> frozenset[Attempt]:
        return self.attempts.get(stage, Attempts()).failed


@dataclass(frozen=True, slots=True)
class Outlier:
    """A trial far from what its stage and its round let expect. It stays in the data."""

    stages: tuple[str, ...]  # two when only two exist: then either of them may be meant
    round: int
    mads: float  # distance in median absolute deviations of the plan's residuals
    limit_mads: float  # what 98 % of undisturbed plans of this size stay below
    change: float  # as a share of the throughput expected, e.g. -0.18


def table_of(trials: Mapping[tuple[str, int], float | None], stages: Sequence[str]) -> Table:
    """Arrange trials by stage and round.

    Args:
        trials: Transactions a minute by (stage, round). `None` or NaN, or no entry, is a trial
            that was not measured or is invalid.
        stages: Names in plan order; the first is the base of "against the first".

    Raises:
        PgdynoError: A stage is named twice or not at all, or a value is negative or infinite.
    """
    if not stages or len(set(stages)) != len(stages):
        raise PgdynoError(f"stages {list(stages)}, distinct names are needed, at least one")
    rounds = tuple(sorted({round_ for _, round_ in trials}))
    tpm = np.full((len(stages), len(rounds)), np.nan)
    for (stage, round_), value in trials.items():
        if stage not in stages:
            raise PgdynoError(f"trial of stage {stage}, known are {', '.join(stages)}")
        if value is None or np.isnan(value):
            continue
        if not isfinite(value) or value < 0:
            raise PgdynoError(f"stage {stage}, round {round_}: {value} tpm, 0 or more expected")
        tpm[stages.index(stage), rounds.index(round_)] = value
    return Table(tuple(stages), rounds, tpm)


def attempts_of(trials: Iterable[tuple[str, Attempt, bool]]) -> dict[str, Attempts]:
    """Count trials by stage.

    Args:
        trials: Stage, attempt, and whether it failed, of every trial that came to an end: those of
            rounds that were measured again, too. What was interrupted is no evidence.
    """
    found: dict[str, Attempts] = {}
    for stage, attempt, failed in trials:
        so_far = found.get(stage, Attempts())
        more = so_far.failed | {attempt} if failed else so_far.failed
        found[stage] = Attempts(so_far.tried + 1, more)
    return found


def log_tpm(tpm: FloatArray) -> FloatArray:
    """Natural logarithm; NaN where there is no positive throughput."""
    positive = np.where(tpm > 0, tpm, np.nan)
    return np.asarray(np.log(positive), dtype=np.float64)


def outliers(table: Table) -> tuple[Outlier, ...]:
    """Find trials that stage and round do not explain, to warn of interference.

    Stage and round effects are removed by medians (median polish), so that one disturbed trial does
    not hide in the mean it shifts. The limit is that of simulated undisturbed tables of the same
    size, because with three rounds a handful of MADs is nothing unusual. Rounds in which a stage is
    missing are left out.

    Returns:
        Farthest first; empty where the table is too small to tell: below three rounds, or below
        four of only two stages.
    """
    whole = np.flatnonzero((table.tpm > 0).all(axis=0))
    stages = len(table.stages)
    if (stages - 1) * (whole.size - 1) < FREE_MIN:
        return ()
    residual = _polish(log_tpm(table.tpm[:, whole])[np.newaxis])
    mad = float(_mad(residual)[0])
    if mad == 0:
        return ()
    limit = _limit_mads(stages, whole.size)
    distance = np.abs(residual[0]) / mad
    found = []
    for stage, column in np.argwhere(distance > limit):
        if stages == 2 and stage == 0:
            continue  # two stages: the residuals mirror each other, one warning names both
        found.append(
            Outlier(
                stages=table.stages if stages == 2 else (table.stages[stage],),
                round=table.rounds[whole[column]],
                mads=float(distance[stage, column]),
                limit_mads=limit,
                change=float(np.expm1(residual[0, stage, column] * (2 if stages == 2 else 1))),
            )
        )
    return tuple(sorted(found, key=lambda outlier: -outlier.mads))


def _polish(values: FloatArray) -> FloatArray:
    """Residuals after stage and round medians, shape `(tables, stages, rounds)`."""
    # Means first: they remove any stage and round effects exactly, so that what the medians leave
    # depends on the noise alone. Further sweeps of medians find no more.
    residual = values - values.mean(axis=2, keepdims=True)
    residual -= residual.mean(axis=1, keepdims=True)
    residual -= np.median(residual, axis=2, keepdims=True)
    residual -= np.median(residual, axis=1, keepdims=True)
    return np.asarray(residual, dtype=np.float64)


def _mad(residual: FloatArray) -> FloatArray:
    """Median size of the residuals that are free to vary, `(tables,)`.

    The polish makes the others zero, or nearly: of 3 x 3 residuals only the four largest tell.
    """
    _, stages, rounds = residual.shape
    # The rows of two stages mirror each other: one of them is all there is to know.
    size = np.abs(residual if stages > 2 else residual[:, :1]).reshape(residual.shape[0], -1)
    free = np.sort(size, axis=1)[:, -(stages - 1) * (rounds - 1) :]
    return np.asarray(np.median(free, axis=1), dtype=np.float64)


@lru_cache(maxsize=64)
def _limit_mads(stages: int, rounds: int) -> float:
    rng = np.random.default_rng((CLEAN_SEED, stages, rounds))
    residual = _polish(rng.standard_normal((CLEAN_DRAWS, stages, rounds)))
    farthest = np.abs(residual).max(axis=(1, 2)) / _mad(residual)
    return float(np.quantile(farthest, 1 - CLEAN_PLANS_WARNED_MAX))
