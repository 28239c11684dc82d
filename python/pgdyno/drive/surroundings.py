"""What else a host of the load did in the window: its CPUs, its network, what carries our lines.

Read twice, when the worker hears that the window has begun and that it is over: within a quarter of
a second, so shares are of the time between both readings.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import psutil

from pgdyno.model.cpu_states import IDLE_STATES
from pgdyno.model.fleet import NetworkCard, Surroundings

_COUNTED_TWICE = ("guest", "guest_nice")  # they are in user and nice already
_LOOPBACK = "lo"
_SSH = "sshd"
_RAYLET, _RAY_ACTOR, _RAY_STORE = "raylet", "ray::", "gcs_server"
_RAY_FILES = re.compile(r"/ray/(?:_private|dashboard|autoscaler)/")  # of daemons in Python


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters of a host at a moment."""

    at_s: float
    cpus: int
    idle_s: float  # of all of them
    total_s: float
    ours_s: float  # of this process
    carriers_s: Mapping[str, float]  # CPU of what carries our lines: "ray", "ssh"
    card_bytes: Mapping[str, tuple[int, int]]  # received and sent, by network card
    card_bits_s: Mapping[str, int]  # how fast it says that it is; 0: it does not say


def read() -> Reading:
    """Take a reading; what cannot be seen is 0."""
    times = psutil.cpu_times()
    states = {name: value for name, value in times._asdict().items()
              if name not in _COUNTED_TWICE}  # fmt: skip
    total_s = sum(states.values())
    own = os.times()
    return Reading(
        at_s=time.monotonic(),
        cpus=psutil.cpu_count() or 1,
        idle_s=sum(states.get(name, 0.0) for name in IDLE_STATES),
        total_s=total_s,
        ours_s=own.user + own.system,
        carriers_s=_carriers(),
        card_bytes={
            name: (one.bytes_recv, one.bytes_sent)
            for name, one in psutil.net_io_counters(pernic=True, nowrap=False).items()
            if name != _LOOPBACK
        },
        card_bits_s={name: one.speed * 1_000_000 for name, one in psutil.net_if_stats().items()},
    )


def between(first: Reading, last: Reading) -> Surroundings:
    """What passed between two readings of one host."""
    cards = [
        NetworkCard(
            name, received - first.card_bytes[name][0], sent - first.card_bytes[name][1],
            last.card_bits_s.get(name, 0),
        )
        for name, (received, sent) in last.card_bytes.items()
        if name in first.card_bytes
    ]  # fmt: skip
    # Of a card that was reset meanwhile nobody knows.
    used = [one for one in cards if min(one.received_bytes, one.sent_bytes) >= 0
            and one.received_bytes + one.sent_bytes > 0]  # fmt: skip
    carriers = {name: max(0.0, cpu_s - first.carriers_s[name])
                for name, cpu_s in last.carriers_s.items() if name in first.carriers_s}  # fmt: skip
    seconds = last.at_s - first.at_s
    # A virtual machine loses ticks, and they are of states in which a CPU is busy.
    total_s = max(last.total_s - first.total_s, seconds * min(first.cpus, last.cpus))
    return Surroundings(
        seconds=seconds,
        cpu_busy_s=total_s - (last.idle_s - first.idle_s),
        cpu_total_s=total_s,
        cpu_ours_s=last.ours_s - first.ours_s,
        carriers_cpu_s=carriers,
        cards=tuple(sorted(used, key=lambda one: -(one.received_bytes + one.sent_bytes))[:1]),
    )


def _carriers() -> dict[str, float]:
    """CPU seconds of the processes that carry our lines to the head, by what they are.

    They are our nearest ancestors, so that hosts without any need not look through all processes.
    """
    found: dict[str, float] = {}
    for one in psutil.Process().parents():
        called = _called(one)
        if called.startswith(_SSH):
            found["ssh"] = found.get("ssh", 0.0) + _cpu_s(one)
        elif called == _RAYLET:
            found["ray"] = sum(_cpu_s(each) for each in _of_ray(one))
        elif not called.startswith(_RAY_ACTOR):
            break
    return found


def _of_ray(raylet: psutil.Process) -> Iterator[psutil.Process]:
    """The raylet with all that it started but the driver, and Ray's other daemons."""
    ours, mine = os.getpid(), [raylet, *raylet.children(recursive=True)]
    yield from (one for one in mine if one.pid != ours)
    known = {one.pid for one in mine}
    for one in psutil.process_iter(["name", "cmdline"]):
        words = one.info["cmdline"] or []
        is_daemon = one.info["name"] == _RAY_STORE or any(_RAY_FILES.search(each) for each in words)
        if is_daemon and one.pid not in known:
            yield one


def _called(process: psutil.Process) -> str:
    """As it calls itself, or as its program is called; nothing if it has ended."""
    with suppress(psutil.Error):
        words = process.cmdline()
        title = words[0] if words else ""
        return title if title.startswith((_SSH, _RAY_ACTOR)) else process.name()
    return ""


def _cpu_s(process: psutil.Process) -> float:
    """User and system; 0 of what has ended meanwhile."""
    with suppress(psutil.Error):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0
