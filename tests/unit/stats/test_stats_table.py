"""The stage x round table, and the trials it calls disturbed."""

from __future__ import annotations

import numpy as np
import pytest

from pgdyno.model.errors import PgdynoError
from pgdyno.stats.compare import compare_plan
from pgdyno.stats.table import Table, outliers, table_of


def noisy(stages: int, rounds: int) -> Table:
    tpm = 1000 * np.exp(0.01 * np.random.default_rng(4).standard_normal((stages, rounds)))
    names = tuple(f"s{number}" for number in range(stages))
    return Table(names, tuple(range(1, rounds + 1)), tpm)


def test_trials_are_arranged_by_stage_and_round() -> None:
    table = table_of({("b", 2): 4.0, ("a", 1): 1.0, ("b", 1): 3.0}, ["a", "b"])
    assert table.rounds == (1, 2)
    assert table.row("b").tolist() == [3.0, 4.0]
    assert np.isnan(table.row("a")[1])


@pytest.mark.parametrize("tpm", [-1.0, float("inf")])
def test_impossible_throughput_is_refused(tpm: float) -> None:
    with pytest.raises(PgdynoError, match="stage a, round 1"):
        table_of({("a", 1): tpm}, ["a"])


def test_unknown_and_doubled_stages_are_refused() -> None:
    with pytest.raises(PgdynoError, match="trial of stage x, known are a"):
        table_of({("x", 1): 1.0}, ["a"])
    with pytest.raises(PgdynoError, match="distinct names"):
        table_of({}, ["a", "a"])
    with pytest.raises(PgdynoError, match="at least one"):
        table_of({}, [])


def test_a_disturbed_trial_is_named_and_kept() -> None:
    table = noisy(3, 5)
    table.tpm[1, 3] *= 0.7
    found = outliers(table)
    assert found[0].stages == ("s1",)
    assert found[0].round == 4
    assert found[0].mads > found[0].limit_mads
    assert found[0].change == pytest.approx(-0.3, abs=0.03)
    compared = compare_plan(table)
    assert any("round 4 of stage s1 lies" in warning for warning in compared.warnings)
    assert compared.against_first[0].n == 5


def test_of_two_stages_either_may_be_the_disturbed_one() -> None:
    table = noisy(2, 8)
    table.tpm[1, 2] *= 0.5
    (found,) = outliers(table)
    assert found.stages == ("s0", "s1")
    assert found.change == pytest.approx(-0.5, abs=0.05)
    assert "round 3: s1 against s0 lies" in compare_plan(table).warnings[0]


@pytest.mark.parametrize(("stages", "rounds"), [(1, 9), (2, 3), (3, 2)])
def test_tables_too_small_to_tell_are_not_judged(stages: int, rounds: int) -> None:
    table = noisy(stages, rounds)
    table.tpm[0, 0] *= 0.1
    assert outliers(table) == ()


def test_a_round_with_a_gap_is_left_out_of_the_search() -> None:
    table = noisy(3, 6)
    table.tpm[0, 0] = np.nan
    table.tpm[2, 5] *= 0.5
    (found,) = outliers(table)
    assert (found.stages, found.round) == (("s2",), 6)


def test_a_table_without_any_noise_has_no_outliers() -> None:
    table = Table(("a", "b", "c"), (1, 2, 3), np.full((3, 3), 1000.0))
    assert outliers(table) == ()
