"""Measures the ceiling of this machine: the driver against a null server, face by face.

The driver and the null server get CPUs of their own, as far as there are two. A ceiling therefore
is that of the driver on its share of the CPUs; figures per second of CPU hold for any number.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pgdyno.drive.driver import Driven, drive
from pgdyno.drive.null import Account, NullServer, null_server
from pgdyno.model.calibration import Ceiling
from pgdyno.model.errors import DriveError, PlanError
from pgdyno.model.plan import Protocol
from pgdyno.model.progress import DriveProgress
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Workload
from pgdyno.stats.ceiling import Round, limit, typical
from pgdyno.target.host_facts import own_version, this_machine

WARMUP_S = 1.0  # or as long as the window, where that is shorter
_DRAIN_S = 5.0


@dataclass(frozen=True, slots=True)
class Cores:
    """Which CPUs the two sides get."""

    driver: tuple[int, ...]
    server: tuple[int, ...]

    @property
    def shared(self) -> bool:
        """Whether both have to make do with the same."""
        return self.driver == self.server


def split_cores(cpus: Sequence[int], threads: int | None) -> Cores:
    """Deal the CPUs: one for each thread of the driver, the rest for the null server.

    Args:
        cpus: Those that this process may use.
        threads: Of the driver; None: half of the CPUs.

    Raises:
        PlanError: More threads than would leave a CPU for the null server.
    """
    if len(cpus) == 1:
        if threads not in (None, 1):
            raise PlanError(f"--threads is {threads}, there is 1 CPU")
        return Cores(tuple(cpus), tuple(cpus))
    wanted = threads or len(cpus) // 2
    if not 1 <= wanted < len(cpus):
        raise PlanError(
            f"--threads is {wanted}, allowed are 1 to {len(cpus) - 1}",
            "The null server needs a CPU of its own.",
        )
    return Cores(tuple(cpus[:wanted]), tuple(cpus[wanted:]))


def calibrate(
    workloads: Sequence[Workload],
    *,
    threads: int | None,
    rounds: int,
    window_s: float,
    told: Callable[[str], None] = lambda _: None,
) -> Iterator[Ceiling]:
    """Measure the ceiling for each workload; rounds interleave them.

    Args:
        workloads: What is driven, without keying and thinking; they differ e.g. in their face.
        threads: Of the driver; None: one on each of half the CPUs.
        rounds: Windows for each workload.
        window_s: Length of a window.
        told: Hears what is measured next.

    Raises:
        PlanError: There are too few CPUs or connections for so many threads.
        DriveError: The driver or the null server failed, or a transaction did.
    """
    cores = split_cores(sorted(os.sched_getaffinity(0)), threads)
    measured: list[list[tuple[Driven, float | None]]] = [[] for _ in workloads]
    for number in range(1, rounds + 1):
        for workload, results in zip(workloads, measured, strict=True):
            if workload.connections < len(cores.driver):
                raise PlanError(
                    f"{workload.connections} connections for {len(cores.driver)} threads",
                    "Give every thread a connection, or name fewer with --threads.",
                )
            told(f"{workload.kind}, face {workload.face}: round {number} of {rounds}")
            results.append(_round(workload, cores, window_s))
    for workload, results in zip(workloads, measured, strict=True):
        yield _ceiling(workload, cores, window_s, results)


def _round(workload: Workload, cores: Cores, window_s: float) -> tuple[Driven, float | None]:
    protocol = Protocol(1, min(WARMUP_S, window_s), window_s, _DRAIN_S, False, 0.03, 0.95, Rung.D0)
    with null_server(workload, threads=len(cores.server), cpus=cores.server) as server:
        watch = _Watch(server)
        pinned = replace(workload, threads=len(cores.driver))
        driven = drive(server.connection, pinned, protocol, None, watch.take, cpus=cores.driver)
    if driven.error or driven.errors:
        what = driven.error or driven.errors[0]["example"]
        raise DriveError(f"a transaction failed against the null server: {what}")
    return driven, watch.wanted()


class _Watch:
    """Reads the null server's account while the window lasts."""

    def __init__(self, server: NullServer) -> None:
        self._server = server
        self._accounts: list[Account] = []

    def take(self, progress: DriveProgress) -> None:
        if progress.phase == "window" and (account := self._server.account()):
            self._accounts.append(account)

    def wanted(self) -> float | None:
        """Share of the time that the busiest thread ran or waited for a CPU."""
        if len(self._accounts) < 2:
            return None
        first, last = self._accounts[0], self._accounts[-1]
        pairs = zip(first.wanted_s, last.wanted_s, strict=True)
        return max(after - before for before, after in pairs) / (last.at_s - first.at_s)


def _ceiling(
    workload: Workload,
    cores: Cores,
    window_s: float,
    results: Sequence[tuple[Driven, float | None]],
) -> Ceiling:
    rounds = [_numbers(driven, server) for driven, server in results]
    servers = [each.server_wanted for each in rounds if each.server_wanted is not None]
    return Ceiling(
        workload=workload.kind,
        face=workload.face,
        connections=workload.connections,
        threads=len(cores.driver),
        transactions_per_s=typical([each.transactions / each.window_s for each in rounds]),
        round_trips_per_s=typical([each.round_trips / each.window_s for each in rounds]),
        cpu_s_per_transaction=typical([each.cpu_s / each.transactions for each in rounds]),
        cpu_s_per_round_trip=typical([each.cpu_s / each.round_trips for each in rounds]),
        round_trips_per_transaction=float(
            np.median([each.round_trips / each.transactions for each in rounds])
        ),
        driver_wanted=float(np.median([each.driver_wanted for each in rounds])),
        server_wanted=float(np.median(servers)) if servers else None,
        limit=limit(rounds),
        driver_cpus=cores.driver,
        server_cpus=cores.server,
        window_s=window_s,
        machine=this_machine(),
        pgdyno=own_version(),
        measured_unix_ns=time.time_ns(),
    )


def _numbers(driven: Driven, server_wanted: float | None) -> Round:
    client = driven.client
    if driven.transactions == 0:
        raise DriveError(f"no transaction came to its end in a window of {driven.window_s:g} s")
    assert driven.round_trips_per_transaction is not None, "our own driver tells"
    wanted = [
        cpu + wait for cpu, wait in zip(client.thread_cpu_s, client.thread_wait_s, strict=True)
    ]
    return Round(
        transactions=driven.transactions,
        round_trips=driven.round_trips_per_transaction * driven.transactions,
        window_s=driven.window_s,
        cpu_s=client.user_s + client.system_s,
        driver_wanted=min(1.0, max(wanted) / client.window_s),
        server_wanted=server_wanted,
    )
