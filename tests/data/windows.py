"""Made-up windows for the rules of diagnosis: a healthy one, and one for each class of limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pgdyno.analysis.account_facts import (
    DRAWS,
    IDLE,
    IN_FLIGHT,
    RUNNING,
    WANTS_CPU,
    Account,
    NoAccount,
)
from pgdyno.analysis.window_facts import CheckpointSpan, Driver, Load, WindowFacts

WINDOW_S = 30.0
SESSIONS = 8.0
HEALTHY = {RUNNING: 0.22, WANTS_CPU: 0.02, "flush": 0.22, IN_FLIGHT: 0.20, "row": 0.10,
           "read": 0.20, IDLE: 0.04}  # fmt: skip
"""Shares of session time of which none is much."""


def an_account(
    shares: Mapping[str, float],
    roots: Mapping[str, float] | None = None,
    *,
    sessions: float = SESSIONS,
    spread: float = 0.02,
    **other: Any,
) -> Account:
    """With these shares of session time, each as sure as `spread` of it."""
    rng = np.random.default_rng(7)

    def drawn(given: Mapping[str, float]) -> dict[str, Any]:
        blur = {one: np.concatenate([[1.0], 1 + spread * rng.standard_normal(DRAWS)])
                for one in given}  # fmt: skip
        levels = {name: share * blur[name] for name, share in given.items()}
        total = np.sum(list(levels.values()), axis=0)
        return {name: sessions * level / total for name, level in levels.items()}

    parts = drawn(shares)
    moved = {
        name: np.full(DRAWS + 1, sessions * (share - shares.get(name, 0.0)))
        for name, share in (roots or {}).items()
        if share > shares.get(name, 0.0)
    }
    known: dict[str, Any] = {
        "sessions": sessions, "looks": 290, "seconds": 29, "parts": parts,
        "roots": parts if roots is None else drawn(roots), "moved": moved,
        "holders_seen": 60 if moved else 0, "in_flight": sessions * 0.9, "cpu_known": True,
        "excess": 0.0, "by_statement": (),
    }  # fmt: skip
    return Account(**(known | other))


LOAD = Load(
    arrivals="closed", connections=8, due=30_000, ended=30_000, failed=0, skipped=0, unanswered=0,
    waits_share=0.0, round_trips=5.0, per_s=1000.0,
)  # fmt: skip
DRIVER = Driver(
    engine="pgdyno", cpus=8, cpu_s=0.5 * WINDOW_S, wanted=0.2, busiest=0.15, ceiling_share=None,
    beside_server=True,
)  # fmt: skip
RATES = {  # a second
    "cpu.user_s": 2.0, "cpu.nice_s": 0.0, "cpu.system_s": 0.5, "cpu.idle_s": 5.4,
    "cpu.iowait_s": 0.1, "cpu.irq_s": 0.0, "cpu.softirq_s": 0.0, "cpu.steal_s": 0.0,
    "server.cpu_s": 1.8, "process.backend.cpu_s": 1.7, "process.backend.wait_cpu_s": 0.1,
    "wal.fpi": 2.0, "wal.bytes": 1e6, "wal.buffers_full": 0.0, "disk.flushes": 800.0,
    "disk.flush_s": 0.2, "disk.reads": 500.0, "database.blocks_read": 600.0,
    "bgwriter.allocated": 600.0, "database.deadlocks": 0.0, "slru.transaction.reads": 0.0,
    "psi.memory.some_s": 0.0, "vm.swap_in_pages": 0.0, "vm.swap_out_pages": 0.0,
    "vm.allocation_stalls": 0.0, "cgroup.throttled_s": 0.0,
}  # fmt: skip


def a_window(
    shares: Mapping[str, float] = HEALTHY,
    roots: Mapping[str, float] | None = None,
    *,
    rates: Mapping[str, float] | None = None,
    without: tuple[str, ...] = (),
    **other: Any,
) -> WindowFacts:
    """A healthy window, but for what is told."""
    grown = {name: rate * WINDOW_S for name, rate in (RATES | dict(rates or {})).items()
             if name not in without}  # fmt: skip
    seconds = np.arange(29) + 0.5
    ended = np.full(29, 1000.0) + np.random.default_rng(3).normal(0, 30, 29)
    known: dict[str, Any] = {
        "trial": 1, "round": 1, "stage": "one", "window_s": WINDOW_S, "telemetry": "default",
        "missing": (), "account": an_account(shares, roots), "load": LOAD, "driver": DRIVER,
        "grown": grown, "gauges": {}, "highest": {"transactions.oldest_s": 0.1}, "settings": {},
        "checkpoints": (), "second": seconds, "ended": ended,
        "costs": {"database.blocks_hit": ended * 40.0}, "dead_share": {"account": (0.02, 0.03)},
    }  # fmt: skip
    return WindowFacts(**(known | other))


def _mostly(part: str, share: float) -> dict[str, float]:
    """One part of so much, the others as they stand to each other without it."""
    rest = {name: value for name, value in HEALTHY.items() if name != part}
    whole = sum(rest.values())
    return {part: share} | {name: value / whole * (1 - share) for name, value in rest.items()}


def full_host(server: float, driver: float, others: float, steal: float = 0.0) -> dict[str, float]:
    """CPUs of eight: all of them are used."""
    return {
        "cpu.user_s": server + driver + others, "cpu.system_s": 0.0, "cpu.idle_s": 0.0,
        "cpu.iowait_s": 0.0, "cpu.steal_s": steal, "server.cpu_s": server,
    }  # fmt: skip


_CHECKPOINTED = np.where((np.arange(29) % 12) < 6, 500.0, 1000.0)
_SPANS = tuple(CheckpointSpan(at, at + 6.0, 0.1) for at in (0.0, 12.0, 24.0))
_GROWING = np.linspace(40.0, 90.0, 29)

PLANTED: dict[str, WindowFacts] = {
    "client": a_window(_mostly(IN_FLIGHT, 0.7), driver=replace(DRIVER, wanted=0.97)),
    "cpu": a_window(
        {RUNNING: 0.5, WANTS_CPU: 0.4, IN_FLIGHT: 0.1},
        rates=full_host(server=7.2, driver=0.5, others=0.3),
    ),
    "neighbours": a_window(
        {RUNNING: 0.2, WANTS_CPU: 0.7, IN_FLIGHT: 0.1},
        rates=full_host(server=1.0, driver=0.2, others=6.8),
        driver=replace(DRIVER, cpu_s=0.2 * WINDOW_S),
    ),
    "flush": a_window(_mostly("flush", 0.7)),
    "wal_insertion": a_window(_mostly("wal_write", 0.5), rates={"wal.buffers_full": 40.0}),
    "full_pages": a_window(
        _mostly("wal_write", 0.5) | {"wal_insert": 0.1}, rates={"wal.fpi": 120.0}
    ),
    "checkpoints": a_window(checkpoints=_SPANS, ended=_CHECKPOINTED),
    "reads": a_window(_mostly("read", 0.7)),
    "buffers": a_window(_mostly("mapping", 0.4)),
    "row_locks": a_window(
        _mostly("row", 0.8), {IDLE: 0.6, RUNNING: 0.2, "flush": 0.1, IN_FLIGHT: 0.1}
    ),
    "pages": a_window(_mostly("page", 0.5)),
    "transaction_states": a_window(_mostly("slru", 0.4)),
    "dead_rows": a_window(
        _mostly(RUNNING, 0.8), costs={"database.blocks_hit": _GROWING * 1000.0},
        ended=np.full(29, 1000.0), dead_share={"branches": (0.5, 0.9)},
    ),
    "round_trips": a_window(_mostly(IN_FLIGHT, 0.6)),
    "memory": a_window(rates={"psi.memory.some_s": 0.3}),
    "connections": a_window(_mostly("snapshot", 0.4)),
}  # fmt: skip
"""What each rule finds."""

FIRST = {"dead_rows": ("cpu",)}
"""Classes that may come before the planted one: they are what it costs."""

NEEDED: dict[str, tuple[WindowFacts, str]] = {
    name: (replace(one, account=NoAccount("sessions were not sampled"), telemetry="none"),
           "telemetry is off")
    for name, one in PLANTED.items()
    if name not in ("checkpoints", "memory")
} | {
    "checkpoints": (replace(PLANTED["checkpoints"], checkpoints=None), "log"),
    "memory": (replace(PLANTED["memory"], grown={}), "psi.memory.some_s"),
}  # fmt: skip
"""The same without what the rule needs, and a word of its reason."""
