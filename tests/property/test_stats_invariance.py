"""What the statistics promise for all data: units, order and names do not matter."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pgdyno.stats.client_limit import ClientLoad, client_limit
from pgdyno.stats.compare import compare_plan, holm
from pgdyno.stats.interval import MANY_PAIRS, estimate, hodges_lehmann
from pgdyno.stats.noise import noise_floor
from pgdyno.stats.steady import check_window, warmup_cut
from pgdyno.stats.table import Table, outliers
from pgdyno.stats.verdict import Comparison, Verdict
from pgdyno.stats.window import Checkpoint, checkpoint_facts

MIRROR = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}
scales = st.floats(1e-3, 1e6)


@st.composite
def tables(draw: st.DrawFn, rounds_min: int = 2) -> Table:
    """Plans of any size, effect and noise, some with gaps."""
    stages, rounds = draw(st.integers(2, 4)), draw(st.integers(rounds_min, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    noise = draw(st.sampled_from([0.001, 0.02, 0.2]))
    effects = rng.choice([0.0, 0.01, 0.3], size=(stages, 1))
    tpm = 60_000 * np.exp(effects + noise * rng.standard_normal((stages, rounds)))
    tpm[rng.random((stages, rounds)) < draw(st.sampled_from([0.0, 0.0, 0.2]))] = np.nan
    names = tuple(f"s{number}" for number in range(stages))
    return Table(names, tuple(range(1, rounds + 1)), tpm)


def same(one: Comparison, other: Comparison) -> None:
    assert one.verdict is other.verdict
    assert one.rounds_needed == other.rounds_needed
    assert one.n == other.n
    for name in ("ratio", "low", "high", "p", "p_adjusted", "spread"):
        expected = pytest.approx(getattr(other, name), rel=1e-6, abs=1e-9, nan_ok=True)
        assert getattr(one, name) == expected, name


@given(tables(), st.integers(-10, 20))
def test_the_unit_of_throughput_does_not_matter(table: Table, power: int) -> None:
    # A power of two: exact in floating point, so that no verdict can tip over by rounding.
    scaled = Table(table.stages, table.rounds, table.tpm * 2.0**power)
    for one, other in zip(
        compare_plan(table).against_first, compare_plan(scaled).against_first, strict=True
    ):
        same(one, other)
    assert len(outliers(table)) == len(outliers(scaled))


@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_rounds_does_not_matter(table: Table, random: object) -> None:
    order = list(range(len(table.rounds)))
    random.shuffle(order)  # type: ignore[attr-defined]
    shuffled = Table(table.stages, table.rounds, table.tpm[:, order])
    for one, other in zip(
        compare_plan(table).against_before, compare_plan(shuffled).against_before, strict=True
    ):
        same(one, other)


@given(tables())
def test_swapping_two_stages_inverts_ratio_and_verdict(table: Table) -> None:
    (there,) = compare_plan(table.only(["s0", "s1"])).against_first
    (back,) = compare_plan(table.only(["s1", "s0"])).against_first
    assert back.ratio == pytest.approx(1 / there.ratio, nan_ok=True)
    assert back.p == pytest.approx(there.p)
    assert back.rounds_needed == there.rounds_needed
    assert back.verdict is MIRROR.get(there.verdict, there.verdict)
    if there.low > 0:
        assert back.low == pytest.approx(1 / there.high)
        assert back.high == pytest.approx(1 / there.low)


@given(tables())
def test_a_verdict_is_never_at_odds_with_its_interval(table: Table) -> None:
    compared = compare_plan(table)
    for one in (*compared.against_first, *compared.against_before):
        if one.n:
            assert one.low <= one.ratio <= one.high
        assert one.p <= one.p_adjusted <= 1
        match one.verdict:
            case Verdict.BETTER:
                assert one.low > 1
                assert one.p_adjusted <= 0.05
            case Verdict.WORSE:
                assert one.high < 1
                assert one.p_adjusted <= 0.05
            case Verdict.EQUIVALENT:
                assert one.low >= 1 / 1.03
                assert one.high <= 1.03
            case Verdict.UNDECIDED:
                assert one.rounds_needed is None or one.rounds_needed > one.n


@given(tables(), st.floats(0.5, 2.0))
def test_what_a_round_does_to_all_stages_does_not_matter(table: Table, factor: float) -> None:
    moved = table.tpm.copy()
    moved[:, 0] *= factor
    there = compare_plan(table).against_first
    for one, other in zip(
        there, compare_plan(Table(table.stages, table.rounds, moved)).against_first, strict=True
    ):
        assert one.ratio == pytest.approx(other.ratio, nan_ok=True)
        assert one.low == pytest.approx(other.low, abs=1e-9)


@given(st.integers(2, MANY_PAIRS + 4), st.integers(0, 2**32 - 1))
def test_more_confidence_is_a_wider_interval(pairs: int, seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal((1, pairs))
    fits = [estimate(values, confidence) for confidence in (0.8, 0.9, 0.95)]
    for narrow, wide in pairwise(fits):
        assert wide.low[0] <= narrow.low[0] <= hodges_lehmann(values)[0]
        assert wide.high[0] >= narrow.high[0] >= hodges_lehmann(values)[0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_keeps_the_order_and_lies_between_p_and_bonferroni(p: list[float]) -> None:
    values = np.array(p)
    adjusted = holm(values)
    assert (adjusted >= values).all()
    assert (adjusted <= np.minimum(1, values * values.size) + 1e-12).all()
    order = np.argsort(values, kind="stable")
    assert (np.diff(adjusted[order]) >= 0).all()


@given(tables(rounds_min=3), scales)
def test_the_noise_floor_does_not_depend_on_the_unit(table: Table, scale: float) -> None:
    assume(np.isfinite(table.tpm[:2]).all(axis=0).sum() >= 2)
    group = [["s0", "s1"]]
    one = noise_floor(table, group)
    other = noise_floor(Table(table.stages, table.rounds, table.tpm * scale), group)
    assert one.sd == pytest.approx(other.sd)
    assert one.sd_low < one.sd < one.sd_high


@st.composite
def series(draw: st.DrawFn, steps_of: int = 1) -> np.ndarray:
    steps = steps_of * draw(st.integers(0, 150 // steps_of))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    slope = draw(st.sampled_from([0.0, 0.0, 3.0]))
    values = np.maximum(0, 1000 + slope * np.arange(steps) + 50 * rng.standard_normal(steps))
    values[rng.random(steps) < draw(st.sampled_from([0.0, 0.05, 0.6]))] = 0
    return np.asarray(values)


@given(series(), st.integers(-10, 20))
def test_steadiness_and_cut_do_not_depend_on_the_unit(values: np.ndarray, power: int) -> None:
    one, other = check_window(values), check_window(values * 2.0**power)
    assert one.state is other.state
    assert one.drift_per_min == pytest.approx(other.drift_per_min, nan_ok=True)
    assert (one.stall_s, one.zero_s) == (other.stall_s, other.zero_s)
    cuts = warmup_cut(values), warmup_cut(values * 2.0**power)
    assert cuts[0].start_s == pytest.approx(cuts[1].start_s, nan_ok=True)


@given(series(steps_of=10))  # else another part of the window is left out
def test_running_a_window_backwards_turns_its_drift_round(values: np.ndarray) -> None:
    one, other = check_window(values), check_window(values[::-1])
    assert one.state is other.state
    assert one.drift_per_min == pytest.approx(-other.drift_per_min, nan_ok=True, abs=1e-9)
    assert one.stall_s == other.stall_s


@given(series())
def test_stalls_never_exceed_the_window_and_never_leave_the_mean(values: np.ndarray) -> None:
    window = check_window(values)
    assert 0 <= window.zero_s <= window.stall_s <= values.size
    assert window.longest_stall_s <= window.stall_s
    if values.size:
        assert window.mean == pytest.approx(values.mean())
    assert np.isnan(window.effective_n) or 1 <= window.effective_n <= values.size


@given(
    st.lists(st.integers(0, 1000), max_size=8, unique=True),
    st.integers(0, 1000),
    st.integers(1, 500),
    st.floats(0, 1),
    st.integers(-100_000, 100_000),
)
def test_checkpoint_facts_do_not_depend_on_the_clock(
    begins: list[int], start: int, length: int, share: float, shift: int
) -> None:
    begins = sorted(begins)
    spans = [(b, b + share * (e - b)) for b, e in pairwise([*begins, 2000])]
    facts = [
        checkpoint_facts(
            [Checkpoint(b + by, e + by) for b, e in spans], start + by, start + length + by
        )
        for by in (0, shift)
    ]
    assert facts[0].share == pytest.approx(facts[1].share, abs=1e-6)
    assert facts[0].started == facts[1].started
    assert facts[0].cycles == pytest.approx(facts[1].cycles)
    assert 0 <= facts[0].share <= 1 + 1e-9
    for phase in (facts[0].phase_start, facts[0].phase_end):
        assert phase is None or 0 <= phase < 1


@given(st.integers(1, 8), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(5, 600))
def test_the_client_verdict_does_not_depend_on_the_length_of_the_window(
    threads: int, cpu: float, wait: float, idle: float, window_s: float
) -> None:
    def load(length: float) -> ClientLoad:
        return ClientLoad(
            window_s=length,
            host_cpus=8,
            threads=threads,
            cpu_s=cpu * threads * length,
            run_queue_wait_s=wait * threads * length,
            host_idle_share=idle,
        )

    wanted = (cpu + wait, (cpu + wait) * threads)
    assume(min(abs(limit - 0.8) for limit in wanted) > 1e-6)
    assume(abs(cpu * threads / 8 - 0.2) > 1e-6)
    assert type(client_limit(load(60.0))) is type(client_limit(load(window_s)))
