"""The profile `tuned` on machines small and large, with huge pages and without."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.catalog import profile
from pgdyno.model.plan import Plan
from pgdyno.model.settings import HostFacts, OriginKind, Rung, ServerFacts
from pgdyno.plan import read_plan
from pgdyno.plan.estimate.needs import shared_memory_bytes
from pgdyno.plan.resolve.plan import resolve
from pgdyno.plan.resolve.profile import size_profile
from pgdyno.plan.settings.configured import Configured
from tests.data.servers import GIB, HOST, installed, running

MIB = 1 << 20
TUNED = profile("tuned")
TUNING = "plans/tuning.toml"


def sizes(host: HostFacts, server: ServerFacts, **own: str) -> dict[str, str]:
    settings, _ = size_profile(TUNED, own, {}, server, host)
    return {one.name: one.value for one in settings}


def machine(memory_gib: float, disk_gib: float, huge_pages: int = 0) -> HostFacts:
    memory, disk = int(memory_gib * GIB), int(disk_gib * GIB)
    return replace(HOST, memory_bytes=memory, free_disk_bytes=disk, huge_pages_free=huge_pages)


def tuning(host: HostFacts, major: int = 18) -> Plan:
    return resolve(read_plan(TUNING), installed(major), host)


@pytest.mark.parametrize("major", [15, 18])
@pytest.mark.parametrize("memory_gib", [1, 2, 4, 15.6, 24, 256, 1024])
@pytest.mark.parametrize("disk_gib", [5, 20, 80, 4000])
def test_the_three_stages_fit_on_every_machine_without_contradiction(
    major: int, memory_gib: float, disk_gib: float
) -> None:
    plan = tuning(machine(memory_gib, disk_gib), major)

    assert plan.stage("tuned").rung is Rung.D0
    assert plan.estimate.memory_bytes <= memory_gib * GIB
    assert plan.estimate.disk_bytes <= disk_gib * GIB


def test_sizes_on_a_machine_with_24_gib() -> None:
    values = sizes(machine(24, 80), installed(18))

    assert values["shared_buffers"] == "6GB"
    assert values["effective_cache_size"] == "18GB"
    assert values["max_wal_size"] == "16GB"
    assert values["min_wal_size"] == "4GB"
    assert values["huge_pages"] == "off"


def test_a_small_machine_never_gets_less_than_the_defaults() -> None:
    values = sizes(machine(0.25, 1), installed(18))

    assert values["shared_buffers"] == "128MB"
    assert values["max_wal_size"] == "1GB"
    assert values["maintenance_work_mem"] == "64MB"


def test_limits_at_the_top() -> None:
    values = sizes(machine(4096, 100_000), installed(18))

    assert values["max_wal_size"] == "64GB"
    assert values["maintenance_work_mem"] == "1GB"


def test_every_value_says_where_it_comes_from() -> None:
    settings, _ = size_profile(TUNED, {}, {}, installed(18), machine(24, 80))
    details = {one.name: one.origin.detail for one in settings}

    assert {one.origin.kind for one in settings} == {OriginKind.PROFILE}
    assert details["shared_buffers"] == "25% of 24.0 GiB of memory"
    assert details["max_wal_size"] == "25% of 80.0 GiB of free disk, down to a power of two"
    assert details["min_wal_size"] == "25% of max_wal_size"
    assert details["maintenance_work_mem"] == "2% of 24.0 GiB of memory"
    assert details["huge_pages"] == "0 pages of 2.00 MiB are free, 3212 would be needed"
    assert details["checkpoint_timeout"] == "profile tuned"
    settings, _ = size_profile(TUNED, {}, {}, installed(18), machine(24, 80, huge_pages=1))
    details = {one.name: one.origin.detail for one in settings}
    assert details["huge_pages"] == "1 page of 2.00 MiB is free, 3212 would be needed"


def test_huge_pages_are_used_only_if_all_shared_memory_fits() -> None:
    needed = 3212
    enough, short = machine(24, 80, needed), machine(24, 80, needed - 1)

    assert sizes(enough, installed(18))["huge_pages"] == "on"
    assert sizes(short, installed(18))["huge_pages"] == "off"
    assert sizes(short, installed(18), shared_buffers="1GB")["huge_pages"] == "on"


def test_what_the_stage_sets_is_reckoned_with_and_not_replaced() -> None:
    values = sizes(machine(24, 80), installed(18), max_wal_size="64MB", shared_buffers="1GB")

    assert "max_wal_size" not in values
    assert values["min_wal_size"] == "64MB"


def test_settings_for_other_versions_are_left_out() -> None:
    assert sizes(HOST, installed(15))["effective_io_concurrency"] == "16"
    assert "effective_io_concurrency" not in sizes(HOST, installed(18))


def test_a_setting_that_the_server_lacks_is_left_out_with_a_note() -> None:
    server = installed(18)
    knobs = {name: knob for name, knob in server.knobs.items() if name != "wal_buffers"}

    settings, notes = size_profile(TUNED, {}, {}, replace(server, knobs=knobs), HOST)

    assert "wal_buffers" not in {one.name for one in settings}
    left_out = [note for note in notes if "leaves out" in note]
    assert left_out == ["profile tuned leaves out wal_buffers, which PostgreSQL 18 lacks"]


@pytest.mark.parametrize(
    ("major", "buffers", "sessions", "wal", "measured_mib"),
    [  # of `postgres -C shared_memory_size`, PostgreSQL 18.6 and 15.20
        (18, "128MB", 100, "16MB", 162),
        (18, "128MB", 1000, "64MB", 257),
        (18, "1GB", 100, "16MB", 1086),
        (18, "6GB", 100, "64MB", 6392),
        (18, "6GB", 1000, "16MB", 6417),
        (18, "64GB", 100, "16MB", 67103),
        (18, "64GB", 1000, "64MB", 67225),
        (15, "128MB", 100, "16MB", 155),
        (15, "6GB", 100, "16MB", 6302),
        (15, "64GB", 1000, "64MB", 67093),
    ],
)
def test_shared_memory_is_estimated_from_above_but_not_far(
    major: int, buffers: str, sessions: int, wal: str, measured_mib: int
) -> None:
    values = {"shared_buffers": buffers, "max_connections": str(sessions), "wal_buffers": wal}

    estimated = shared_memory_bytes(Configured(running(major), values)) / MIB

    assert measured_mib <= estimated <= max(measured_mib * 1.05, measured_mib + 70)
