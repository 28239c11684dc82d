"""The search for the knee, on systems whose knee is known."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import replace
from math import exp, factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.model.errors import PgdynoError
from pgdyno.model.knee import Knee, Point, Search
from pgdyno.stats.knee import keeps, knee, next_level

LIMIT_NS = 10_000_000
SECOND_NS = 1e9


def point(level: float, p99_ns: float, achieved: float | None = None) -> Point:
    return Point(level, level, level if achieved is None else achieved, 1, int(p99_ns), 1000)


def carry_out(search: Search, measure: Callable[[float], Point]) -> tuple[Knee, list[Point]]:
    points: list[Point] = []
    while (level := next_level(search, points)) is not None:
        points.append(measure(level))
    return knee(search, points), points


def sharp(threshold: float) -> Callable[[float], Point]:
    """A system that keeps the limit up to a threshold and breaks it above, without noise."""
    return lambda level: point(level, LIMIT_NS if level <= threshold else LIMIT_NS + 1)


def queueing(
    service_per_s: float, servers: int, window_s: float, seed: int
) -> Callable[[float], Point]:
    """A queue M/M/c, first come first served, measured for a window."""
    rng = np.random.default_rng(seed)

    def measure(rate: float) -> Point:
        count = max(1, rng.poisson(rate * window_s))
        arrivals = np.sort(rng.uniform(0, window_s, count))
        services = rng.exponential(1 / service_per_s, count)
        free = [0.0] * servers
        responses = np.empty(count)
        ended = 0
        for n, (arrival, service) in enumerate(zip(arrivals, services, strict=True)):
            end = max(arrival, heapq.heappop(free)) + service
            heapq.heappush(free, end)
            responses[n] = end - arrival
            ended += end <= window_s
        p50, p99 = np.quantile(responses, (0.5, 0.99)) * SECOND_NS
        return Point(rate, count / window_s, ended / window_s, int(p50), int(p99), count)

    return measure


@given(
    st.floats(10, 1e6), st.floats(0.001, 1000), st.floats(0.01, 0.5), st.integers(1, 5)
)  # fmt: skip
def test_a_sharp_knee_is_bracketed(
    threshold: float, offset: float, width: float, repeats: int
) -> None:
    search = Search(
        LIMIT_NS, start=threshold * offset, low=threshold * offset / 1e6,
        high=threshold * offset * 1e6, width=width, repeats=repeats, points_max=200,
    )  # fmt: skip

    found, points = carry_out(search, sharp(threshold))

    assert found.state == "found"
    assert found.low is not None
    assert found.high is not None
    assert found.low <= threshold < found.high <= found.low * (1 + width) * (1 + 1e-9)
    assert found.contradictions == 0
    assert len(points) <= 20 + 11 + 2 * repeats


@given(st.integers(1, 10_000))
def test_whole_numbers_are_bracketed_to_the_next(threshold: int) -> None:
    search = Search(LIMIT_NS, start=1, low=1, high=1 << 20, width=1e-9, whole=True,
                    points_max=200)  # fmt: skip

    found, points = carry_out(search, sharp(threshold))

    assert (found.state, found.low, found.high) == ("found", threshold, threshold + 1)
    assert all(point.level == int(point.level) for point in points)


def test_the_limits_of_the_search_are_told() -> None:
    search = Search(LIMIT_NS, start=10, low=5, high=40)

    above, _ = carry_out(search, sharp(1000))
    below, _ = carry_out(search, sharp(1))

    assert (above.state, above.low, above.high) == ("above", 40, None)
    assert (below.state, below.low, below.high) == ("below", None, 5)


def test_too_few_points_are_unsettled() -> None:
    found, points = carry_out(Search(LIMIT_NS, 1, 1, 1e6, points_max=6), sharp(20_000))

    assert len(points) == 6
    assert found.state == "unsettled"


def test_one_bad_window_does_not_move_the_knee() -> None:
    search = Search(LIMIT_NS, start=100, low=1, high=1e6, points_max=60)
    measured = 0

    def measure(level: float) -> Point:
        nonlocal measured
        measured += 1
        clean = sharp(1000)(level)
        return point(level, 10 * LIMIT_NS) if measured == 3 else clean

    found, _ = carry_out(search, measure)

    assert found.state == "found"
    assert found.low is not None
    assert 900 <= found.low <= 1000
    assert found.contradictions == 1


def test_what_keeps_the_limit() -> None:
    assert keeps(point(100, LIMIT_NS), LIMIT_NS)
    assert not keeps(point(100, LIMIT_NS + 1), LIMIT_NS)
    assert not keeps(point(100, LIMIT_NS, achieved=90), LIMIT_NS)
    assert not keeps(Point(100, 100, 100, 1, 1, 1000, failed=1), LIMIT_NS)
    assert not keeps(Point(100, 0, 0, 0, 0, 0), LIMIT_NS)


def tail(rate: float, service_per_s: float, servers: int, at_s: float) -> float:
    """Share of responses of M/M/c that are longer: Erlang's C, then waiting plus service."""
    offered = rate / service_per_s
    spare_per_s = servers * service_per_s - rate
    full = offered**servers / factorial(servers) * servers / (servers - offered)
    waits = full / (sum(offered**n / factorial(n) for n in range(servers)) + full)
    serve, drain = exp(-service_per_s * at_s), exp(-spare_per_s * at_s)
    both = (spare_per_s * serve - service_per_s * drain) / (spare_per_s - service_per_s)
    return (1 - waits) * serve + waits * both


@pytest.mark.parametrize(
    ("servers", "service_per_s"), [(1, 1000.0), (4, 250.0)], ids=["M/M/1", "M/M/4"]
)
def test_the_knee_of_a_queue_is_found(servers: int, service_per_s: float) -> None:
    limit_s = 0.05
    search = Search(int(limit_s * SECOND_NS), start=100, low=1, high=1e5, width=0.03,
                    points_max=40)  # fmt: skip
    rates = np.arange(500.25, 1000, 0.5)  # not 750, where the two exponents meet
    truth = max(r for r in rates if tail(float(r), service_per_s, servers, limit_s) <= 0.01)

    brackets = []
    for seed in range(5):
        found, _ = carry_out(search, queueing(service_per_s, servers, 10, seed))
        assert found.low is not None
        assert found.high is not None
        brackets.append((found.low, found.high))

    middle = float(np.median([(low * high) ** 0.5 for low, high in brackets]))
    assert abs(middle / truth - 1) < 0.05, f"{middle} for {truth}"


def test_impossible_searches_are_refused() -> None:
    with pytest.raises(PgdynoError, match="starts at 10, allowed are 20 to 30"):
        Search(LIMIT_NS, start=10, low=20, high=30)
    with pytest.raises(PgdynoError, match="all must be above 0"):
        Search(LIMIT_NS, start=1, low=1, high=2, width=0)
    with pytest.raises(PgdynoError, match="no point was measured"):
        knee(Search(LIMIT_NS, 1, 1, 2), [])


def test_a_percentile_that_is_a_lower_bound_keeps_no_limit() -> None:
    kept = point(100, LIMIT_NS / 2)
    tail = replace(kept, unanswered=3, exact_below_ns=LIMIT_NS)
    bound = replace(kept, unanswered=300, exact_below_ns=LIMIT_NS // 4)

    assert keeps(kept, LIMIT_NS)
    assert keeps(tail, LIMIT_NS), "its p99 lies below all lower bounds"
    assert not keeps(bound, LIMIT_NS)
