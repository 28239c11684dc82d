"""How many synchronous commits a second n clients reach: PostgreSQL's group commit, simulated.

The rules are those of XLogFlush. One flush is under way at a time; it covers what was inserted when
it began. Who comes meanwhile waits until it ends; then one of the waiting flushes for all of them,
at once. A client whose commit is flushed begins its next transaction.

So two groups take turns when transactions are short beside a flush: while one is flushed the other
comes, and n clients reach n / 2 commits a flush. One client has nobody to share with and reaches
one. Where transactions are long beside a flush, CPU decides. In between only the simulation tells.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import cycle, repeat

import numpy as np

from pgdyno.model.floor import BLOCK_BYTES

_COMMITS = 20_000  # of a simulation; the rate is then known to about 1 %
_WARM = 2_000
_SEED = 20_261_122  # fixed: the same measurement predicts the same


@dataclass(frozen=True, slots=True)
class Flush:
    """What a flush of WAL takes."""

    ns: float  # with one page written
    more_page_ns: float = 0.0  # for each further page
    cpu_ns: float = 0.0  # of that, the flusher needs a CPU
    # How flushes differ: share of them, time in any unit; empty: not at all.
    quantiles: tuple[tuple[float, float], ...] = ()

    def of(self, wal_bytes: float) -> float:
        """Time for so much WAL; a page that is begun is written."""
        pages = max(1.0, -(-wal_bytes // BLOCK_BYTES))
        return self.ns + (pages - 1) * self.more_page_ns


@dataclass(frozen=True, slots=True)
class Transaction:
    """What a transaction takes besides its flush."""

    cpu_ns: float = 0.0  # of client and server together
    bursts: int = 1  # pieces of that: statements, between which another may have the CPU
    wal_bytes: float = 0.0
    cold_ns: float = 0.0  # besides, on a CPU that has been idle for as long as a flush takes


def flush_limit_per_s(clients: int, flush_ns: float) -> float:
    """The highest rate that flushes allow, transactions taking no time at all."""
    return 1e9 / flush_ns * (1.0 if clients == 1 else clients / 2)


def commit_rate_per_s(
    clients: int, flush: Flush, transaction: Transaction = Transaction(), cpus: int = 1
) -> float:
    """The rate of synchronous commits.

    Args:
        clients: Connections that commit one transaction after the other.
        flush: Of the storage.
        transaction: Without its flush.
        cpus: That clients and server share.
    """
    if transaction.cpu_ns == 0:
        return flush_limit_per_s(clients, flush.ns)
    return _Model(clients, flush, transaction, cpus).run()


def commit_delay_us(flush_ns: float) -> int:
    """The commit_delay worth trying: half a flush of one page, as PostgreSQL's manual advises."""
    return round(flush_ns / 2 / 1000)


_CALL, _RELEASE = -1, -2  # what a flusher does with a CPU, in place of bursts that are left
_DEVICE = -3


class _Model:
    """Clients that want a CPU, then the flush; events in the order of time."""

    def __init__(self, clients: int, flush: Flush, transaction: Transaction, cpus: int) -> None:
        self._flush = flush
        self._transaction = transaction
        self._burst_ns = transaction.cpu_ns / transaction.bursts
        self._random = np.random.Generator(np.random.PCG64(_SEED))
        self._longer = _factors(flush, self._random)
        self._free = [0.0] * cpus  # since when each idle CPU is so; the last to be so at the end
        self._flusher_since = 0.0  # its CPU's, before it had it
        # Each: client, and bursts that are left or what the flusher does.
        self._ready = deque((client, transaction.bursts) for client in range(clients))
        self._events: list[tuple[float, int, int, int]] = []  # when, order, client, what
        self._order = 0
        self._now = 0.0
        self._waiting: list[int] = []
        self._group: list[int] = []
        self._flushing = False
        self._commits = 0

    def run(self) -> float:
        began, counted = 0.0, 0
        self._dispatch()
        while self._commits < _WARM + _COMMITS:
            self._now, _, client, what = heappop(self._events)
            before = self._commits
            self._ended(client, what)
            if before < _WARM <= self._commits:
                began, counted = self._now, self._commits
            self._dispatch()
        return (self._commits - counted) / (self._now - began) * 1e9

    def _ended(self, client: int, what: int) -> None:
        if what == _DEVICE:
            # It has slept, so the scheduler takes it before those that have run.
            self._ready.appendleft((client, _RELEASE))
            return
        # The little that follows a flush does not warm a CPU.
        self._free.append(self._flusher_since if what == _RELEASE else self._now)
        if what == _CALL:
            size = len(self._group) * self._transaction.wal_bytes
            ns = self._flush.of(size) * next(self._longer) - self._flush.cpu_ns
            self._after(max(0.0, ns), client, _DEVICE)
            return
        if what > 1:
            self._ready.append((client, what - 1))
            return
        if what == _RELEASE:
            self._commits += len(self._group)
            self._ready.extend((done, self._transaction.bursts) for done in self._group)
            self._flushing = False
        else:
            self._waiting.append(client)
        if self._waiting and not self._flushing:
            self._flushing = True
            self._ready.appendleft((self._waiting[0], _CALL))

    def _dispatch(self) -> None:
        while self._free and self._ready:
            client, what = self._ready.popleft()
            since = self._free.pop()
            if what == _CALL:  # what came while it waited for a CPU goes with it
                self._group, self._waiting = self._waiting, []
            if what in (_CALL, _RELEASE):
                self._flusher_since = since
                ns = self._flush.cpu_ns / 2
            else:
                idle = min(1.0, (self._now - since) / self._flush.ns)
                ns = self._random.exponential(self._burst_ns) + self._transaction.cold_ns * idle
            self._after(ns, client, what)

    def _after(self, ns: float, client: int, what: int) -> None:
        self._order += 1
        heappush(self._events, (self._now + ns, self._order, client, what))


def _factors(flush: Flush, random: np.random.Generator) -> Iterator[float]:
    """How much longer than the mean each flush takes; 1 on average."""
    if not flush.quantiles:
        return repeat(1.0)
    shares, ns = zip(*flush.quantiles, strict=True)
    drawn = np.interp(random.random(_WARM + _COMMITS), shares, ns)
    return cycle((drawn / drawn.mean()).tolist())
