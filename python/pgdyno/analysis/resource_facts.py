"""What each resource did during the windows, and what the server's processes took of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Aspect = Literal["utilisation", "saturation", "errors", "limit", "part"]
"""A limit is one that is set on the resource, a part is what its use is made of."""
Unit = Literal["share", "per_s", "level", "s", "bytes", "bytes_per_s", "hz", "celsius", "uncounted"]


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """One measure of a resource, stage by stage."""

    resource: str  # e.g. "CPU", "device vda"
    aspect: Aspect
    what: str  # is measured, e.g. "share of time with a request under way"
    unit: Unit  # uncounted: nobody counts it, and no stage has a value
    stages: tuple[float | None, ...]  # mean of its windows, in the order of the plan; None: unknown
    further: bool = False  # another measure of the same says more


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What the processes of a role took on average; None: not known, e.g. not ours to read."""

    cpus: float | None  # used
    waiting: float | None  # that could have run, and had no CPU
    read_bytes_per_s: float | None  # from devices
    written_bytes_per_s: float | None  # to devices, as pages of the kernel's cache became dirty


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """The processes of the server that have one role, stage by stage."""

    role: str  # as in the series `process.<role>`; `unseen`: ended before they were looked at
    stages: tuple[ProcessUse | None, ...]  # means of its windows, in the order of the plan
