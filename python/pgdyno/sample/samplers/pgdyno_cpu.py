"""CPU seconds of pgdyno's own controlling process, samplers included; the driver is apart."""

from __future__ import annotations

import time

from pgdyno.sample.sampler import Column, Row, Sampler, Subject

_COLUMN = Column("pgdyno.cpu_s", "s")


def sampler(_subject: Subject) -> Sampler:
    """Always there."""
    return Sampler("own cpu", (_COLUMN,), _take)


def _take() -> Row:
    return {_COLUMN.name: time.process_time()}
