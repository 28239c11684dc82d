"""The settings of the four field reports, and what the linter finds in them.

`python -m tests.data.reports` prints the figures of docs/numbers.md; a test compares them with it.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

from pgdyno.linter import Finding, Severity, Source, System, check, read_source
from pgdyno.linter.system import GIB

FOLDER = Path(__file__).parent / "lint"
MEMORY_GIB = {  # of the machines that the reports were written on
    "tpcc-six-stages": 256,
    "tpcc-six-stages-summary": 256,
    "benchmarksql-9.5": 256,
    "full-page-writes": 64,
    "storage-comparison": 512,
}
REPORTS = tuple(MEMORY_GIB)
LETTERS = dict(zip(REPORTS, "ABCDE", strict=True))
# Mistakes of the reports that were known before there was a linter.
KNOWN = (
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
    ("tpcc-six-stages", "elevator", Severity.GONE),
    ("tpcc-six-stages", "numa", Severity.NOTE),
    ("tpcc-six-stages-summary", "scsi_mod.scan", Severity.INEFFECTIVE),
    ("tpcc-six-stages-summary", "intel_idle.max_cstate", Severity.NOTE),
    ("tpcc-six-stages", "--with-wal-segsize", Severity.GONE),
    ("tpcc-six-stages", "--enable-thread-safety", Severity.GONE),
    ("tpcc-six-stages", "-fstrict-enums", Severity.INEFFECTIVE),
    ("tpcc-six-stages", "lvcreate --stripesize", Severity.INEFFECTIVE),
    ("tpcc-six-stages", "lvcreate --stripes", Severity.NOTE),
    ("tpcc-six-stages", "mkfs.xfs -d agcount", Severity.INEFFECTIVE),
    ("tpcc-six-stages", "queue/read_ahead_kb", Severity.NOTE),
    ("tpcc-six-stages", "logdev", Severity.NOTE),
    ("tpcc-six-stages", "nodiratime", Severity.INEFFECTIVE),
    ("tpcc-six-stages", "wal_buffers", Severity.NOTE),
    ("tpcc-six-stages", "max_wal_size", Severity.NOTE),
    ("tpcc-six-stages", "checkpoint_timeout", Severity.NOTE),
    ("tpcc-six-stages", "effective_io_concurrency", Severity.NOTE),
    ("tpcc-six-stages", "update_process_title", Severity.NOTE),
    ("tpcc-six-stages", "work_mem", Severity.DANGEROUS),
    ("tpcc-six-stages", "synchronous_commit", Severity.DANGEROUS),
    ("tpcc-six-stages", "memlock", Severity.NOTE),
    ("tpcc-six-stages-summary", "shared_buffers", Severity.DANGEROUS),
    ("tpcc-six-stages-summary", "vm.overcommit_ratio", Severity.INEFFECTIVE),
    ("tpcc-six-stages-summary", "fs.file-max", Severity.NOTE),
    ("storage-comparison", "core", Severity.NOTE),
    ("storage-comparison", "nofile", Severity.NOTE),
    ("storage-comparison", "current_clocksource", Severity.NOTE),
    ("storage-comparison", "mke2fs -E lazy_itable_init", Severity.INEFFECTIVE),
    ("storage-comparison", "mke2fs -O uninit_bg", Severity.NOTE),
    ("storage-comparison", "mke2fs -m", Severity.NOTE),
    ("storage-comparison", "initdb --encoding", Severity.NOTE),
    ("storage-comparison", "net.nf_conntrack_max", Severity.NOTE),
    ("storage-comparison", "vm.mmap_min_addr", Severity.INEFFECTIVE),
    ("storage-comparison", "autovacuum_freeze_max_age", Severity.NOTE),
    ("storage-comparison", "autovacuum_multixact_freeze_max_age", Severity.NOTE),
    ("storage-comparison", "max_connections", Severity.NOTE),
    ("storage-comparison", "wal_compression", Severity.NOTE),
    ("storage-comparison", "effective_io_concurrency", Severity.NOTE),
    ("storage-comparison", "kernel.shmmni", Severity.INVALID),
    ("full-page-writes", "vacuum_multixact_freeze_table_age", Severity.INEFFECTIVE),
    ("full-page-writes", "net.ipv4.tcp_mem", Severity.INEFFECTIVE),
)


@cache
def sources(report: str) -> tuple[Source, ...]:
    """All files of a report."""
    return tuple(read_source(str(path)) for path in sorted((FOLDER / report).iterdir()))


@cache
def findings(report: str) -> tuple[Finding, ...]:
    """Of all files of a report together, for the latest PostgreSQL and Linux."""
    return check(sources(report), System(18, (6, 18), MEMORY_GIB[report] * GIB))


def known() -> str:
    """How many of the known mistakes it finds."""
    found = {(report, one.at.name, one.severity) for report in REPORTS for one in findings(report)}
    missed = len(set(KNOWN) - found)
    return f"Known of the reports before: {len(set(KNOWN))} mistakes; missed: {missed}."


def table() -> str:
    """Every finding, each once with the reports that have it, worst first."""
    found: dict[tuple[int, str, str, str], set[str]] = {}
    for report in REPORTS:
        for one in findings(report):
            where = Path(one.at.path).name
            key = (one.severity.rank, where, one.at.shown, one.text)
            found.setdefault(key, set()).add(LETTERS[report])
    lines = ["| | file | setting | in | what is the matter |", "|---|---|---|---|---|"]
    for (rank, where, setting, text), letters in sorted(found.items()):
        severity = list(Severity)[rank]
        cells = (severity.value, where, f"`{setting}`", " ".join(sorted(letters)), text)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def counts() -> str:
    """How many settings and findings, by severity, each report has."""
    lines = [
        "| | report | settings | " + " | ".join(one.value for one in Severity) + " |",
        "|---|---|" + "---:|" * (1 + len(Severity)),
    ]
    for report in REPORTS:
        number = sum(len(source.assignments) for source in sources(report))
        by = Counter(one.severity for one in findings(report))
        cells = [LETTERS[report], report, str(number), *(str(by[one]) for one in Severity)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(f"{known()}\n\n{counts()}\n\n{table()}")
