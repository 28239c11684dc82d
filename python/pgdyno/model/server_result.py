"""One of several servers that a workload was divided over, in one trial."""

from __future__ import annotations

from dataclasses import dataclass, field


def of_server(server: str, name: str) -> str:
    """What something of one of several servers is called among all."""
    return f"{server}: {name}"


@dataclass(frozen=True, slots=True)
class ServerResult:
    """What a server of a trial did; what it was asked for is the part of the same name."""

    name: str  # host and port
    server: str  # what it called itself: version()
    held: str  # what of the workload: "10 warehouses", "warehouses 11 to 20", "scale 5"
    deltas: dict[str, float]  # growth of its counters over the window
    configured: dict[str, str] = field(default_factory=dict)  # settings that it had already
    violations: int | None = None  # rows against conditions of consistency; None: not checked
