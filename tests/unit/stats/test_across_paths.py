"""Which path is better: intervals and verdicts from rounds, as for stages."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.data.probed import at_rates, floor, in_rounds, probed

from pgdyno.model.floor import PathRound
from pgdyno.stats.across_paths import FIGURES, compare_paths
from pgdyno.stats.flush_figure import fastest_kind
from pgdyno.stats.verdict import Verdict

DRIFT = (5000.0, 2500.0, 4000.0, 1200.0, 4800.0)  # of the host, which meets all paths
NOISE = (1.01, 0.99, 1.0, 1.02, 0.985)


def test_a_faster_path_is_better_however_the_host_drifts() -> None:
    found = in_rounds(
        *(
            (at_rates("/a", rate, rate), at_rates("/b", 2 * rate * noise, 2 * rate * noise))
            for rate, noise in zip(DRIFT, NOISE, strict=True)
        )
    )
    compared = {each.figure: each.paths for each in compare_paths(found)}

    assert list(compared) == list(FIGURES)
    for (one,) in compared.values():
        assert (one.stage, one.base, one.n) == ("/b", "/a", 5)
        assert one.verdict is Verdict.BETTER
        assert one.low < 2 < one.high
        assert one.high / one.low < 1.1, "the drift cancels within rounds"


def test_each_rate_is_compared_by_one_kind_of_probe() -> None:
    """One path under a checkpoint was compared with pg_test_fsync of the other: ×0.577."""

    def here(noise: float) -> PathRound:
        one = at_rates("/a", 443 * noise, 262 * noise)
        return replace(one, mixed=replace(one.mixed, under=replace(one.mixed.under, per_s=1056.0)))

    found = in_rounds(*((here(noise), at_rates("/b", 609, 257)) for noise in NOISE))
    kinds = [fastest_kind(found.rounds_of(path))[0] for path in ("/a", "/b")]
    assert kinds == ["under a checkpoint", "pg_test_fsync"]

    ratios = {each.figure: each.paths[0].ratio for each in compare_paths(found)}
    assert ratios["commits by pg_test_fsync"] == pytest.approx(609 / 443, rel=0.01)
    assert ratios["commits by fio"] == pytest.approx(257 / 262, rel=0.01)
    assert ratios["commits by fio under a checkpoint"] == pytest.approx(128.5 / 1056, rel=0.01)


def test_the_order_within_a_round_does_not_matter() -> None:
    straight = in_rounds(
        *((at_rates("/a", 10 + n, 10 + n), at_rates("/b", 20, 20)) for n in range(3))
    )
    turned = in_rounds(
        *(one.paths[::-1] if n else one.paths for n, one in enumerate(straight.rounds))
    )

    assert compare_paths(turned) == compare_paths(straight)


def test_equal_paths_are_not_told_apart() -> None:
    found = in_rounds(
        *(
            (at_rates("/a", rate, rate), at_rates("/b", rate * noise, rate * noise))
            for rate, noise in zip(DRIFT, NOISE, strict=True)
        )
    )

    verdicts = {one.verdict for each in compare_paths(found) for one in each.paths}
    assert verdicts <= {Verdict.EQUIVALENT, Verdict.UNDECIDED}


def test_two_rounds_have_an_interval_that_is_very_wide() -> None:
    found = in_rounds(
        (at_rates("/a", 5000, 5000), at_rates("/b", 5100, 5100)),
        (at_rates("/a", 5000, 5000), at_rates("/b", 5300, 5300)),
    )
    (one,) = compare_paths(found)[0].paths

    assert one.verdict is Verdict.UNDECIDED
    assert one.high / one.low > 1.2


def test_paths_that_were_probed_once_are_not_compared() -> None:
    assert compare_paths(probed(floor("/a"), floor("/bb"))) == ()
    assert compare_paths(in_rounds((at_rates("/a", 1, 1),), (at_rates("/a", 1, 1),))) == ()
