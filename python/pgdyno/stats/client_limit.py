"""Was the load generator the limit, instead of the server?

Four ways in which it can be: its threads were busy (or waiting for a CPU) nearly all the time; it
came near the rate that it reaches on this machine against a server that does nothing; its own host
had nothing left; or it ran beside the server on a full host and took a large share of it.
On such a full host everybody waits for a CPU, so that waiting says nothing of the client there: its
share of the host does.
Latency inflated by a waiting driver is told as evidence, not judged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite

from pgdyno.model.client import Client
from pgdyno.model.errors import PgdynoError
from pgdyno.model.wording import plural
from pgdyno.stats.finding import Answer, Clear, Evidence, Finding, Unknown

# A thread that is wanted 80 % of the time makes a request wait twice the work it brings: queue of
# random arrivals and constant work (M/D/1), 0.8 / (2 * (1 - 0.8)) = 2.
THREAD_WANTED_MAX = 0.80
# A host with less idle time than this has nothing left to give; the scheduler needs the rest.
HOST_IDLE_MIN = 0.05
# On a full host that both share, a client that takes c leaves the server 1 - c: elsewhere it would
# have left up to c / (1 - c) more throughput; a quarter at 20 %.
HOST_SHARE_MAX = 0.20
# Threads share nothing, so this is the same statement as that of their time, made by another way.
CEILING_SHARE_MAX = 0.80
WINDOW_S_MIN = 5.0  # CPU accounting ticks of 10 ms are below 1 % of a thread's time then
# A window of 5 s is measured as 4.9996 s, on a busy machine as 4.9 s: the driver's clock ends it,
# and not that of who reads its threads' times.
WINDOW_AS_ASKED = 0.9
# Thread times are read a moment before and after the window: more than this is a wrong input.
OVERSHOOT_MAX = 1.10


@dataclass(frozen=True, slots=True)
class ClientLoad:
    """What the driver did to its host during the window. `None`: not measured."""

    window_s: float
    host_cpus: int  # of the host the driver runs on
    threads: int
    cpu_s: float  # user and system, all threads
    run_queue_wait_s: float | None = None  # runnable but not running, all threads
    thread_cpu_s: tuple[float, ...] | None = None  # of each thread
    thread_wait_s: tuple[float, ...] | None = None  # of each thread, same order
    host_idle_share: float | None = None  # of all CPU time of that host in the window
    server_on_host: bool = True
    transactions_per_s: float | None = None
    ceiling_per_s: float | None = None  # of these threads on this machine, by `pgdyno calibrate`


def load_of(
    client: Client,
    *,
    host_idle_share: float | None,
    server_on_host: bool,
    transactions_per_s: float | None = None,
    ceiling_per_s: float | None = None,
) -> ClientLoad:
    """A driver's own account, as the judgement wants it.

    Raises:
        PgdynoError: What it used is not known.
    """
    if (cpu_s := client.cpu_s) is None:
        raise PgdynoError(
            "the driver's CPU time in the window is not known, it was not read near its ends",
            "The machine was too busy to look; take a window while less runs beside it.",
        )
    return ClientLoad(
        window_s=client.window_s,
        host_cpus=client.cpus,
        threads=client.threads,
        cpu_s=cpu_s,
        run_queue_wait_s=client.run_queue_wait_s,
        thread_cpu_s=client.thread_cpu_s or None,
        thread_wait_s=client.thread_wait_s or None,
        host_idle_share=host_idle_share,
        server_on_host=server_on_host,
        transactions_per_s=transactions_per_s,
        ceiling_per_s=ceiling_per_s,
    )


def client_limit(load: ClientLoad) -> Answer:
    """Judge whether the client was the limit.

    Raises:
        PgdynoError: The values contradict each other.
    """
    _check(load)
    if not _is_long(load):
        return Unknown(
            f"the window lasted {load.window_s:.1f} s, and less than {WINDOW_S_MIN:g} s say too"
            " little of a thread's time"
        )
    evidence = _evidence(load)
    if finding := _driver(load, evidence):
        return finding
    low, high = _busiest(load)
    full = _host(load, evidence)
    if isinstance(full, Finding):
        return full
    if high >= THREAD_WANTED_MAX:
        return Unknown(
            f"the busiest driver thread {_wanted(load)} for {low:.0%} to {high:.0%} of the"
            f" time, limit {THREAD_WANTED_MAX:.0%}: the times of each thread would show it",
            evidence,
        )
    if isinstance(full, Unknown):
        return full
    return Clear(
        f"the busiest driver thread {_wanted(load)} for at most {high:.0%} of the time;"
        f" {full.fact}",
        evidence,
    )


def _is_long(load: ClientLoad) -> bool:
    return load.window_s >= WINDOW_S_MIN * WINDOW_AS_ASKED


def _driver(load: ClientLoad, evidence: tuple[Evidence, ...]) -> Finding | None:
    """Whether the driver had no more to give, by its threads' time or by its rate."""
    low, _ = _busiest(load)
    if low >= THREAD_WANTED_MAX:
        return Finding(
            f"a driver thread {_wanted(load)} for {low:.0%} of the time,"
            f" limit {THREAD_WANTED_MAX:.0%}",
            advice="Give the driver more threads, or a host of its own.",
            evidence=evidence,
        )
    share = ceiling_share(load)
    if share is None or share < CEILING_SHARE_MAX:
        return None
    return Finding(
        f"the client reached {share:.0%} of its ceiling on this machine,"
        f" limit {CEILING_SHARE_MAX:.0%}",
        advice="Give the driver more threads, or a face with fewer round trips.",
        evidence=evidence,
    )


def ceiling_share(load: ClientLoad) -> float | None:
    """The rate reached over the ceiling; None where either is not known."""
    if load.transactions_per_s is None or load.ceiling_per_s is None:
        return None
    return load.transactions_per_s / load.ceiling_per_s


def _host(load: ClientLoad, evidence: tuple[Evidence, ...]) -> Answer:
    share = _host_share(load)
    taken = f"the client took {share:.0%} of the host"
    if load.host_idle_share is None:
        if load.server_on_host and share < HOST_SHARE_MAX:
            return Clear(taken, evidence)
        return Unknown(f"{taken}; whether the host had CPU time left was not measured", evidence)
    idle = f"{load.host_idle_share:.0%} of it idle"
    if load.host_idle_share >= HOST_IDLE_MIN:
        return Clear(f"{taken}, {idle}", evidence)
    if not load.server_on_host:
        return Finding(
            f"the client's host was full, {idle}, {HOST_IDLE_MIN:.0%} expected",
            advice="Stop what else runs on the client's host, or take a larger one.",
            evidence=evidence,
        )
    bound = f"at most {share / (1 - share):.0%} more throughput with the client elsewhere"
    if share >= HOST_SHARE_MAX:
        return Finding(
            f"{taken}, limit {HOST_SHARE_MAX:.0%}, on a full host ({idle}): {bound}",
            advice="Run the driver on a host of its own.",
            evidence=evidence,
        )
    return Clear(f"{taken} ({idle}): {bound}", evidence)


def _busiest(load: ClientLoad) -> tuple[float, float]:
    """Bounds of the share of time that the busiest thread ran or waited for a CPU.

    From sums alone the busiest thread lies between the mean and all of the sum; without waiting
    times, a thread may have waited whenever it did not run.
    """
    window = load.window_s
    if _full_shared_host(load):
        load = _without_waiting(load)
    if load.thread_cpu_s is not None and load.thread_wait_s is not None:
        pairs = zip(load.thread_cpu_s, load.thread_wait_s, strict=True)
        exact = min(1.0, max(cpu + wait for cpu, wait in pairs) / window)
        return exact, exact
    if load.run_queue_wait_s is None:
        busiest = max(load.thread_cpu_s) if load.thread_cpu_s else load.cpu_s / load.threads
        return min(1.0, busiest / window), 1.0
    total = load.cpu_s + load.run_queue_wait_s
    low = total / load.threads
    if load.thread_cpu_s is not None:
        low = max(low, *load.thread_cpu_s)
    return min(1.0, low / window), min(1.0, total / window)


def _wanted(load: ClientLoad) -> str:
    """What of a thread's time is meant."""
    return "ran" if _full_shared_host(load) else "ran or waited for a CPU"


def _full_shared_host(load: ClientLoad) -> bool:
    idle = load.host_idle_share
    return load.server_on_host and idle is not None and idle < HOST_IDLE_MIN


def _without_waiting(load: ClientLoad) -> ClientLoad:
    no_wait = None if load.thread_wait_s is None else (0.0,) * load.threads
    return replace(load, run_queue_wait_s=0.0, thread_wait_s=no_wait)


def _host_share(load: ClientLoad) -> float:
    return min(1.0, load.cpu_s / (load.host_cpus * load.window_s))


def _evidence(load: ClientLoad) -> tuple[Evidence, ...]:
    low, high = _busiest(load)
    found = [
        Evidence("client_share_of_host", _host_share(load), "1", HOST_SHARE_MAX),
        Evidence("busiest_thread_wanted_at_least", low, "1", THREAD_WANTED_MAX),
        Evidence("busiest_thread_wanted_at_most", high, "1", THREAD_WANTED_MAX),
    ]
    if load.run_queue_wait_s is not None and load.cpu_s > 0:
        wait = load.run_queue_wait_s / load.cpu_s
        found.append(Evidence("run_queue_wait_per_cpu_s", wait, "s/s"))
    share = ceiling_share(load)
    if share is not None:
        found.append(Evidence("share_of_ceiling", share, "1", CEILING_SHARE_MAX))
    if load.host_idle_share is not None:
        found.append(Evidence("host_idle_share", load.host_idle_share, "1", HOST_IDLE_MIN))
    return tuple(found)


def _check(load: ClientLoad) -> None:
    times = (load.cpu_s, load.run_queue_wait_s, *(load.thread_cpu_s or ()))
    times += (*(load.thread_wait_s or ()), load.window_s, load.transactions_per_s)
    if any(value is not None and not (isfinite(value) and value >= 0) for value in times):
        raise PgdynoError(f"times of the client {times}, 0 or more expected")
    if load.ceiling_per_s is not None and not load.ceiling_per_s > 0:
        raise PgdynoError(f"ceiling is {load.ceiling_per_s} transactions/s, above 0 expected")
    if load.threads < 1 or load.host_cpus < 1 or load.window_s == 0:
        raise PgdynoError(
            f"{plural(load.threads, 'thread')} on {load.host_cpus} CPUs in {load.window_s} s, "
            "at least one thread, one CPU and some time expected"
        )
    for each in (load.thread_cpu_s, load.thread_wait_s):
        if each is not None and len(each) != load.threads:
            raise PgdynoError(
                f"{plural(len(each), 'thread time')}, {plural(load.threads, 'thread')}"
            )
    possible = load.window_s * load.threads * OVERSHOOT_MAX
    if _is_long(load) and load.cpu_s > possible:
        raise PgdynoError(f"{load.cpu_s} CPU seconds, {possible:g} possible at most")
    if load.host_idle_share is not None and not 0 <= load.host_idle_share <= 1:
        raise PgdynoError(f"host idle share is {load.host_idle_share}, 0 to 1 expected")
