"""What a driver cost the host that it ran on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Client:
    """What the driver itself cost in the window; None: its counters were not read near its ends."""

    user_s: float | None
    system_s: float | None
    window_s: float
    cpus: int
    share_of_host: float | None
    voluntary_switches: int | None
    involuntary_switches: int | None
    run_queue_wait_s: float | None
    threads: int
    rss_max_bytes: int
    thread_cpu_s: tuple[float, ...] = ()  # of each driver thread
    thread_wait_s: tuple[float, ...] = ()  # runnable but not running, same order

    @property
    def cpu_s(self) -> float | None:
        """CPU time, in both modes."""
        if self.user_s is None or self.system_s is None:
            return None
        return self.user_s + self.system_s
