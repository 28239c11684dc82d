"""Two runs of different days: how far apart they are, and how sure that can be.

Rounds of one run share a session: the same boot, the same placement in memory, the same neighbours.
What a session does to all of its rounds does not cancel between two runs, and no number of rounds
within a run tells how large it is. It is measured from runs of the same thing on several days: the
spread of their means holds the session and what is left of the rounds' own noise.

The unit is a run: the mean of the logarithms of its rounds. The ratio of two runs has the error
sd x sqrt(2) and Student's t with the degrees of freedom of the spread. Where a run has fewer rounds
than those that the spread comes from, what its mean is noisier by is added. The interval is exact
for normal noise of the same size in all runs; of a run that is among those that tell the spread it
is a little too wide. Measured rates: docs/concepts/statistics.md, "Runs of different days".

Source: Student's t for the difference of two means, their variance known by `freedom` degrees; e.g.
G. E. P. Box, J. S. Hunter, W. G. Hunter, "Statistics for Experimenters", chapter 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean

from scipy import special

from pgdyno.model.errors import PgdynoError
from pgdyno.model.wording import plural
from pgdyno.stats.measured import SD_MEASURABLE_MIN
from pgdyno.stats.verdict import Verdict

RUNS_MIN = 3
"""Runs of one stage that a spread between sessions takes: of two, it may be anything."""
_FOUND_SD = 0.8416  # the normal quantile of an 80 % chance


@dataclass(frozen=True, slots=True)
class RunMean:
    """What one run says of a stage."""

    log_mean: float  # of the throughputs of its rounds
    rounds: int
    squares: float  # summed deviations of the logarithms from their mean, squared


@dataclass(frozen=True, slots=True)
class SessionNoise:
    """What runs of one thing differ by from day to day."""

    sd: float  # of the mean of a run, as a log ratio
    sd_low: float
    sd_high: float  # ends of the 95 % interval of `sd`
    freedom: int
    runs: int
    rounds: float  # of each run, by the harmonic mean
    within: float  # variance of a round within its run; 0: each has one round


@dataclass(frozen=True, slots=True)
class Apart:
    """One run against another of another session."""

    ratio: float
    low: float
    high: float
    confidence: float
    p: float  # two-sided, of "no difference"


def run_mean(throughputs: Sequence[float]) -> RunMean:
    """What the rounds of a run say together.

    Raises:
        PgdynoError: There is no round, or one completed nothing.
    """
    if not throughputs or min(throughputs) <= 0:
        few = "no round" if not throughputs else "a round that completed nothing"
        raise PgdynoError(f"a run with {few} has no mean to compare")
    logs = [log(one) for one in throughputs]
    mean = fmean(logs)
    return RunMean(mean, len(logs), sum((one - mean) ** 2 for one in logs))


def session_noise(groups: Sequence[Sequence[RunMean]]) -> SessionNoise:
    """The spread between sessions, from runs that measured the same.

    Args:
        groups: Runs of one stage each, with the same settings, load and host, and no run in two of
            them. What groups differ by does not count.

    Raises:
        PgdynoError: No group has `RUNS_MIN` runs, or they agree exactly.
    """
    enough = [group for group in groups if len(group) >= RUNS_MIN]
    if not enough:
        most = max((len(group) for group in groups), default=0)
        raise PgdynoError(
            f"the noise between sessions is not known: it takes"
            f" {plural(RUNS_MIN, 'further run')} of one stage on one host, there"
            f" {'is' if most == 1 else 'are'} {most}",
            "Run the same plan on other days into one folder, which `pgdyno compare` takes as"
            " --runs; `pgdyno aa` tells the noise within one session.",
        )
    squares = 0.0
    for group in enough:
        centre = fmean(one.log_mean for one in group)
        squares += sum((one.log_mean - centre) ** 2 for one in group)
    freedom = sum(len(group) - 1 for group in enough)
    sd = sqrt(squares / freedom)
    runs = [one for group in enough for one in group]
    if sd < SD_MEASURABLE_MIN:
        raise PgdynoError(
            f"{plural(len(runs), 'run')} agree to the digit, which measured data never do",
            "Are they copies of one run?",
        )
    inner = sum(one.rounds - 1 for one in runs)
    ends = [2 * float(special.gammaincinv(freedom / 2, share)) for share in (0.975, 0.025)]
    return SessionNoise(
        sd=sd, sd_low=sd * sqrt(freedom / ends[0]), sd_high=sd * sqrt(freedom / ends[1]),
        freedom=freedom, runs=len(runs), rounds=len(runs) / sum(1 / one.rounds for one in runs),
        within=sum(one.squares for one in runs) / inner if inner else 0.0,
    )  # fmt: skip


def apart(one: RunMean, base: RunMean, noise: SessionNoise, confidence: float) -> Apart:
    """A run against another one, neither of which shares rounds with the other.

    Args:
        one: What is asked about.
        base: What it is held against.
        noise: Between sessions, of the same load and host.
        confidence: Of the interval, e.g. 0.95.
    """
    error = sqrt(sum(noise.sd**2 + _fewer_rounds(side, noise) for side in (one, base)))
    difference = one.log_mean - base.log_mean
    half = float(special.stdtrit(noise.freedom, (1 + confidence) / 2)) * error
    p = 2 * float(special.stdtr(noise.freedom, -abs(difference) / error))
    return Apart(
        exp(difference), exp(difference - half), exp(difference + half), confidence, min(p, 1.0)
    )


def verdict_of(
    found: Apart, margin: float, comparisons: int, failed: tuple[bool, bool] = (False, False)
) -> tuple[Verdict, str]:
    """What may be said of a run against another, and why.

    Args:
        found: The run against its base.
        margin: Ratios from 1 / (1 + margin) to 1 + margin are too close to matter.
        comparisons: That are made at once: all together have the error rate of one.
        failed: Whether trials of the run, and of its base, failed: no verdict then favours them.
    """
    alpha = 1 - found.confidence
    verdict, reason = Verdict.UNDECIDED, "the interval holds 1 and reaches beyond the margin"
    if found.low > 1 or found.high < 1:
        verdict = Verdict.BETTER if found.low > 1 else Verdict.WORSE
        reason = f"the interval lies {'above' if found.low > 1 else 'below'} 1"
        if found.p * comparisons > alpha:
            verdict = Verdict.UNDECIDED
            reason = (
                f"the interval excludes 1, but among {plural(comparisons, 'comparison')} that is"
                " not yet beyond chance"
            )
    elif found.low >= 1 / (1 + margin) and found.high <= 1 + margin:
        verdict = Verdict.EQUIVALENT
        reason = f"the interval lies within the margin of {margin:.0%}"
    favoured = {
        Verdict.BETTER: failed[0], Verdict.WORSE: failed[1], Verdict.EQUIVALENT: any(failed),
    }  # fmt: skip
    if favoured.get(verdict):
        return Verdict.UNDECIDED, f"{reason}, but trials failed, and those that lived are no proof"
    return verdict, reason


def _fewer_rounds(one: RunMean, noise: SessionNoise) -> float:
    """What a run's mean is noisier by than those of the runs that tell the spread."""
    return noise.within * max(0.0, 1 / one.rounds - 1 / noise.rounds)


def falls_below(low: float, high: float, limit: float) -> bool | None:
    """Whether a ratio is below a limit: only if its whole interval is; None: not known.

    A run that truly stands at the limit, or above, is found below it in 2.5% of cases at most.
    """
    if high < limit:
        return True
    return False if low >= limit else None


def least_found(limit: float, noise: SessionNoise, confidence: float) -> float:
    """The ratio from which on a drop below the limit is found with 80% chance, about."""
    error = noise.sd * sqrt(2)
    quantile = float(special.stdtrit(noise.freedom, (1 + confidence) / 2))
    return limit * exp(-(quantile + _FOUND_SD) * error)
