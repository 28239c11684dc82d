"""The server's processes by role in the report: CPU beside reads and writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.resource_facts import ProcessRow, ProcessUse
from pgdyno.report.document import Table
from pgdyno.report.sections import resources
from tests.data.pages import facts_of


@pytest.fixture
def facts(tmp_path: Path) -> Facts:
    return replace(facts_of(tmp_path), resources=())


def rows(facts: Facts) -> list[list[tuple[str, str | None]]]:
    section = resources.section(facts)
    assert section is not None
    tables = [one for one in section.blocks if isinstance(one, Table)]
    return [[(cell.text, cell.note) for cell in row] for table in tables for row in table.rows]


def test_each_role_has_its_cpu_and_its_bytes(facts: Facts) -> None:
    none, unread = ProcessUse(0.0, 0.0, 0.0, 0.0), ProcessUse(0.5, None, None, None)
    busy = ProcessUse(1.25, 0.5, 4096.0, 8192.0)
    told = replace(facts, processes=(
        ProcessRow("backend", (busy, unread, None)), ProcessRow("wal_writer", (none,) * 3),
        ProcessRow("io_worker", (none, none, replace(none, read_bytes_per_s=1024.0))),
    ))  # fmt: skip
    waits, reads = "0 waited", "read 0 B/s"
    assert rows(told) == [
        [("backends", None), ("1.25", "0.5 waited"), ("0.5", None), ("–", None)],
        [("backends", None), ("8.00 KiB/s", "read 4.00 KiB/s"), ("–", None), ("–", None)],
        [("I/O workers", None), ("0 B/s", reads), ("0 B/s", reads), ("0 B/s", "read 1.00 KiB/s")],
    ]
    idle = replace(told, processes=(ProcessRow("startup", (none, replace(none, cpus=2.0), none)),))
    assert rows(idle) == [[("recovery", None), ("0", waits), ("2", waits), ("0", waits)]]


def test_where_nothing_is_known_there_is_no_section(facts: Facts) -> None:
    assert resources.section(replace(facts, processes=())) is None


def test_what_the_kernel_counts_for_a_write_is_said_where_it_is_not_what_devices_got(
    facts: Facts,
) -> None:
    """Backends had 170 MiB/s, and the device that they wrote to 83."""
    busy = (ProcessUse(1.25, 0.5, 4096.0, 8192.0),) * 3
    section = resources.section(replace(facts, processes=(ProcessRow("backend", busy),)))
    assert section is not None
    _, written = (one for one in section.blocks if isinstance(one, Table))
    assert "all pages of a piece count at each write to it" in written.caption
