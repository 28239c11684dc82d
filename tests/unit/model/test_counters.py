"""Counters: growth over a window and within it, and where that is not known."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pgdyno
from pgdyno.model.counters import counts_on, growth, known_steps, levels
from pgdyno.model.run import Series

SECOND = 1_000_000_000


def counter(times_s: list[float], values: list[float]) -> Series:
    at = np.array([round(t * SECOND) for t in times_s], dtype=np.int64)
    return Series("n", "1", "counter", at, np.array(values))


def test_growth_is_interpolated_at_both_ends() -> None:
    series = counter([0, 1, 2, 3], [0, 10, 30, 60])

    assert growth(series, (SECOND // 2, 5 * SECOND // 2)) == pytest.approx(45 - 5)


@pytest.mark.parametrize("window", [(-1, SECOND), (SECOND, 4 * SECOND)])
def test_a_window_that_is_not_covered_is_unknown(window: tuple[int, int]) -> None:
    assert growth(counter([0, 1, 2, 3], [0, 10, 30, 60]), window) is None


def test_one_sample_tells_nothing() -> None:
    assert growth(counter([1], [5]), (SECOND, SECOND)) is None


WINDOW = (SECOND, 3 * SECOND)


@pytest.mark.parametrize(
    "values",
    [[0, 70, 5, 9, 12], [0, 70, 5, 90, 95], [0, 70, 80, 90, 1], [80, 1, 2, 3, 4]],
    ids=["to less", "to more than before", "after it", "before it"],
)
def test_a_counter_that_is_reset_in_the_window_has_no_known_growth(values: list[float]) -> None:
    found = growth(counter([0, 1, 2, 3, 4], values), WINDOW)
    assert (found is None) == (values[2] == 5)


def test_where_the_window_ends_between_two_samples_both_are_looked_at() -> None:
    ends_within = (SECOND, 5 * SECOND // 2)
    assert growth(counter([0, 1, 2, 3], [0, 10, 20, 1]), ends_within) is None
    begins_within = (SECOND // 2, 2 * SECOND)
    assert growth(counter([0, 1, 2, 3], [10, 0, 20, 30]), begins_within) is None


def test_what_rounding_or_an_idle_cpu_takes_back_is_no_reset() -> None:
    summed = counter([0, 1, 2, 3], [0.1, 0.3, 0.3 - 1e-16, 0.5])
    assert growth(summed, WINDOW) == pytest.approx(0.2)
    waited = replace(counter([0, 1, 2, 3], [9.00, 9.10, 9.09, 9.20]), name="cpu.iowait_s")
    assert growth(waited, WINDOW) == pytest.approx(0.1)


@pytest.mark.parametrize(
    "name", ["cpu.steal_s", "cpu.user_s", "cpu.3.busy_s", "cpu.thermal_throttles"]
)
def test_what_no_cpu_takes_back_is_not_known_where_it_fell(name: str) -> None:
    """As where a machine moved to another host, whose hypervisor counts anew."""
    stolen = replace(counter([0, 1, 2, 3], [9.0, 9.5, 2.0, 2.5]), name=name)
    assert growth(stolen, WINDOW) is None


GAP = counter([0, 1, 2, 22, 23, 24], [0, 10, 20, 500, 510, 520])
"""The session was lost for twenty seconds."""


@pytest.mark.parametrize(
    ("window_s", "grown"),
    [((0.5, 1.5), 10), ((0.5, 23.5), 510), ((2, 22), 480), ((0.5, 10), None), ((5, 23), None),
     ((5, 10), None)],
    ids=["before it", "over it", "from sample to sample", "ends in it", "begins in it", "within"],
)  # fmt: skip
def test_an_end_that_lies_in_a_gap_leaves_the_growth_unknown(
    window_s: tuple[float, float], grown: float | None
) -> None:
    begin, end = (round(at * SECOND) for at in window_s)
    assert growth(GAP, (begin, end)) == (None if grown is None else pytest.approx(grown))


def test_what_grew_by_seconds_is_not_made_up_within_a_gap() -> None:
    seconds = np.arange(0, 24, dtype=np.int64) * SECOND
    assert levels(GAP, seconds) is None
    known = levels(GAP, seconds[:3])
    assert known is not None
    assert known.tolist() == [0, 10, 20]
    assert levels(GAP, seconds[:0]) is None


def test_a_counter_whose_view_was_reset_is_not_known_though_it_outgrew_what_it_was() -> None:
    fpi = replace(counter([0, 1, 2, 3, 4], [1, 2, 3, 99, 100]), name="wal.fpi")
    assert growth(fpi, WINDOW, {"pg_stat_io"}) == pytest.approx(97)
    assert growth(fpi, WINDOW, {"pg_stat_wal"}) is None
    place = replace(fpi, name="wal.bytes")
    assert growth(place, WINDOW, {"pg_stat_wal"}) == pytest.approx(97), "nothing resets it"


def test_of_steps_those_are_left_out_in_which_a_counter_fell_or_was_reset() -> None:
    series = counter([0, 1, 2, 3, 4], [5, 7, 2, 9, 11])
    assert counts_on(series).tolist() == [True, False, True, True]
    at = [SECOND // 2, 3 * SECOND, 9 * SECOND]
    assert counts_on(series, at).tolist() == [False, False, False, True]


def test_steps_over_a_gap_tell_nothing_of_their_seconds() -> None:
    assert known_steps(GAP).tolist() == [True, True, False, True, True]
    assert known_steps(GAP, [SECOND // 2]).tolist() == [False, True, False, True, True]
    assert counts_on(GAP).all(), "it grew on nonetheless"


# What is read between samples, or taken as the growth from one to another, anywhere else.
ELSEWHERE = {
    "analysis/cycles.py": "transactions that ended, counted by the driver in every second; a gauge",
    "analysis/latency_shares.py": "shares of a histogram",
    "analysis/process_lines.py": "steps, of which `known_steps` says which are known",
    "analysis/signals.py": "steps, of which `known_steps` says which are known",
    "analysis/steadiness.py": "transactions that ended, counted by the driver in every second",
    "analysis/trials.py": "how many seconds lie in each point of a line",
    "analysis/windows.py": "of `levels`",
    "stats/anchor.py": "transactions that ended, by second",
    "stats/group_commit.py": "a table of measured times, by size; shares of them",
    "stats/looks.py": "estimates of looks",
    "trial/profiling.py": "transactions that ended, counted by the driver in every second",
}
_INTERPOLATE = {"interp", "diff", "ediff1d", "gradient"}


def differences(tree: ast.AST) -> Iterator[str]:
    """Calls that interpolate or difference, and the last of something minus its first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _INTERPOLATE and ast.unparse(node.func.value) == "np":
                yield ast.unparse(node.func)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            last, first = ast.unparse(node.left), ast.unparse(node.right)
            if last.endswith(".values[-1]") or first.endswith(".values[0]"):
                yield ast.unparse(node)


def test_nobody_else_reads_between_samples() -> None:
    """What lies in a gap, or across a reset, is not known: `counters` alone knows where."""
    above = Path(pgdyno.__file__).parent
    found = {
        str(path.relative_to(above)): sorted(set(differences(ast.parse(path.read_text()))))
        for path in above.rglob("*.py")
    }
    others = {name for name, each in found.items() if each} - {"model/counters.py"}
    assert others == ELSEWHERE.keys(), {name: found[name] for name in others ^ ELSEWHERE.keys()}
