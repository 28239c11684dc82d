"""Ceilings that the hosts of a load know of themselves: asked of each, nothing is measured for it.

A host keeps its ceilings itself, as `pgdyno calibrate` does, so that each is measured once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pydantic import JsonValue

from pgdyno.drive.host_results import connections_of
from pgdyno.drive.remote_call import remote_call, unreadable
from pgdyno.model.calibration import Ceiling
from pgdyno.model.fleet import Fleet
from pgdyno.model.host_address import host_address
from pgdyno.model.record_json import JsonObject, from_plain
from pgdyno.model.workload import Workload, WorkloadKind
from pgdyno.store.calibration import calibration_of
from pgdyno.target.home import home
from pgdyno.target.host_facts import this_machine

WINDOW_S, ROUNDS = 2.0, 3
"""Of a calibration that a check of the fleet has made."""
_PROGRAM = "pgdyno.api.host_ceilings"
_NOT_ANSWERED = ("mix", "script")  # the null server has no answers to them
_ASK_S = 60.0
_EACH_S = 120.0  # besides its windows, on a machine that is busy
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class _Answer:
    ceilings: tuple[Ceiling, ...]


Load = tuple[WorkloadKind, str, int]
"""Kind and face of a workload, and the connections that the host has of it."""


def loads_of(workloads: Sequence[Workload], number: int, hosts: int) -> tuple[Load, ...]:
    """What a host is to drive of workloads, each kind and face once."""
    found = {
        (one.kind, one.face): connections_of(one, number, hosts)
        for one in workloads
        if one.engine == "pgdyno" and one.kind not in _NOT_ANSWERED
    }
    return tuple((kind, face, max(1, count)) for (kind, face), count in found.items())


def kept_here(loads: Sequence[Load]) -> tuple[Ceiling, ...]:
    """The ceilings that this machine has for these loads.

    Raises:
        StoreError: They cannot be read.
    """
    return calibration_of(home(), this_machine(), list(dict.fromkeys(one[0] for one in loads)))


def ceilings_of(
    fleet: Fleet,
    workloads: Sequence[Workload],
    here: Callable[[Sequence[Load]], tuple[Ceiling, ...]] = kept_here,
    *,
    measure: bool = False,
) -> dict[str, tuple[Ceiling, ...]]:
    """The ceilings of each host of a fleet, by its name.

    Args:
        fleet: The hosts.
        workloads: That they drive.
        here: Gives those of this host.
        measure: Have hosts calibrate what was not, one after the other: some may be one machine.

    Raises:
        PgdynoError: A host cannot be reached, or not measure.
    """

    def one_host(numbered: tuple[int, str]) -> tuple[Ceiling, ...]:
        number, name = numbered
        loads = loads_of(workloads, number, len(fleet.hosts))
        if not loads:
            return ()
        if host_address(name).is_here:
            return here(loads)
        asked: list[JsonValue] = [list(one) for one in loads]
        question: JsonObject = {"loads": asked, "measure": measure}
        patience_s = _ASK_S + measure * len(loads) * (_EACH_S + ROUNDS * WINDOW_S * 2)
        answer = remote_call(name, fleet, _PROGRAM, question, patience_s)
        try:
            return from_plain(_Answer, answer).ceilings
        except ValueError:
            raise unreadable(name, json.dumps(answer)) from None

    numbered = list(enumerate(fleet.hosts))
    if measure:
        return {one[1]: one_host(one) for one in numbered}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(fleet.hosts, pool.map(one_host, numbered), strict=True))
