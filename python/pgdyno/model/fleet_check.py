"""What was found of the hosts of a fleet before anything is driven."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.fleet import Machine, Offset


@dataclass(frozen=True, slots=True)
class HostLooked:
    """A host as it answered."""

    name: str
    machine: Machine
    offset: Offset  # of its steady clock
    connections: int | None  # that it will open, at most over all stages; None: nobody said
    ceiling_per_s: float | None = None  # transactions of its driver, as it was calibrated
    remarks: tuple[str, ...] = ()  # what is unlike the others or too little, each a clause


@dataclass(frozen=True, slots=True)
class FleetLooked:
    """All hosts: each was reached, none is of another version, none is there twice."""

    hosts: tuple[HostLooked, ...]
