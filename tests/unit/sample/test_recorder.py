"""The recorder: growth over a window, and samplers that break."""

from __future__ import annotations

import numpy as np
import pytest

from pgdyno.model.run import Series
from pgdyno.sample.recorder import Recorder, delta
from pgdyno.sample.sampler import Column, Sampler
from pgdyno.sample.samplers.server_statistics import query

SECOND = 1_000_000_000


def counter(times_s: list[float], values: list[float]) -> Series:
    at = np.array([round(t * SECOND) for t in times_s], dtype=np.int64)
    return Series("n", "1", "counter", at, np.array(values))


def test_growth_is_interpolated_at_both_ends() -> None:
    series = counter([0, 1, 2, 3], [0, 10, 30, 60])

    assert delta(series, (SECOND // 2, 5 * SECOND // 2)) == pytest.approx(45 - 5)


@pytest.mark.parametrize("window", [(-1, SECOND), (SECOND, 4 * SECOND)])
def test_a_window_that_is_not_covered_is_unknown(window: tuple[int, int]) -> None:
    assert delta(counter([0, 1, 2, 3], [0, 10, 30, 60]), window) is None


def test_one_sample_tells_nothing() -> None:
    assert delta(counter([1], [5]), (SECOND, SECOND)) is None


def test_a_broken_sampler_is_named_and_the_others_go_on() -> None:
    clock = iter(range(0, 100 * SECOND, SECOND))
    values = iter([1.0, 2.0, 4.0])

    def broken() -> dict[str, float]:
        raise OSError("no such file")

    recorder = Recorder(
        [
            Sampler("bad", (Column("b", "1"),), broken),
            Sampler("good", (Column("g", "B"),), lambda: {"g": next(values)}),
        ],
        unix_ns=lambda: next(clock),
    )
    for _ in range(3):
        recorder.take()

    assert recorder.failures == {"bad": "no such file"}
    (series,) = recorder.series()
    assert series.name == "g"
    assert series.values.tolist() == [1.0, 2.0, 4.0]
    assert np.all(np.diff(series.unix_ns) > 0)


@pytest.mark.parametrize("major", range(12, 19))
def test_every_version_has_wal_and_checkpoints_once(major: int) -> None:
    _, columns = query(major)
    names = [column.name for column in columns]

    assert len(names) == len(set(names))
    assert {"wal.bytes", "checkpoints.timed", "database.commits"} <= set(names)
    assert ("wal.fpi" in names) == (major >= 14)
