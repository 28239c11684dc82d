"""The linter over the settings of the four field reports, and over what pgdyno itself writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pgdyno.lint import Finding, Severity, System, check, read_source
from pgdyno.lint.source import parse
from pgdyno.lint.system import GIB
from pgdyno.plan import read_plan, resolve
from tests.data.servers import HOST, installed

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "tests" / "data" / "lint"
MEMORY_GIB = {  # of the machines that the reports were written on
    "tpcc-six-stages": 256,
    "benchmarksql-9.5": 256,
    "full-page-writes": 64,
    "storage-comparison": 512,
}
REPORTS = tuple(MEMORY_GIB)


def findings(report: str) -> tuple[Finding, ...]:
    """All of a report's files together, for the latest PostgreSQL and Linux."""
    paths = sorted((FOLDER / report).iterdir())
    system = System(18, (6, 18), MEMORY_GIB[report] * GIB)
    return check([read_source(str(path)) for path in paths], system)


@pytest.mark.parametrize("report", REPORTS)
def test_every_finding_of_a_report(report: str, snapshot: SnapshotAssertion) -> None:
    told = [
        f"{Path(one.at.path).name}:{one.at.line} {one.severity}: {one.at.name} = {one.at.value}:"
        f" {one.text}"
        for one in findings(report)
    ]
    assert told == snapshot


@pytest.mark.parametrize(
    ("report", "name", "severity"),
    [
        ("storage-comparison", "net.ipv4.tcp_tw_recycle", Severity.GONE),
        ("storage-comparison", "vm.extra_free_kbytes", Severity.GONE),
        ("tpcc-six-stages", "nobarrier", Severity.GONE),
        ("storage-comparison", "wal_keep_segments", Severity.GONE),
        ("benchmarksql-9.5", "vacuum_defer_cleanup_age", Severity.GONE),
        ("tpcc-six-stages", "wal_level", Severity.CONTRADICTORY),
        ("tpcc-six-stages", "commit_delay", Severity.INEFFECTIVE),
        ("benchmarksql-9.5", "commit_delay", Severity.INEFFECTIVE),
        ("storage-comparison", "archive_command", Severity.DANGEROUS),
        ("storage-comparison", "kernel.shmmax", Severity.INEFFECTIVE),
        ("full-page-writes", "kernel.sem", Severity.INEFFECTIVE),
        ("tpcc-six-stages", "vm.nr_hugepages", Severity.INEFFECTIVE),
        ("tpcc-six-stages", "dynamic_shared_memory_type", Severity.INEFFECTIVE),
        ("tpcc-six-stages", "full_page_writes", Severity.DANGEROUS),
        ("tpcc-six-stages", "track_activities", Severity.NOTE),
        ("full-page-writes", "barrier", Severity.DANGEROUS),
        ("full-page-writes", "data", Severity.DANGEROUS),
        ("storage-comparison", "vm.lowmem_reserve_ratio", Severity.DANGEROUS),
        ("storage-comparison", "net.ipv4.tcp_rmem", Severity.INEFFECTIVE),
        ("storage-comparison", "net.ipv4.ip_local_port_range", Severity.INEFFECTIVE),
        ("storage-comparison", "net.ipv4.tcp_tw_reuse", Severity.NOTE),
        ("storage-comparison", "vm.swappiness", Severity.NOTE),
        ("storage-comparison", "vm.dirty_ratio", Severity.DANGEROUS),
        ("storage-comparison", "checkpoint_completion_target", Severity.INEFFECTIVE),
        ("storage-comparison", "max_prepared_transactions", Severity.NOTE),
        ("benchmarksql-9.5", "work_mem", Severity.DANGEROUS),
        ("benchmarksql-9.5", "autovacuum_freeze_max_age", Severity.DANGEROUS),
        ("benchmarksql-9.5", "wal_sync_method", Severity.NOTE),
    ],
)
def test_what_research_found_is_found(report: str, name: str, severity: Severity) -> None:
    assert (name, severity) in {(one.at.name, one.severity) for one in findings(report)}


def test_huge_pages_that_do_not_fit() -> None:
    files = [
        parse("sysctl.conf", "sysctl", "vm.nr_hugepages = 102352"),
        parse("postgresql.conf", "postgresql", "shared_buffers = 240GB\nhuge_pages = on"),
    ]
    found = check(files, System(18, (6, 18), 180 * GIB))
    told = {(one.at.name, one.severity, one.rule) for one in found}
    assert ("vm.nr_hugepages", Severity.DANGEROUS, "huge-pages-beyond-memory") in told
    assert ("vm.nr_hugepages", Severity.CONTRADICTORY, "huge-pages-too-few") in told


@pytest.mark.parametrize("major", [15, 18])
def test_nothing_is_wrong_with_what_tuned_writes(major: int) -> None:
    draft = read_plan(ROOT / "plans" / "demo.toml")
    tuned = resolve(draft, installed(major), HOST).stage("tuned")
    text = "\n".join(f"{one.name} = '{one.value}'" for one in tuned.settings)
    source = parse("postgresql.conf", "postgresql", text)
    assert len(source.assignments) == len(tuned.settings) > 5
    assert check([source], System(major, (6, 1), HOST.memory_bytes)) == ()
