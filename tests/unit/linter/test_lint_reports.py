"""The linter over the settings of the four field reports, and over what pgdyno itself writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.catalog import entries, machine_knobs
from pgdyno.linter import Severity, System, check
from pgdyno.linter.source import Kind, parse
from pgdyno.linter.system import GIB
from pgdyno.plan import read_plan
from pgdyno.plan.resolve.plan import resolve
from tests.data.reports import KNOWN, REPORTS, counts, findings, known, sources, table
from tests.data.servers import HOST, installed

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("part", [known, counts, table])
def test_the_figures_list_every_finding(part: Callable[[], str]) -> None:
    text = (ROOT / "docs" / "numbers.md").read_text()
    assert part() in text, "paste what `python -m tests.data.reports` prints"


@pytest.mark.parametrize("report", REPORTS)
def test_what_a_report_sets_stands_in_the_catalogue(report: str) -> None:
    options = {knob.option for knob in machine_knobs().values()}
    unknown = {
        one.name
        for source in sources(report)
        for one in source.assignments
        if one.name not in entries() and one.name not in options
    }
    assert unknown <= {"defaults", "kernel", "/vmlinuz-3.18.24"}, "which are no settings"


@pytest.mark.parametrize(("report", "name", "severity"), KNOWN)
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


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("sysctl", "kernel.sched_migration_cost_ns = 5000000"),
        ("sysctl", "kernel.sched_min_granularity_ns = 10000000"),
        ("postgresql", "stats_temp_directory = '/run'"),
        ("postgresql", "old_snapshot_threshold = 1h"),
        ("postgresql", "wal_keep_segments = 0"),
        ("fstab", "/dev/sdb /d xfs delaylog 0 0"),
    ],
)
def test_what_other_guides_still_set_is_gone(kind: Kind, text: str) -> None:
    (one,) = check([parse("file", kind, text)], System(18, (6, 18), 64 * GIB))
    assert one.severity is Severity.GONE


@pytest.mark.parametrize("huge", [False, True], ids=["small pages", "huge pages"])
@pytest.mark.parametrize("memory_gib", [1, 4, 24, 64, 256, 1024])
@pytest.mark.parametrize("major", [15, 18])
def test_nothing_is_wrong_with_what_tuned_writes(major: int, memory_gib: int, huge: bool) -> None:
    pages = memory_gib * GIB // 2 // HOST.huge_page_bytes if huge else 0
    host = replace(
        HOST, memory_bytes=memory_gib * GIB, huge_pages_free=pages, free_disk_bytes=400 * GIB
    )
    draft = read_plan(ROOT / "plans" / "tuning.toml")
    tuned = resolve(draft, installed(major), host).stage("tuned")
    text = "\n".join(f"{one.name} = '{one.value}'" for one in tuned.settings)
    source = parse("postgresql.conf", "postgresql", text)
    assert len(source.assignments) == len(tuned.settings) > 5
    assert (("huge_pages", "on") in [(one.name, one.value) for one in source.assignments]) == huge
    for kernel in ((5, 10), (6, 18)):
        assert check([source], System(major, kernel, host.memory_bytes)) == ()


def test_nothing_is_wrong_with_what_the_catalogue_advises() -> None:
    advised = {
        name: knob.advise
        for name, knob in machine_knobs().items()
        if knob.layer == "sysctl" and knob.advise
    }
    text = "\n".join(f"{name} = {value}" for name, value in advised.items())
    assert len(advised) > 5
    assert check([parse("sysctl.conf", "sysctl", text)], System(18, (6, 18), 64 * GIB)) == ()
