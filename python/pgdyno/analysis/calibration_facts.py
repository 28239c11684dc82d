"""What a report says of a calibration, as a record; `analysis.calibration` makes it."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.calibration import Calibrated, Ceiling, Machine


@dataclass(frozen=True, slots=True)
class CalibrationFacts:
    """What the driver reaches on a machine."""

    ident: str
    started_unix_ns: int
    pgdyno: str
    machine: Machine
    ceilings: tuple[Ceiling, ...]  # for each face of the workload
    warmup_s: float  # before each window
    measured: Calibrated  # as it is, for the JSON
