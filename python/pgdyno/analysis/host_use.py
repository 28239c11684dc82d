"""Who used the CPUs of the server's host in windows, and what is said where it was others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pgdyno.analysis.answer_facts import Doubt
from pgdyno.model.cpu_states import CPU_STATES
from pgdyno.model.host_time import host_cpu_s
from pgdyno.model.plan import Plan
from pgdyno.model.run import TrialRecord, TrialResult
from pgdyno.model.wording import plural
from pgdyno.stats.storage import OTHERS_SHARE

_OURS = ("pgdyno.cpu_s", "live.cpu_s", "pooler.cpu_s")
"""What is neither server nor driver, and was started by us."""


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


def host_use(grown: Mapping[str, float], window_s: float, driver_s: float | None) -> HostUse | None:
    """None: the host, its server or its driver was not looked at.

    What the kernel counts to no state is nobody's: it may be used, or stolen.

    Args:
        grown: Growth of the counters over a window.
        window_s: How long it was.
        driver_s: CPU time of the driver, which ran on this host.
    """
    known = {name: grown[f"cpu.{name}_s"] for name in CPU_STATES if f"cpu.{name}_s" in grown}
    server_s, counted_s = grown.get("server.cpu_s"), sum(known.values())
    if driver_s is None or server_s is None or len(known) < len(CPU_STATES):
        return None
    if window_s <= 0 or counted_s <= 0:
        return None
    total_s = host_cpu_s(grown, window_s)
    idle_s, stolen_s = known["idle"] + known["iowait"], known["steal"]
    others_s = max(0.0, counted_s - idle_s - stolen_s - server_s - driver_s)
    return HostUse(
        idle_s / total_s, min(1.0, server_s / total_s), min(1.0, driver_s / total_s),
        stolen_s / total_s, others_s / total_s,
    )  # fmt: skip


def others_share(result: TrialResult) -> float | None:
    """What programs that are not ours, and other machines, had of the host's CPU time in a window.

    None: not known. Of hosts that load together their drivers are not told apart here.
    """
    if result.fleet is not None:
        return None
    use = host_use(result.deltas, result.window_s, result.client.cpu_s)
    if use is None:
        return None
    ours_s = sum(result.deltas.get(name, 0.0) for name in _OURS)
    ours = ours_s / host_cpu_s(result.deltas, result.window_s)
    return max(0.0, use.others - ours) + use.stolen


def busy_doubts(
    plan: Plan, finished: Sequence[TrialRecord], *, server_on_host: bool
) -> Iterator[Doubt]:
    """That others had much of the CPUs while the plan was measured, by the worst window.

    Args:
        plan: The resolved plan.
        finished: Its trials whose numbers may be used.
        server_on_host: Whether driver and server share a machine.
    """
    followed = {one.name for one in plan.stages if one.standby}  # standbys would count as others
    known = [
        (one.stage, share)
        for one in finished
        if server_on_host and one.stage not in followed and one.result is not None
        if (share := others_share(one.result)) is not None
    ]
    busy = [(stage, share) for stage, share in known if share > OTHERS_SHARE]
    if not busy:
        return
    others = "other programs, or other machines on the same hardware,"
    most = f"up to {max(share for _, share in busy):.0%}"
    stages = tuple(one.name for one in plan.stages if one.name in {stage for stage, _ in busy})
    yield Doubt(
        f"{others} had {most} of the host's CPU time during windows, more than"
        f" {OTHERS_SHARE:.0%} in {len(busy)} of {plural(len(known), 'window')}",
        grave=True, stages=stages, all_stages=len(stages) == len(plan.stages) > 1,
        simply=f"{others} had {most} of the machine's processors during the measurement",
    )  # fmt: skip
