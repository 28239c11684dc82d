"""What a floor means: knees, caps, doubts, and the rate of commits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.data.probed import DISK, FLAT, MEMORY, floor, grid, probed

from pgdyno.model.floor import Clock, DeviceClaims, SyncRate
from pgdyno.model.floor_figures import Span, Times
from pgdyno.stats.group_commit import (
    Flush,
    Transaction,
    commit_delay_us,
    commit_rate_per_s,
    flush_limit_per_s,
)
from pgdyno.stats.storage import cap, clock_doubts, doubts, flush_rate, iops_knee

RISING = {1: 10_000.0, 4: 39_000.0, 16: 150_000.0, 64: 500_000.0}


def test_the_knee_is_the_first_load_near_the_peak() -> None:
    found = iops_knee(floor("/a"), "random read")

    assert (found.peak.depth, found.knee.depth, found.flat) == (64, 16, True)


def test_a_rate_that_still_rises_has_its_knee_at_the_end() -> None:
    found = iops_knee(floor("/a", rates=RISING), "random read")

    assert (found.knee.depth, found.flat) == (64, False)


def test_of_equal_loads_the_faster_shape_counts() -> None:
    one = floor("/a")
    wide = tuple(replace(p, depth=p.depth // 4, jobs=4, per_s=p.per_s * 2)
                 for p in grid({16: 90_000.0}))  # fmt: skip
    found = iops_knee(replace(one, grid=(*one.grid, *wide)), "random read")

    assert (found.peak.depth, found.peak.jobs) == (4, 4)


def test_one_path_cannot_tell_whose_cap_it_is() -> None:
    one = floor("/a")

    assert cap(one, probed(one), None).by == "host or device"
    assert "requests are counted" in cap(one, probed(one), None).fact


def test_a_rate_that_rises_has_no_cap_yet() -> None:
    one = floor("/a", rates=RISING)

    assert cap(one, probed(one), None).by == "not reached"
    assert cap(one, probed(one), None).fact.endswith(", the largest load tried: still rising")


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ({16: 90_000.0}, "with 16 under way, the only load tried: whether a larger one reaches"),
        ({16: 95_000.0, 24: 96_000.0}, "near the highest rate; no load of twice as many was tried"),
    ],
)
def test_what_was_not_tried_is_not_said_to_rise(rates: dict[int, float], said: str) -> None:
    one = floor("/a", rates=rates)

    assert cap(one, probed(one), None).by == "not reached"
    assert said in cap(one, probed(one), None).fact
    assert "rising" not in cap(one, probed(one), None).fact


@pytest.mark.parametrize(
    ("together", "by"),
    [((98_000.0, 97_000.0), "device"), ((52_000.0, 50_000.0), "host")],
)
def test_what_does_not_add_up_is_the_hosts(together: tuple[float, ...], by: str) -> None:
    floors = floor("/a"), floor("/bb")
    found = cap(floors[0], probed(*floors, together=together), None)

    assert found.by == by
    assert "of 200,000/s alone" in found.fact


@pytest.mark.parametrize("share", [0.95, 2.0])
def test_a_processor_at_its_end_is_named(share: float) -> None:
    one = replace(floor("/a"), grid=grid(FLAT, cpu_share=share))

    assert cap(one, probed(one), None).by == "processor"


def test_a_grid_that_every_round_refutes_shows_no_cap() -> None:
    one = floor("/a")
    at_once = Span(250_000.0, 120_000.0, 390_000.0, 3)
    repeated = Times(Span(10_000.0, 9_000.0, 11_000.0, 3), at_once, 25.0, 9.0, 60.0)
    found = cap(one, probed(one), repeated)

    assert found.by == "not known"
    assert "every round of the heaviest reached more (120,000 to 390,000/s)" in found.fact
    as_the_grid = replace(repeated, many=replace(at_once, low=99_000.0))
    assert cap(one, probed(one), as_the_grid).by == "host or device"


def _with_flush(claims: DeviceClaims, flush_ns: float) -> list[str]:
    syncs = (SyncRate("one-write", "fdatasync", 1e9 / flush_ns), SyncRate("unsynced", "write", 2e6))
    return [doubt.fact for doubt in doubts(replace(floor("/a", claims), syncs=syncs), flush_ns)]


@pytest.mark.parametrize(
    ("claims", "flush_ns", "words"),
    [
        (DISK, 50_000, "and flushes faster than flash: on vda a flush takes 50.0 µs"),
        (DISK, 1_000, "a write with fdatasync takes 1.00 µs, a write without 500 ns"),
        (replace(DISK, rotational=True), 50_000, "could turn: on vda a flush takes 50.0 µs"),
        (replace(DISK, options="rw,nobarrier"), 900_000, "is mounted with nobarrier"),
        (MEMORY, 500, "tmpfs keeps its files in memory"),
    ],
)
def test_what_contradicts_a_claim_is_told(
    claims: DeviceClaims, flush_ns: float, words: str
) -> None:
    (fact,) = _with_flush(claims, flush_ns)

    assert words in fact


@pytest.mark.parametrize(
    ("claims", "flush_ns"),
    [
        (DISK, 900_000),
        (replace(DISK, write_cache="write through"), 20_000),
        (replace(DISK, rotational=True), 9_000_000),
    ],
)
def test_what_agrees_is_not_doubted(claims: DeviceClaims, flush_ns: float) -> None:
    assert _with_flush(claims, flush_ns) == []


def test_a_slow_clock_is_doubted() -> None:
    assert clock_doubts(Clock(38.0, ())) == ()
    assert "takes 850 ns, more than 100 ns" in clock_doubts(Clock(850.0, ()))[0].fact


def test_the_default_method_counts() -> None:
    assert flush_rate(floor("/a")).per_s == 20_599.670


def test_two_groups_take_turns() -> None:
    limits = [flush_limit_per_s(n, 100_000) for n in (1, 2, 4, 16)]

    assert limits == [10_000, 10_000, 20_000, 80_000]


@pytest.mark.parametrize("clients", [1, 2, 8, 16])
def test_short_transactions_reach_what_flushes_allow(clients: int) -> None:
    rate = commit_rate_per_s(clients, Flush(1e6), Transaction(cpu_ns=1e3), cpus=64)

    assert rate == pytest.approx(flush_limit_per_s(clients, 1e6), rel=0.02)


def test_one_client_pays_cpu_and_flush_one_after_the_other() -> None:
    rate = commit_rate_per_s(1, Flush(1e5), Transaction(cpu_ns=3e5, bursts=7), cpus=4)

    assert rate == pytest.approx(1e9 / 4e5, rel=0.03)


def test_many_clients_are_limited_by_cpu() -> None:
    rate = commit_rate_per_s(64, Flush(5e4), Transaction(cpu_ns=2e5, bursts=7), cpus=2)

    assert rate == pytest.approx(2e9 / 2e5, rel=0.03)


def test_cpu_of_flushes_is_taken_from_transactions() -> None:
    cheap, dear = (
        commit_rate_per_s(1, Flush(5e4, cpu_ns=cpu_ns), Transaction(cpu_ns=2e5), cpus=1)
        for cpu_ns in (0, 4e4)
    )
    crowd = [
        commit_rate_per_s(16, Flush(5e4, cpu_ns=cpu_ns), Transaction(cpu_ns=2e5), cpus=1)
        for cpu_ns in (0, 4e4)
    ]

    assert cheap == pytest.approx(dear, rel=0.02)  # alone nobody wants the CPU meanwhile
    assert crowd[1] < crowd[0]


def test_storage_that_has_rested_flushes_slower() -> None:
    rested = Flush(1e5, paused=((0, 0), (2e5, 2e5)))
    alone, crowd = (
        [
            commit_rate_per_s(n, flush, Transaction(cpu_ns=1e5), cpus=8)
            for flush in (Flush(1e5), rested)
        ]
        for n in (1, 32)
    )

    assert 1e9 / alone[1] - 1e9 / alone[0] == pytest.approx(1e5, rel=0.3)  # after 1e5 of work
    assert crowd[1] / crowd[0] > 0.9 > alone[1] / alone[0]  # one flush follows the other


def test_a_pause_between_two_that_were_measured_is_between_their_flushes() -> None:
    flush = Flush(1e5, paused=((2e4, 0), (1.2e5, 5e4)))

    assert [flush.of(0, pause) for pause in (0, 2e4, 7e4, 1.2e5, 1e9)] == [
        1e5, 1e5, 1.25e5, 1.5e5, 1.5e5
    ]  # fmt: skip


def test_a_measured_flush_takes_its_pauses_from_the_rates() -> None:
    one = floor("/a")
    assert one.mixed is not None
    flush = Flush.measured(one.mixed.alone, one.rested)

    assert flush.ns == one.mixed.alone.ns
    assert [round(pause / 1000) for pause, _ in flush.paused[1:]] == [60, 200, 800]
    assert [longer / flush.ns for _, longer in flush.paused] == pytest.approx([0, 0.25, 1, 2])
    assert Flush.measured(one.mixed.alone, ()).paused == ()


@pytest.mark.wide
def test_who_wants_the_same_row_waits_for_its_flush() -> None:
    def rate(rows: int, burst: int = 5) -> float:
        transaction = Transaction(cpu_ns=1e4, bursts=7, rows=rows, row_burst=burst)
        return commit_rate_per_s(16, Flush(1e6), transaction, cpus=8)

    assert rate(1) == pytest.approx(1e9 / 1.01e6, rel=0.05)  # one after the other
    assert rate(1, burst=1) == pytest.approx(rate(1), rel=0.05)
    assert rate(1) < rate(16) < rate(100) < rate(100_000)
    assert rate(100_000) == pytest.approx(rate(0), rel=0.03)


def test_more_wal_takes_longer_flushes() -> None:
    flush = Flush(1e5, more_page_ns=2e4)

    assert [flush.of(size) for size in (0, 600, 8192, 8193, 80_000)] == [
        1e5, 1e5, 1e5, 1.2e5, 2.8e5
    ]  # fmt: skip


def test_flushes_that_differ_keep_their_mean() -> None:
    uneven = Flush(1e5, quantiles=((0.0, 1.0), (0.9, 1.0), (0.95, 20.0), (1.0, 20.0)))
    rates = [
        commit_rate_per_s(1, flush, Transaction(cpu_ns=1e5), cpus=2)
        for flush in (Flush(1e5), uneven)
    ]

    assert rates[0] == pytest.approx(rates[1], rel=0.03)


def test_one_long_flush_keeps_everybody_waiting() -> None:
    uneven = Flush(1e5, quantiles=((0.0, 1.0), (0.99, 1.0), (0.995, 50.0), (1.0, 50.0)))
    even, odd = (
        commit_rate_per_s(8, flush, Transaction(cpu_ns=1e5, bursts=7), cpus=2)
        for flush in (Flush(1e5), uneven)
    )

    assert odd < even


def test_the_same_measurement_predicts_the_same() -> None:
    args = (8, Flush(5e4), Transaction(cpu_ns=2e5, bursts=7), 2)

    assert commit_rate_per_s(*args) == commit_rate_per_s(*args)


def test_the_delay_is_half_a_flush() -> None:
    assert commit_delay_us(1_200_000) == 600


def test_paths_on_one_disk_do_not_tell_whose_cap_it_is() -> None:
    """A loop device whose file lies on the other path's disk."""
    loop = replace(DISK, block_device="loop0", backing_file="/srv/file", disks=("vda",))
    floors = floor("/a", replace(DISK, disks=("vda",))), floor("/bb", loop)
    found = cap(floors[0], probed(*floors, together=(60_000.0, 60_000.0)), None)

    assert found.by == "host or device"
    assert "the paths share vda" in found.fact
