"""Adds up a window's session time from three witnesses, none of which tells all of it.

Samples of pg_stat_activity tell what each session waits for, but show one that was woken and has
no CPU yet under the event that it waited for. The kernel tells how long sessions ran and wanted a
CPU, all together. The driver tells how long it had requests under way. So what the kernel counts
and no sample shows is taken from the waits: first from those for the client, of which there is one
in every round trip, then from all others in proportion; and waiting for the client is divided by
what the driver had under way beyond what the server was seen to work on.

Waits for locks are then moved to what the head of their queue did, as far as it was seen; waits
for the client, a request under way, to wanting a CPU, as far as the driver's threads did; those for
latches, where sessions want CPUs, to that: the holder is most likely one that lost its CPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pgdyno.analysis.account_facts import (
    DRAWS,
    IDLE,
    IN_FLIGHT,
    RUNNING,
    UNDIVIDED,
    UNTOLD,
    WANTS_CPU,
    Account,
    Draws,
    NoAccount,
    StatementTime,
)
from pgdyno.analysis.sessions import TALLY, Key, Window, group_of, met_in
from pgdyno.model.run import TallySeries, TrialRecord, TrialResult
from pgdyno.model.wait import CPU, CPU_WAIT
from pgdyno.model.wording import plural

HOLDERS_MIN = 10  # looks at holders; of fewer, waits for locks stay what they are
RUNNABLE_MIN = 0.2  # of what is not the client's: from here on holders of latches want a CPU
_SEED = 20_261_125
_CLIENT = "client"
_CLIENT_TX = "client in a transaction"
_PROCESSES = ("process.backend.cpu_s", "process.backend.wait_cpu_s")
_OF_A_LOAD = ("backend", "parallel_worker")
_LOCK, _LATCH = "lock", "latch"
_TO_PARTS = {CPU: RUNNING, CPU_WAIT: WANTS_CPU}

Counted = dict[str, npt.NDArray[np.float64]]  # by name: looks in each second


@dataclass(frozen=True, slots=True)
class _Witnesses:
    """What kernel and driver tell, in sessions on average; None: they do not."""

    ran: float | None
    wanted: float | None
    in_flight: float | None
    client_waits: float  # of the time that driver threads were wanted: without a CPU of this host
    client_waits_most: float  # sessions that this can hold up, on average


def account_of(
    record: TrialRecord,
    tallies: Mapping[str, TallySeries],
    *,
    beside_server: bool = True,
    hidden: str | None = None,
) -> Account | NoAccount:
    """The account of a trial's window.

    Args:
        record: The trial, with a result.
        tallies: Of it, by their names.
        beside_server: The driver's CPUs are the server's.
        hidden: Why sessions of the server do not tell what terminals wait for; None: they do.
    """
    result = record.result
    if result is None:
        return NoAccount("the trial has no numbers")
    if result.servers:
        many = plural(len(result.servers), "server")
        return NoAccount(f"the load went to {many}, whose sessions were sampled apart")
    if hidden is not None:
        return NoAccount(hidden)
    if (tally := tallies.get(TALLY)) is None:
        return NoAccount("sessions were not sampled")
    window = met_in(record, tally)
    if window is None:
        return NoAccount("no whole second of the window was looked at")
    return _account(window, result, beside_server)


def _account(window: Window, result: TrialResult, beside_server: bool) -> Account | NoAccount:
    counted, holders = _counted(window)
    if not any(row.any() for row in counted.values()):
        return NoAccount("no session of the load was met")
    weights = _weights(window.ticks.size)
    looks = weights @ window.ticks
    sampled = {name: (weights @ row) / looks for name, row in counted.items()}
    sessions = np.sum(list(sampled.values()), axis=0)
    told = _witnesses(result, float(sessions[0]), beside_server)
    parts, inside, excess = _parts(sampled, told)
    heads = {name: weights @ row for name, row in holders.items()}
    roots, moved = _roots(parts, heads, sampled.get(_CLIENT_TX), sampled.get(_CLIENT))
    roots = _without_runnable_holders(_without_runnable_client(roots, told))
    # Seconds drawn anew hold other numbers of sessions: shares are of those, levels of the mean.
    there = np.full_like(sessions, sessions[0])
    scale = np.divide(there, sessions, out=np.zeros_like(sessions), where=sessions > 0)
    return Account(
        sessions=float(sessions[0]),
        looks=int(window.ticks.sum()),
        seconds=window.ticks.size,
        parts={name: one * scale for name, one in parts.items()},
        roots={name: one * scale for name, one in roots.items()},
        moved={name: one * scale for name, one in moved.items()},
        holders_seen=int(sum(float(one[0]) for one in heads.values())),
        in_flight=told.in_flight,
        cpu_known=told.ran is not None,
        excess=excess,
        by_statement=_by_statement(window, result, float(sessions[0])),
        inside={name: one * scale for name, one in inside.items()},
    )


def _weights(seconds: int) -> npt.NDArray[np.float64]:
    """How often each second counts: once, then as drawn anew, shape `(1 + draws, seconds)`."""
    rng = np.random.default_rng(_SEED)
    drawn = rng.multinomial(seconds, np.full(seconds, 1 / seconds), size=DRAWS)
    return np.vstack([np.ones(seconds), drawn])


def _counted(window: Window) -> tuple[Counted, Counted]:
    """Looks at sessions by class, and at heads of queues for locks by what these did."""
    sessions: Counted = {}
    holders: Counted = {}
    zero = np.zeros(window.ticks.size)
    for key, row in zip(window.keys, window.counts, strict=True):
        if key["role"] not in _OF_A_LOAD:
            continue
        name = _name_of(key)
        sessions[name] = sessions.get(name, zero) + row
        head = key["blocker"] if group_of(key["wait_class"]) == _LOCK else ""
        if head and group_of(head) != _LOCK:
            holders[head] = holders.get(head, zero) + row
    return sessions, holders


def _name_of(key: Key) -> str:
    if key["wait_class"] == _CLIENT and key["state"] not in ("idle", "disabled", ""):
        return _CLIENT_TX
    return key["wait_class"]


def _witnesses(result: TrialResult, sessions: float, beside_server: bool) -> _Witnesses:
    ran, wanted = (result.deltas.get(name) for name in _PROCESSES)
    known = ran is not None and wanted is not None and result.window_s > 0
    under_way = in_flight(result)
    return _Witnesses(
        ran / result.window_s if known and ran is not None else None,
        wanted / result.window_s if known and wanted is not None else None,
        None if under_way is None else min(under_way, sessions),
        *(_client_waits(result, sessions) if beside_server else (0.0, 0.0)),
    )


def _client_waits(result: TrialResult, sessions: float) -> tuple[float, float]:
    """How much of the time that the driver's threads were wanted, they had no CPU.

    A thread without a CPU holds up its own connections at most.
    """
    ran, waited = sum(result.client.thread_cpu_s), sum(result.client.thread_wait_s)
    if ran + waited <= 0 or result.window_s <= 0:
        return 0.0, 0.0
    each = sessions / len(result.client.thread_cpu_s)
    return waited / (ran + waited), each * waited / result.window_s


def in_flight(result: TrialResult) -> float | None:
    """Connections with a request under way, on average; None: the driver does not tell."""
    levels = _under_way(result)
    return sum(levels.values()) if levels else None


def _under_way(result: TrialResult) -> dict[tuple[str, str], float]:
    """By kind and statement: how many were under way at a time, on average, by the driver.

    Times are told whole of all that lasted into the window or out of it. Those that were carried
    into it, with what they took before, make up for those that were carried out of it and have
    their time after it told as well: the latter are left out.
    """
    return {
        (kind.kind, one.name): one.count
        * (1 - (kind.window.drained or 0) / max(1, kind.window.timed))
        * one.ns.get("mean", 0)
        / 1e9
        / result.window_s
        for kind in (result.kinds if result.window_s > 0 else ())
        for one in kind.statements
    }


def _parts(
    sampled: Mapping[str, Draws], told: _Witnesses
) -> tuple[dict[str, Draws], dict[str, Draws], float]:
    """Parts that add up to the sessions met, with what of CPU time was met as waits.

    Last is what the kernel counts beyond them.
    """
    parts = {_TO_PARTS.get(name, name): one.copy() for name, one in sampled.items()}
    zero = np.zeros_like(next(iter(sampled.values())))
    idle_state, in_transaction = parts.pop(_CLIENT, zero), parts.pop(_CLIENT_TX, zero)
    waiting = idle_state + in_transaction
    if told.in_flight is None:
        parts[UNDIVIDED] = waiting
        first = UNDIVIDED
    else:
        seen = np.sum(list(parts.values()), axis=0) if parts else zero
        parts[IN_FLIGHT] = np.clip(told.in_flight - seen, 0.0, waiting)
        parts[IDLE] = waiting - parts[IN_FLIGHT]
        first = IN_FLIGHT
    return _with_cpu(parts, told, first)


def _with_cpu(
    parts: dict[str, Draws], told: _Witnesses, first: str
) -> tuple[dict[str, Draws], dict[str, Draws], float]:
    """The kernel's word on running and wanting a CPU, taken out of what samples show instead."""
    zero = np.zeros_like(next(iter(parts.values())))
    if told.ran is None or told.wanted is None:
        return parts, {}, 0.0
    without_event = parts.pop(RUNNING, zero) + parts.pop(WANTS_CPU, zero)
    wanted = told.ran + told.wanted
    lacking = np.maximum(0.0, wanted - without_event)
    taken = np.minimum(lacking, parts[first])
    parts[first] = parts[first] - taken
    lacking = lacking - taken
    others = [name for name in parts if name != IDLE]
    room = np.sum([parts[name] for name in others], axis=0) if others else zero
    taken = np.minimum(lacking, room)
    share = np.divide(taken, room, out=np.zeros_like(room), where=room > 0)
    inside = {name: parts[name] * share for name in others}
    for name, one in inside.items():
        parts[name] = parts[name] - one
    lacking = lacking - taken
    fits = wanted - lacking
    ran = np.minimum(told.ran, fits)
    parts[RUNNING] = ran
    parts[WANTS_CPU] = fits - ran
    parts[UNTOLD] = np.maximum(0.0, without_event - wanted)
    return parts, inside, float(lacking[0])


def _roots(
    parts: Mapping[str, Draws],
    heads: Mapping[str, Draws],
    in_transaction: Draws | None,
    idle: Draws | None,
) -> tuple[dict[str, Draws], dict[str, Draws]]:
    """Waits moved to what their holders did, and how much of each part came so."""
    roots = {name: one.copy() for name, one in parts.items()}
    moved: dict[str, Draws] = {}
    seen = np.sum(list(heads.values()), axis=0) if heads else np.zeros(1)
    if seen[0] >= HOLDERS_MIN and (seen > 0).all():
        asked = _asked_share(parts, in_transaction, idle)
        queued = [name for name in roots if group_of(name) == _LOCK]
        total = np.sum([roots.pop(name) for name in queued], axis=0)
        for head, count in heads.items():
            for name, share in _as_parts(head, asked):
                one = total * count / seen * share
                moved[name] = moved.get(name, 0.0) + one
                roots[name] = roots.get(name, np.zeros_like(one)) + one
    return roots, moved


def _asked_share(
    parts: Mapping[str, Draws], in_transaction: Draws | None, idle: Draws | None
) -> Draws | None:
    """Of sessions that wait for their client in a transaction: those with a request under way."""
    if IDLE not in parts or in_transaction is None:
        return None
    between = parts[IDLE] - (0.0 if idle is None else idle)  # nothing asked, in a transaction
    safe = np.maximum(in_transaction, 1e-9)
    return np.asarray(1 - np.clip(between / safe, 0.0, 1.0), dtype=np.float64)


def _as_parts(head: str, asked: Draws | None) -> Sequence[tuple[str, Draws | float]]:
    if head != _CLIENT:
        return ((_TO_PARTS.get(head, head), 1.0),)
    if asked is None:
        return ((UNDIVIDED, 1.0),)
    return ((IN_FLIGHT, asked), (IDLE, 1 - asked))


def _without_runnable_client(roots: dict[str, Draws], told: _Witnesses) -> dict[str, Draws]:
    """An answer that is not read since the driver has no CPU waits for that CPU."""
    if IN_FLIGHT not in roots or not told.client_waits:
        return roots
    asked = roots[IN_FLIGHT]
    waits = np.minimum(asked * told.client_waits, told.client_waits_most)
    roots[IN_FLIGHT] = asked - waits
    roots[WANTS_CPU] = roots.get(WANTS_CPU, np.zeros_like(waits)) + waits
    return roots


def _without_runnable_holders(roots: dict[str, Draws]) -> dict[str, Draws]:
    """Latches are held for microseconds, unless their holder has lost its CPU."""
    wants = roots.get(WANTS_CPU)
    if wants is None:
        return roots
    clients = (IN_FLIGHT, IDLE, UNDIVIDED)
    busy = sum(float(one[0]) for name, one in roots.items() if name not in clients)
    if busy <= 0 or wants[0] / busy < RUNNABLE_MIN:
        return roots
    latches = [name for name in roots if group_of(name) == _LATCH]
    for name in latches:
        roots[WANTS_CPU] = roots[WANTS_CPU] + roots.pop(name)
    return roots


def _by_statement(
    window: Window, result: TrialResult, sessions: float
) -> tuple[StatementTime, ...]:
    """Statements of the workload, those with most time first.

    Requests count in the window in which they end, so that those of a short one may add up to more
    than the sessions: their shares hold. A text that several kinds of transactions send, e.g.
    COMMIT, is met without a kind: what the driver had under way of it is added up over them.
    """
    asked = _under_way(result)
    beyond = max(1.0, sum(asked.values()) / sessions)
    met: dict[tuple[str, str], dict[str, float]] = {}
    for key, row in zip(window.keys, window.counts, strict=True):
        if key["role"] in _OF_A_LOAD and key["statement"] and key["state"] == "active":
            of = met.setdefault((key["kind"], _as_sent(key, asked)), {})
            if not row.any():
                continue  # keys are of the whole trial: this one was not met in the window
            average = float(row.sum() / window.ticks.sum())
            of[key["wait_class"]] = of.get(key["wait_class"], 0.0) + average
    shared = {name for kind, name in met if not kind}
    under_way: dict[tuple[str, str], float] = {}
    for (kind, name), level in asked.items():
        at = ("" if name in shared else kind, name)
        under_way[at] = under_way.get(at, 0.0) + level / beyond
    names = {**under_way, **met}
    found = [StatementTime(*name, under_way.get(name), met.get(name, {})) for name in names]
    return tuple(sorted(found, key=lambda one: -(one.in_flight or one.active or 0)))


def _as_sent(key: Key, asked: Mapping[tuple[str, str], float]) -> str:
    """The driver's name of a statement: those that differ by a number alone are one to it."""
    name, _, number = key["statement"].rpartition("_")
    is_one_of_many = number.isdecimal() and (key["kind"], name) in asked
    return name if is_one_of_many else key["statement"]
