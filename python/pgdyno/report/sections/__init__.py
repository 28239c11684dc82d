"""The sections of the report, one file each, and their order."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.analysis.facts import Facts
from pgdyno.report.document import Section, Table, Text
from pgdyno.report.sections import (
    compliance,
    cycles,
    diagnosis,
    durability,
    earlier,
    efficiency,
    hosts,
    imported,
    latency,
    method,
    mistakes,
    pgbench,
    profile,
    protocol,
    recovery,
    repeat,
    replica,
    resources,
    rounds,
    sampled,
    servers,
    settings,
    shape,
    stages,
    statements,
    storage,
    telemetry,
    time,
    trust,
    views,
    wal,
)
from pgdyno.report.sections import (
    sessions as active_sessions,
)

ORDER = (
    stages,
    earlier,
    imported,
    rounds,
    time,
    hosts,
    servers,
    replica,
    diagnosis,
    active_sessions,
    resources,
    statements,
    views,
    wal,
    cycles,
    shape,
    durability,
    recovery,
    latency,
    efficiency,
    profile,
    protocol,
    pgbench,
    settings,
    trust,
    mistakes,
    compliance,
    telemetry,
    sampled,
    method,
    repeat,
    storage,
)


def sections(facts: Facts) -> tuple[Section, ...]:
    """The sections that have something to say, in the order of reading."""
    found = (module.section(facts) for module in ORDER)
    return tuple(_told(section) for section in found if section is not None)


def _told(section: Section) -> Section:
    """The same, in which a table without a row is a sentence: its head says nothing."""
    return replace(
        section,
        blocks=tuple(
            Text(f"{one.caption} None of it was measured.", "quiet")
            if isinstance(one, Table) and not one.rows
            else one
            for one in section.blocks
        ),
    )
