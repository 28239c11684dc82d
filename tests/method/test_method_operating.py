"""The operating characteristics of `stop = "decided"`: what the page states, held by other draws.

Every figure of the three tables of docs/concepts/statistics.md is simulated with another seed. Two
simulations of the same truth differ by what chance allows, and by no more.
"""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from tests.method import operating
from tests.method import simulation as sim

pytestmark = pytest.mark.method

PAGE = (Path(__file__).parents[2] / "docs" / "concepts" / "statistics.md").read_text()
PAGE_PLANS = 2_000
"""What the page was printed with, as it says itself."""
PLANS = 2_000
SEED = 911
SIGMAS = 4.0
"""One figure in 16,000 lies beyond by chance; the tables have about a hundred."""


def rows(head: str) -> list[list[str]]:
    """The cells of the page's table that begins so."""
    lines = PAGE.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith(head))
    found = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def assert_share(stated_percent: float, share: float, plans: int = PLANS) -> None:
    """A share of plans is the stated one, but for chance in both and for the page's rounding."""
    both = (stated_percent / 100 * PAGE_PLANS + share * plans + 1) / (PAGE_PLANS + plans + 2)
    chance = sqrt(both * (1 - both) * (1 / PAGE_PLANS + 1 / plans))
    assert abs(share - stated_percent / 100) <= SIGMAS * chance + 0.005, (stated_percent, share)


def assert_mean(stated: float, mean: float, sd: float, rounding: float, plans: int = PLANS) -> None:
    chance = sd * sqrt(1 / PAGE_PLANS + 1 / plans)
    assert abs(mean - stated) <= SIGMAS * chance + rounding, (stated, mean)


TWO_STAGES = [
    (int(rounds_max), round(float(spread.strip("%")) / 100, 4), effect, cell)
    for rounds_max, spread, *cells in rows("| rounds at most | sd of a pair |")
    for effect, cell in zip(operating.EFFECTS, cells, strict=True)
]


def test_the_page_has_every_cell_and_says_with_how_many_plans() -> None:
    assert [cell[:3] for cell in TWO_STAGES] == [
        (rounds_max, spread, effect)
        for rounds_max in operating.ROUNDS
        for spread in operating.SPREADS
        for effect in operating.EFFECTS
    ]
    assert f"of {PAGE_PLANS:,} simulated plans".replace(",", " ") in " ".join(PAGE.split())
    assert f"operating.py {PAGE_PLANS}`" in PAGE


@pytest.mark.long
@pytest.mark.parametrize(("rounds_max", "spread", "effect", "cell"), TWO_STAGES)
def test_plans_of_two_stages_end_as_the_page_says(
    rounds_max: int, spread: float, effect: float, cell: str
) -> None:
    shares, rounds = cell.split(";")
    apart, equivalent = map(float, shares.split(","))

    found = operating.two_stages(rounds_max, spread, effect, PLANS, SEED)

    assert_share(apart, found.apart)
    assert_share(equivalent, found.equivalent)
    assert_mean(float(rounds), found.rounds, found.rounds_sd, 0.05)
    if not effect:
        sim.assert_rate_at_most(round(found.apart * PLANS), PLANS, 0.05)


@pytest.mark.long
@pytest.mark.parametrize(("name", "false", "alike"), rows("| noise of a pair | false"))
def test_other_noise_errs_as_often_as_the_page_says(name: str, false: str, alike: str) -> None:
    apart = operating.other_noise(name, 0.0, PLANS, SEED).apart
    equivalent = operating.other_noise(name, operating.MARGIN, PLANS, SEED).equivalent

    assert_share(float(false), apart)
    assert_share(float(alike), equivalent)
    if name != "rounds resemble the one before (0.3)":  # of which a warning is printed
        sim.assert_rate_at_most(round(apart * PLANS), PLANS, 0.05)
        sim.assert_rate_at_most(round(equivalent * PLANS), PLANS, 0.025)


FAMILIES = rows("| true effects of five stages |")


def test_the_page_has_every_family() -> None:
    assert [row[:2] for row in FAMILIES] == [
        [", ".join(f"{one:.0%}" for one in effects), f"{spread:.1%}"]
        for effects, spread in operating.FAMILIES
    ]


@pytest.mark.long
@pytest.mark.parametrize(("at", "row"), list(enumerate(FAMILIES)), ids=[row[0] for row in FAMILIES])
def test_plans_of_six_stages_end_as_the_page_says(at: int, row: list[str]) -> None:
    effects, spread = operating.FAMILIES[at]
    _, _, false, better, trials = row

    found = operating.family(effects, spread, PLANS, SEED)

    assert_share(float(false), found.false)
    sim.assert_rate_at_most(round(found.false * PLANS), PLANS, 0.05)
    for stated, share in zip(better.split(","), found.better, strict=True):
        assert_share(float(stated), share)
    assert_mean(float(trials), found.trials, found.trials_sd, 0.5)


@pytest.mark.long
@pytest.mark.parametrize(("effect", "low", "high"), [(0.03, 1.030, 1.034), (0.01, 1.016, 1.023)])
def test_what_is_found_early_is_stated_a_little_too_large(
    effect: float, low: float, high: float
) -> None:
    found = operating.two_stages(20, operating.SPREADS[0], effect, PLANS, SEED).found

    assert low <= float(np.median(found)) <= high
