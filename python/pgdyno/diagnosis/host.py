"""How the CPUs of the server's host were used, by whom."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.analysis.window_facts import WindowFacts
from pgdyno.model.cpu_states import CPU_STATES
from pgdyno.model.host_time import host_cpu_s


@dataclass(frozen=True, slots=True)
class HostUse:
    """Shares of all CPU time of the host."""

    idle: float
    server: float
    driver: float
    stolen: float  # by the hypervisor
    others: float  # everybody else, the kernel's own work and our telemetry included

    @property
    def own_part(self) -> float:
        """What we are of all that used it, or was given to other machines."""
        used = self.server + self.driver + self.stolen + self.others
        return (self.server + self.driver) / used if used > 0 else 1.0


def host_use(window: WindowFacts) -> HostUse | None:
    """None: the host was not looked at, or is not the server's.

    What the kernel counts to no state is nobody's: it may be used, or stolen.
    """
    states = {name: window.per_s(f"cpu.{name}_s") for name in CPU_STATES}
    server = window.per_s("server.cpu_s")
    known = {name: value for name, value in states.items() if value is not None}
    counted = sum(known.values())
    driver_s = window.driver.cpu_s if window.driver.beside_server else None
    if driver_s is None or server is None or len(known) < len(states) or counted <= 0:
        return None
    total = host_cpu_s(window.grown, window.window_s) / window.window_s
    driver = driver_s / window.window_s
    idle = known["idle"] + known["iowait"]
    stolen = known["steal"]
    others = max(0.0, counted - idle - stolen - server - driver)
    return HostUse(
        idle / total, min(1.0, server / total), min(1.0, driver / total), stolen / total,
        others / total,
    )  # fmt: skip
