"""What a driver cost the host that it ran on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Client:
    """What the driver itself cost in the window."""

    user_s: float
    system_s: float
    window_s: float
    cpus: int
    share_of_host: float
    voluntary_switches: int
    involuntary_switches: int
    run_queue_wait_s: float
    threads: int
    rss_max_bytes: int
    thread_cpu_s: tuple[float, ...] = ()  # of each driver thread
    thread_wait_s: tuple[float, ...] = ()  # runnable but not running, same order

    @property
    def cpu_s(self) -> float:
        """CPU time, in both modes."""
        return self.user_s + self.system_s
