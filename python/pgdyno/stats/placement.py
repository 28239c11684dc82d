"""Does throughput go with where the scheduler placed sessions, rather than with the stages?

On a host that driver and server fill together, a session costs both of them less while it is woken
on the CPU that wakes it, more while each wake-up crosses to another CPU. Which of them holds is the
scheduler's choice; it lasts for seconds and differs between trials of one stage. The interrupts
between CPUs (IPIs) of a transaction tell it, if there are more of them a second, too: some come by
themselves, and are the more a transaction, the slower it is, whatever slows it. See
docs/concepts/session.md.
"""

from __future__ import annotations

from math import exp, sqrt

import numpy as np
import numpy.typing as npt
from scipy import special

from pgdyno.model.wording import plural
from pgdyno.stats.finding import Answer, Clear, Evidence, Finding, Unknown
from pgdyno.stats.interval import FloatArray

FREEDOM_MIN = 4  # fewer tell no slope
P_MAX = 0.01
_IPIS_MIN = 1e-3  # of a transaction: fewer are none
LOSS_MIN = 0.03  # of throughput, from the trial with the fewest IPIs of its stage to the most


def placement(stages: npt.NDArray[np.int64], log_rate: FloatArray, ipis: FloatArray) -> Answer:
    """Whether trials with more IPIs a transaction than others of their stage are slower.

    A regression with one slope for all stages, and a level of its own for each.

    Args:
        stages: Of each trial, the number of its stage, shape `(trials,)`.
        log_rate: Logarithm of each trial's throughput, same shape.
        ipis: IPIs of each trial for each transaction, same shape.
    """
    freedom = len(stages) - len(np.unique(stages)) - 1
    if freedom < FREEDOM_MIN:
        return Unknown(f"{plural(len(stages), 'trial is', 'trials are')} too few to tell")
    x, y = (_centred(stages, values) for values in (ipis, log_rate))
    if not x @ x:
        return Clear("the trials of each stage have equal numbers of interrupts between CPUs")
    slope, p = _falling(x, y, freedom)
    # Trials that anything else slows have as many a second, and so more a transaction, too.
    each_second = _centred(stages, np.log(np.maximum(ipis, _IPIS_MIN)) + log_rate)
    p = max(p, _falling(each_second, y, freedom)[1])
    widest = max(float(np.ptp(ipis[stages == one])) for one in np.unique(stages))
    loss = 1 - exp(slope * widest)
    evidence = (
        Evidence("throughput_lost", loss, "1", LOSS_MIN),
        Evidence("p", p, "1", P_MAX),
        Evidence("ipis_a_transaction_low", float(ipis.min()), "1"),
        Evidence("ipis_a_transaction_high", float(ipis.max()), "1"),
    )
    spread = f"{ipis.min():.2f} to {ipis.max():.2f} interrupts between CPUs a transaction"
    if p > P_MAX or loss < LOSS_MIN:
        return Clear(f"throughput does not go with the {spread}", evidence)
    return Finding(
        f"trials of one stage differ by up to {loss:.0%} with where the scheduler placed sessions:"
        f" {spread}, and the more the slower",
        "The stages are not to blame for that part; more rounds average it, and so does a host of"
        " its own for the driver.",
        evidence,
    )


def _falling(x: FloatArray, y: FloatArray, freedom: int) -> tuple[float, float]:
    """The slope of y over x, and how often chance alone makes one that falls as steeply."""
    square = float(x @ x)
    if square == 0:
        return 0.0, 1.0
    slope = float(x @ y) / square
    rest = y - slope * x
    error = sqrt(float(rest @ rest) / freedom / square)
    return slope, float(special.stdtr(freedom, slope / error)) if error else float(slope >= 0)


def _centred(stages: npt.NDArray[np.int64], values: FloatArray) -> FloatArray:
    """Values less the mean of their stage."""
    found = values.astype(np.float64)
    for one in np.unique(stages):
        found[stages == one] -= found[stages == one].mean()
    return found
