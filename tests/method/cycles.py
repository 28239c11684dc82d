"""A server with checkpoints, as a model with known truth: how throughput goes with the phase.

Closed loop: x (1 + a f) + b w + (what saturates) = x0 transactions a second. f: pages touched for
the first time since the checkpoint's start, a transaction, from D(n) = sum of P (1 - exp(-q n / P))
after n transactions. w: pages of the cycle before, written evenly over nine tenths of this one.
Saturating: what is written beyond `most` pages a second costs its square.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pgdyno.stats.interval import FloatArray

TARGET = 0.9
UNLOADED = 2000.0  # x0
PAGES = np.array([200.0, 20_000.0, 250_000.0])
TOUCHES = np.array([2.0, 4.0, 4.0])  # a transaction


@dataclass(frozen=True, slots=True)
class Server:
    """What full page images and checkpoint writes cost."""

    image: float  # a
    write: float  # b
    most: float = np.inf  # pages written a second, before it saturates


MILD, HEAVY = Server(0.06, 0.1), Server(0.15, 0.3)
SATURATING = Server(0.06, 0.1, most=2500.0)


def dirty(n: float) -> float:
    """Pages touched by n transactions."""
    return float((PAGES * (1 - np.exp(-TOUCHES * n / PAGES))).sum())


def run(server: Server, cycle_s: float, seconds: int, step_s: float = 0.1) -> FloatArray:
    """Transactions of each second from a checkpoint with nothing dirty before it."""
    steps = round(seconds / step_s)
    done = np.zeros(steps)
    since, phase, last = 0.0, 0.0, 0.0
    for step in range(steps):
        if phase >= cycle_s:
            since, phase, last = 0.0, phase - cycle_s, dirty(since)
        fresh = float((TOUCHES * np.exp(-TOUCHES * since / PAGES)).sum())
        writes = last / (TARGET * cycle_s) if phase < TARGET * cycle_s else 0.0
        done[step] = _rate(server, fresh, writes) * step_s
        since += done[step]
        phase += step_s
    return np.asarray(done.reshape(seconds, -1).sum(axis=1), dtype=np.float64)


def _rate(server: Server, fresh: float, writes: float) -> float:
    free = UNLOADED - server.write * writes
    rate = free / (1 + server.image * fresh)
    for _ in range(30 if np.isfinite(server.most) else 0):
        beyond = max(0.0, rate * fresh + writes - server.most)
        rate = (rate + max(1.0, free - beyond**2 / server.most) / (1 + server.image * fresh)) / 2
    return rate


def truth(server: Server, cycle_s: float) -> float:
    """Throughput of a whole cycle in the steady state."""
    length = round(cycle_s)
    return float(run(server, cycle_s, 4 * length)[3 * length :].mean())
