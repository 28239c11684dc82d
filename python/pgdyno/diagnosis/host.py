"""How the CPUs of the server's host were used in a window, by whom."""

from __future__ import annotations

from pgdyno.analysis import host_use as of_counters
from pgdyno.analysis.host_use import HostUse
from pgdyno.analysis.window_facts import WindowFacts
from pgdyno.model.host_time import HOST_IDLE_COLUMNS, host_idle_share


def host_use(window: WindowFacts) -> HostUse | None:
    """None: the host was not looked at, or is not the server's."""
    if not window.driver.beside_server:
        return None
    return of_counters.host_use(window.grown, window.window_s, window.driver.cpu_s)


def host_idle(window: WindowFacts) -> float | None:
    """Idle part of its CPU time, whoever used the rest; None as above."""
    if not window.driver.beside_server or not window.has(*HOST_IDLE_COLUMNS):
        return None
    return host_idle_share(window.grown, window.window_s)
