"""Advice from probes: given where the figures speak for it, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.disk_facts import Advice, NotKnown
from pgdyno.analysis.storage import storage_facts
from pgdyno.analysis.storage_advice import not_known, storage_advice
from pgdyno.analysis.storage_facts import PathFacts
from pgdyno.model.floor import DeviceClaims, Floor, GridPoint, Load, PathRound, Probed
from pgdyno.model.floor_figures import Span, Times
from pgdyno.plan.packaged import packaged_plans
from pgdyno.report.storage import render_md
from pgdyno.report.storage_answer import answer
from tests.data.probed import DISK, MEMORY, at_rates, floor, in_rounds, probed

ALIKE = {1: 90_000.0, 4: 95_000.0, 16: 99_000.0, 64: 100_000.0}
CLOUD = {1: 1_000.0, 4: 4_000.0, 16: 15_000.0, 64: 16_000.0}
ON_A = replace(DISK, disks=("vda",))
ON_B = replace(DISK, device="/dev/vdb", block_device="vdb", disks=("vdb",))


def advice(found: Probed) -> dict[str, Advice]:
    return {one.what: one for one in storage_advice(storage_facts(found))}


def repeated(one: Floor, *shares: float) -> Probed:
    """The path in rounds in which the heaviest loads reached these shares of their rate."""
    depths = tuple(sorted({point.depth for point in one.grid}))
    jobs = tuple(sorted({point.jobs for point in one.grid}))
    wish = replace(probed(one).wish, depths=depths, jobs=jobs, rounds=len(shares))

    def window(load: Load, share: float) -> GridPoint:
        of = [point for point in one.grid if point.pattern == load.pattern]
        rates = {point.outstanding: point.per_s for point in of}
        rate = share * rates[max(rates)] if load == wish.heaviest(load.pattern) else rates[1]
        return replace(of[0], depth=load.depth, jobs=load.jobs, per_s=rate)

    rounds = tuple(
        (replace(at_rates(one.path, 20_000, 20_000), reads=None, writes=None,
                 again=tuple(window(load, share) for load in wish.repeated)),)
        for share in shares
    )  # fmt: skip
    found = in_rounds(*rounds)
    return replace(found, wish=wish, floors=(replace(one, mixed=None, rested=()),))


def of(one: Floor, *shares: float) -> dict[str, Advice]:
    return advice(repeated(one, *(shares or (0.9, 1.0, 1.1))))


def unknown(found: Probed) -> dict[str, NotKnown]:
    return {one.what: one for one in not_known(storage_facts(found))}


def test_many_reads_at_once_are_advised_where_they_are_many_times_as_fast() -> None:
    found = of(floor("/a", rates=CLOUD))
    reads = found["Ask for many pages at once"]

    assert reads.where == "/a"
    assert reads.because == (
        "one read at a time reaches 1,000/s (1,000 to 1,000), 64 at once 16,000/s (14,400 to"
        " 17,600), ×15.96 (95% interval 12.43 to 20.50, 3 rounds)"
    )
    assert reads.settings["effective_io_concurrency"] == "16"
    assert reads.settings["io_workers"] == "16"
    maintained = found["Let vacuum and analyze ask for many pages at once"]
    assert maintained.because == reads.because
    assert maintained.settings == {"maintenance_io_concurrency": "16"}
    assert (reads.plan, maintained.plan) == ("parallel-io", "parallel-maintenance")
    assert "Ask for many pages at once" not in of(floor("/a", rates=ALIKE))


def test_what_the_spread_does_not_tell_is_not_known() -> None:
    """Single windows have advised what the next ones took back."""
    what, near = "Ask for many pages at once", {1: 1_000.0, 64: 2_400.0}
    spread = repeated(floor("/a", rates=near), 0.5, 1.0, 1.9)
    assert what not in advice(spread)
    told = unknown(spread)[what]
    assert told.because.startswith("64 random reads at once against one at a time: ×2.37 (")
    assert (
        "it would be advised from ×2 on, a threshold that is chosen, not measured" in told.because
    )
    assert "/a. Not known: ask for many pages at once? 64 random reads at once" in render_md(
        storage_facts(spread)
    )
    assert what in of(floor("/a", rates=near), 0.99, 1.0, 1.01)
    assert what not in unknown(repeated(floor("/a", rates=near), 0.99, 1.0, 1.01))
    once = probed(floor("/a", rates=CLOUD))
    assert what not in advice(once)
    assert unknown(once)[what].because.startswith(
        "16 random reads at once against one at a time: ×15.00, each measured once"
    )


def test_a_rate_that_every_round_exceeds_is_no_cap() -> None:
    """One window of the grid was disturbed: at most was said of less than rounds reached."""
    facts = storage_facts(repeated(floor("/a"), 2.5, 3.0, 3.5))

    assert facts.paths[0].cap.by == "not known"
    assert answer(facts)[0].endswith(
        "Random reads reach 100,000/s, and whether they stop there is not known; each load was"
        " measured once. In rounds the heaviest reached 300,000/s (250,000 to 350,000)."
    )
    assert storage_facts(repeated(floor("/a"), 0.9, 3.0, 3.5)).paths[0].cap.by == "host or device"


def test_wal_is_sent_to_a_faster_disk_only_if_rounds_agree() -> None:
    def two(*fast: float) -> Probed:
        found = in_rounds(*((at_rates("/a", 1000, 1000), at_rates("/bb", *2 * [rate]))
                            for rate in fast))  # fmt: skip
        apart = [replace(one, claims=claims)
                 for one, claims in zip(found.floors, (ON_A, ON_B), strict=True)]  # fmt: skip
        return replace(found, floors=tuple(apart))

    assert (
        "(95% interval 1.95 to 2.05, 3 rounds)"
        in advice(two(1980, 2000, 2020))["Put WAL on /bb"].because
    )
    assert "Put WAL on /bb" not in advice(two(600, 2000, 6000))
    told = unknown(two(600, 2000, 6000))["Put WAL on /bb"].because
    assert "(95% interval 0.11 to 34.44, 3 rounds). The two cannot be told apart." in told


def test_wal_is_not_sent_to_a_disk_whose_interval_lies_below_1() -> None:
    """Middles of paths and pairs of rounds may point in opposite directions."""
    found = storage_facts(probed(floor("/a", ON_A), floor("/bb", ON_B)))
    here, there = found.paths
    quick, slow = Span(1e5, 1e5, 1e5, 3), Span(2e5, 2e5, 2e5, 3)

    def rounds_at(one: PathFacts, fio: Span, *rates: float) -> PathFacts:
        (window,) = one.mixed
        mixed = [replace(window, alone=replace(window.alone, per_s=rate)) for rate in rates]
        figure = replace(one.flush, programs=(one.flush.programs[0], fio))
        return replace(one, flush=figure, mixed=tuple(mixed))

    paths = (
        rounds_at(here, quick, 1000.0, 1010.0, 1020.0),
        rounds_at(there, slow, 2000.0, 2020.0, 2040.0),
    )
    told = replace(found, paths=paths)
    assert "Put WAL on /a" not in {one.what for one in storage_advice(told)}
    assert "Put WAL on /a" not in {one.what for one in not_known(told)}


def test_wal_is_not_sent_elsewhere_for_kinds_that_differ() -> None:
    """A rate of fio under a checkpoint of one disk stood against pg_test_fsync of the other."""
    here, there = at_rates("/a", 443, 262), at_rates("/bb", 609, 257)
    under = replace(here.mixed.under, per_s=1056.0)
    here = replace(here, mixed=replace(here.mixed, under=under))
    found = in_rounds((here, there), (here, there))
    apart = [replace(one, claims=claims)
             for one, claims in zip(found.floors, (ON_A, ON_B), strict=True)]  # fmt: skip
    told = storage_facts(replace(found, floors=tuple(apart)))

    assert "Put WAL on /a" not in {one.what for one in storage_advice(told)}
    assert "Put WAL on /a" not in {one.what for one in not_known(told)}


@pytest.mark.parametrize(
    ("low", "high", "faster"),
    [(1.01, 2.0, True), (0.5, 0.99, False), (1.0, 2.0, None), (0.5, 1.0, None), (None, None, None)],
)
def test_one_thing_is_faster_where_its_interval_leaves_out_1(
    low: float | None, high: float | None, faster: bool | None
) -> None:
    once = Span(1.0, 1.0, 1.0, 3)
    assert Times(once, once, 1.2, low, high).faster is faster


def test_wal_is_not_sent_elsewhere_for_what_other_programs_or_moments_measured() -> None:
    """pg_test_fsync alone and fio under a checkpoint once made a fall that fio did not see."""
    apart = "Keep WAL apart from what checkpoints write"

    def under(fio: float, per_s: float) -> PathRound:
        one = at_rates("/a", 4000, fio)
        return replace(one, mixed=replace(one.mixed, under=replace(one.mixed.under, per_s=per_s)))

    alike = in_rounds((under(800, 700),), (under(800, 700),))
    assert apart not in advice(alike)
    mixed = in_rounds((under(2000, 300),), (under(2000, 1000),), (under(2000, 3500),))
    assert apart not in advice(mixed), "one round was faster beside writes than without"
    assert apart in unknown(mixed)
    hindered = in_rounds((under(2000, 300),), (under(2000, 400),), (under(2000, 350),))
    assert advice(hindered)[apart].because.startswith("commits fall from 2,000/s to 350/s")
    wide = in_rounds((under(2000, 1460),), (under(2000, 200),), (under(2000, 200),))
    assert apart not in advice(wide), "its interval does not tell"
    assert apart in unknown(wide)


def test_settings_stay_within_what_a_server_takes() -> None:
    depths = {1: 10.0, 8: 80.0, 64: 640.0, 2048: 20_000.0}
    reads = of(floor("/a", rates=depths))["Ask for many pages at once"]
    assert reads.settings["effective_io_concurrency"] == "1000"
    assert reads.settings["io_workers"] == "32"
    slow = in_rounds(*((at_rates("/a", 2.0, 2.0),) for _ in range(3)))
    assert advice(slow)["Let commits share flushes"].settings["commit_delay"] == "100000"


def test_several_processes_scan_where_one_does_not_reach_what_several_do() -> None:
    def jobs(one: GridPoint) -> GridPoint:
        several = one.pattern == "sequential read" and one.depth > 1
        return replace(one, depth=1, jobs=one.depth) if several else one

    one = floor("/a", rates=CLOUD)
    scans = of(replace(one, grid=tuple(map(jobs, one.grid))))
    found = scans["Scan, vacuum and build indexes with several processes"]
    assert found.settings["max_parallel_maintenance_workers"] == "2", "no more than there are CPUs"
    assert "Scan, vacuum and build indexes with several processes" not in of(one)


def test_checkpoints_hand_over_more_only_where_that_is_more_than_they_do() -> None:
    what = "Let checkpoints hand over more at a time"
    assert what not in of(floor("/a", rates=CLOUD)), "16 pages are less than the default of 256 kB"
    deep = {1: 1_000.0, 16: 16_000.0, 128: 120_000.0}
    settings = of(floor("/a", rates=deep))[what].settings
    assert settings["checkpoint_flush_after"] == settings["bgwriter_flush_after"] == "1024kB"
    middle = {1: 1_000.0, 16: 16_000.0, 48: 47_000.0}
    settings = of(floor("/a", rates=middle))[what].settings
    assert settings["checkpoint_flush_after"] == "384kB"
    assert "bgwriter_flush_after" not in settings, "its default is more"


@pytest.mark.parametrize(("flushes_per_s", "delay_us"), [(500.0, "1000"), (20_000.0, None)])
def test_a_delay_is_advised_where_flushes_are_slow(
    flushes_per_s: float, delay_us: str | None
) -> None:
    rounds = tuple((at_rates("/a", flushes_per_s, flushes_per_s),) for _ in range(3))
    found = advice(in_rounds(*rounds)).get("Let commits share flushes")
    assert (found and found.settings["commit_delay"]) == delay_us


def test_memory_is_given_no_advice() -> None:
    assert of(floor("/dev/shm/a", MEMORY, rates=CLOUD)) == {}


def claimed(a: DeviceClaims, b: DeviceClaims) -> dict[str, Advice]:
    return advice(probed(floor("/a", a, rates=ALIKE), floor("/bb", b, rates=ALIKE)))


def test_two_disks_are_used_together_and_one_disk_is_not_called_two() -> None:
    spread = claimed(ON_A, ON_B)["Spread tables and indexes over these disks"]
    assert spread.where == "/a and /bb"
    assert "200,000 random reads a second, the fastest alone 100,000" in spread.because
    assert "Spread tables and indexes over these disks" not in claimed(ON_A, ON_A)
    assert "Spread tables and indexes over these disks" not in claimed(DISK, DISK), "not known"


def test_every_plan_that_is_named_is_there() -> None:
    slow = in_rounds(*((at_rates("/a", 500.0, 500.0),) for _ in range(3)))
    named = {one.plan for found in (of(floor("/a", rates=CLOUD)), advice(slow))
             for one in found.values() if one.plan}  # fmt: skip
    assert named == {"parallel-io", "parallel-maintenance", "group-commit"}
    assert named <= {one.name for one in packaged_plans()}
