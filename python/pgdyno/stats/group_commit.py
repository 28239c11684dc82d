"""How many synchronous commits a second n clients reach: PostgreSQL's group commit, simulated.

The rules are those of XLogFlush. One flush is under way at a time; it covers what was inserted when
it began. Who comes meanwhile waits until it ends; then whoever of them, or of those who come just
then, has a CPU first flushes for all. A client whose commit is flushed begins its next transaction.

So two groups take turns when transactions are short beside a flush: while one is flushed the other
comes, and n clients reach n / 2 commits a flush. One client has nobody to share with and reaches
one. Where transactions are long beside a flush, CPU decides. In between only the simulation tells.

Who wakes is placed on a CPU and waits there. Linux seeks an idle one the less, the more CPUs are
used (select_idle_cpu), and moves nobody later to one that is idle for less than about half a
millisecond (sched_migration_cost). So one may be idle while another has a queue.

Storage that has rested takes longer for its next flush: a drive, or the host's thread, has gone to
sleep. How much longer is measured, by the length of the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import cycle, repeat

import numpy as np

from pgdyno.model.floor import BLOCK_BYTES, Commits

COMMIT_DELAY_US_MAX = 100_000  # of the setting, in all versions
_COMMITS = 20_000  # of a simulation; the rate is then known to about 1 %
_WARM = 2_000
_SEED = 20_261_122  # fixed: the same measurement predicts the same
_UNSOUGHT = 1.17**2  # times utilization squared: Linux seeks no idle CPU (imbalance_pct, SIS_UTIL)

Curve = tuple[tuple[float, float], ...]  # points x, y, by x; level beyond both ends; empty: 0


@dataclass(frozen=True, slots=True)
class Flush:
    """What a flush of WAL takes."""

    ns: float  # with one page written, right after the one before
    paused: Curve = ()  # how much longer, by the ns since that one ended
    more_page_ns: float = 0.0  # for each further page
    cpu_ns: float = 0.0  # of that, the flusher needs a CPU
    # How flushes differ: share of them, time in any unit; empty: not at all.
    quantiles: Curve = ()

    @classmethod
    def measured(cls, busy: Commits, rested: Sequence[Commits]) -> Flush:
        """From commits right after each other, and after pauses of several lengths."""
        longer = ((each.pause_ns, each.ns - busy.ns) for each in rested)
        paused = ((busy.pause_ns, 0.0), *sorted(longer)) if rested else ()
        return cls(busy.ns, paused, cpu_ns=busy.cpu_ns, quantiles=busy.flush_quantiles)

    def of(self, wal_bytes: float, pause_ns: float = 0.0) -> float:
        """Time for so much WAL, so long after the last; a page that is begun is written."""
        pages = max(1.0, -(-wal_bytes // BLOCK_BYTES))
        return self.ns + at(self.paused, pause_ns) + (pages - 1) * self.more_page_ns


@dataclass(frozen=True, slots=True)
class Transaction:
    """What a transaction takes besides its flush."""

    cpu_ns: float = 0.0  # of client and server together
    bursts: int = 1  # pieces of that: statements, between which another may have the CPU
    wal_bytes: float = 0.0
    rows: int = 0  # of which each takes one, and keeps it until it is flushed; 0: it takes none
    row_burst: int = 1  # which burst needs that row, from 1


def at(curve: Curve, x: float) -> float:
    """The curve's value, straight between its points."""
    if not curve:
        return 0.0
    xs, ys = zip(*curve, strict=True)
    return float(np.interp(x, xs, ys))


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
    rate = _Model(clients, flush, transaction, cpus).run()
    # A page promises the limit for any transaction: what rest or a draw adds to it is chance.
    return min(rate, flush_limit_per_s(clients, flush.ns))


def commit_delay_us(flush_ns: float) -> int:
    """The commit_delay worth trying: half a flush of one page, as PostgreSQL's manual advises.

    On storage whose flushes take longer than any setting, the longest that a server takes.
    """
    return min(round(flush_ns / 2 / 1000), COMMIT_DELAY_US_MAX)


# In place of bursts that are left: what a flusher does, and who was woken when one has ended.
_CALL, _DEVICE, _RELEASE, _TRY = -1, -2, -3, -4


class _Model:
    """Clients that want a CPU, then the flush; events in the order of time."""

    def __init__(self, clients: int, flush: Flush, transaction: Transaction, cpus: int) -> None:
        self._flush = flush
        self._transaction = transaction
        self._burst_ns = transaction.cpu_ns / transaction.bursts
        self._random = np.random.Generator(np.random.PCG64(_SEED))
        self._longer = _factors(flush, self._random)
        self._busy = [False] * cpus
        self._worked_ns = 0.0  # of all CPUs
        self._cpu = [0] * clients  # where each runs, or ran last
        # For each CPU, who waits for it: client, and bursts that are left or what the flusher does.
        self._ready: list[deque[tuple[int, int]]] = [deque() for _ in range(cpus)]
        self._events: list[tuple[float, int, int, int]] = []  # when, order, client, what
        self._order = 0
        self._now = 0.0
        self._waiting: list[int] = []
        self._group: list[int] = []
        self._flushing = False
        self._flushed = 0.0  # when storage was last at work
        self._rows: dict[int, deque[int]] = {}  # each that is taken: who waits for it
        self._row_of: dict[int, int] = {}
        self._commits = 0
        for client in range(clients):
            self._go_on(client, transaction.bursts)

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
            self._flushed = self._now
            self._queue(client, _RELEASE)
            return
        self._busy[self._cpu[client]] = False
        if what == _CALL:
            size = len(self._group) * self._transaction.wal_bytes
            ns = self._flush.of(size, self._now - self._flushed) * next(self._longer)
            ns -= self._flush.cpu_ns
            self._after(max(0.0, ns), client, _DEVICE)
            return
        if what > 1:
            self._go_on(client, what - 1)
            return
        if what == _RELEASE:
            self._commits += len(self._group)
            self._flushing = False
            for waiting in self._waiting:
                self._queue(waiting, _TRY)
            for done in self._group:
                self._give_row(done)
                self._go_on(done, self._transaction.bursts)
            return
        self._waiting.append(client)
        if not self._flushing:  # also when others were woken to flush, and have no CPU yet
            self._call(client)

    def _call(self, client: int) -> None:
        """Flush all that has come until now."""
        self._flushing = True
        self._group, self._waiting = self._waiting, []
        self._busy[self._cpu[client]] = True
        self._after(self._flush.cpu_ns / 2, client, _CALL)

    def _queue(self, client: int, what: int) -> None:
        if what > 0:  # a statement; what belongs to a flush stays where it was
            self._cpu[client] = self._next_cpu()
        self._ready[self._cpu[client]].append((client, what))

    def _next_cpu(self) -> int:
        """A CPU for who wakes."""
        cpus = len(self._busy)
        used = self._worked_ns / (self._now * cpus) if self._now else 0.0
        if self._random.random() < 1 - _UNSOUGHT * used * used:
            for cpu in range(cpus):
                if not self._busy[cpu] and not self._ready[cpu]:
                    return cpu
        return int(self._random.integers(cpus))

    def _go_on(self, client: int, left: int) -> None:
        """With its next burst, as soon as it has the row that this one needs."""
        done = self._transaction.bursts - left
        if self._transaction.rows and done == self._transaction.row_burst - 1:
            row = self._row_of[client] = int(self._random.integers(self._transaction.rows))
            if row in self._rows:
                self._rows[row].append(client)
                return
            self._rows[row] = deque()
        self._queue(client, left)

    def _give_row(self, client: int) -> None:
        row = self._row_of.pop(client, None)
        if row is None:
            return
        if self._rows[row]:
            left = self._transaction.bursts - self._transaction.row_burst + 1
            self._queue(self._rows[row].popleft(), left)
        else:
            del self._rows[row]

    def _dispatch(self) -> None:
        for cpu, ready in enumerate(self._ready):
            while ready and not self._busy[cpu]:
                client, what = ready.popleft()
                if what == _TRY:
                    if not self._flushing and client in self._waiting:
                        self._call(client)
                    continue
                self._busy[cpu] = True
                if what == _RELEASE:
                    ns = self._flush.cpu_ns / 2
                else:
                    ns = self._random.exponential(self._burst_ns)
                self._after(ns, client, what)

    def _after(self, ns: float, client: int, what: int) -> None:
        if what != _DEVICE:
            self._worked_ns += ns
        self._order += 1
        heappush(self._events, (self._now + ns, self._order, client, what))


def _factors(flush: Flush, random: np.random.Generator) -> Iterator[float]:
    """How much longer than the mean each flush takes; 1 on average."""
    if not flush.quantiles:
        return repeat(1.0)
    shares, ns = zip(*flush.quantiles, strict=True)
    drawn = np.interp(random.random(_WARM + _COMMITS), shares, ns)
    return cycle((drawn / drawn.mean()).tolist())
