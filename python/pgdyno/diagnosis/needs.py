"""What rules need of a window, and why it may not be there."""

from __future__ import annotations

from pgdyno.analysis.account_facts import Account
from pgdyno.analysis.window_facts import WindowFacts
from pgdyno.diagnosis.host import host_idle
from pgdyno.diagnosis.rule import Need
from pgdyno.model.host_time import HOST_IDLE_COLUMNS
from pgdyno.model.units import share_text

OTHERS = "sessions of others"
PROCESSES = "processes of the server"
"""What samplers call what they lack."""


def sessions(window: WindowFacts) -> str | None:
    """What sessions do."""
    if isinstance(window.account, Account):
        return None
    return window.account.reason + _because(window, "sessions")


def sessions_of_others(window: WindowFacts) -> str | None:
    """That what the sampler may see is all there is."""
    return next((one for one in window.missing if one.startswith(OTHERS)), None)


def requests_under_way(window: WindowFacts) -> str | None:
    """Which connections have a request under way."""
    if isinstance(window.account, Account) and window.account.in_flight is not None:
        return None
    if window.driver.engine != "pgdyno":
        return f"{window.driver.engine} does not tell when requests are under way"
    return "the driver did not tell when requests were under way"


def cpu_by_process(window: WindowFacts) -> str | None:
    """What the kernel says of the server's processes: time on a CPU, time without one."""
    if isinstance(window.account, Account) and window.account.cpu_known:
        return None
    known = "what the server's processes ran, and waited for a CPU, is not known"
    idle = host_idle(window)
    host = "" if idle is None else f"; the host's CPUs were idle {share_text(idle)} of the time"
    return known + _because(window, PROCESSES, "waiting for a CPU") + host


def host_cpu(window: WindowFacts) -> str | None:
    """What the server's host did."""
    if not window.driver.beside_server:
        return "the server's host was not looked at"
    return counters(*HOST_IDLE_COLUMNS, "server.cpu_s")(window)


def counters(*names: str) -> Need:
    """Counters of the host or the server."""

    def lacks(window: WindowFacts) -> str | None:
        lacking = [name for name in names if name not in window.grown]
        if not lacking:
            return None
        shown = lacking[0] + (f" and {len(lacking) - 1} more" if lacking[1:] else "")
        return f"{shown} was not sampled" + _because(window)

    return lacks


def any_counter(*names: str) -> Need:
    """At least one of these counters."""

    def lacks(window: WindowFacts) -> str | None:
        if any(name in window.grown for name in names):
            return None
        return f"neither {' nor '.join(names)} was sampled" + _because(window)

    return lacks


def _because(window: WindowFacts, *starts: str) -> str:
    if window.telemetry == "none":
        return ': telemetry is off (`telemetry = "none"`)'
    why = [one for one in window.missing if one.startswith(starts)] if starts else []
    # One lack may hide several things, each of which gives it as its reason.
    by_reason = {one.partition(": ")[2]: one for one in reversed(why)}
    return f" ({'; '.join(reversed(by_reason.values()))})" if why else ""
