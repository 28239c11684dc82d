"""What each resource did during the windows: utilisation, saturation and errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Aspect = Literal["utilisation", "saturation", "errors"]
Unit = Literal["share", "per_s", "level", "s", "bytes_per_s"]


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """One measure of a resource, stage by stage."""

    resource: str  # e.g. "CPU", "device vda"
    aspect: Aspect
    what: str  # is measured, e.g. "share of time with a request under way"
    unit: Unit
    stages: tuple[float | None, ...]  # mean of its windows, in the order of the plan; None: unknown
