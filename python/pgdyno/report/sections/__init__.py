"""The sections of the report, one file each, and their order."""

from __future__ import annotations

from pgdyno.report.document import Section
from pgdyno.report.facts import Facts
from pgdyno.report.sections import (
    efficiency,
    latency,
    method,
    repeat,
    rounds,
    settings,
    stages,
    time,
    trust,
)

ORDER = (stages, rounds, time, latency, efficiency, settings, trust, method, repeat)


def sections(facts: Facts) -> tuple[Section, ...]:
    """All sections, in the order of reading."""
    return tuple(module.section(facts) for module in ORDER)
