"""The recorder: growth over a window, and samplers that break."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from pgdyno.model.host_time import HOST_IDLE_COLUMNS
from pgdyno.model.run import Series
from pgdyno.model.steady_clock import steady_unix_ns, was_set_s
from pgdyno.sample.kept import KeptTally
from pgdyno.sample.recorder import Recorder
from pgdyno.sample.sampler import Column, Label, Missing, Sampler, Snapshot, Subject, Tally
from pgdyno.sample.samplers import samplers_for, samplers_of

SECOND = 1_000_000_000


def counter(times_s: list[float], values: list[float]) -> Series:
    at = np.array([round(t * SECOND) for t in times_s], dtype=np.int64)
    return Series("n", "1", "counter", at, np.array(values))


def failures(recorder: Recorder) -> dict[str, str]:
    return {one.name: one.failure for one in recorder.telemetry().samplers if one.failure}


def test_a_clock_that_is_set_moves_no_sample() -> None:
    day, evenly = iter([1_000 * SECOND, 5 * SECOND]), iter([7, 8 * SECOND, 9 * SECOND])
    now = steady_unix_ns(lambda: next(day), lambda: next(evenly))
    series = Recorder([Sampler("s", (Column("a", "1"),), lambda: {"a": 1.0})], unix_ns=now)
    series.take()
    series.take()

    (found,) = series.series()
    assert found.unix_ns.tolist() == [1_008 * SECOND - 7, 1_009 * SECOND - 7]
    assert next(day) == 5 * SECOND, "it was not asked what day it is once more"


def test_by_how_much_a_clock_was_set_is_known() -> None:
    day, evenly = iter([1_000 * SECOND, 5 * SECOND]), iter([7, 8 * SECOND + 7])
    now = steady_unix_ns(lambda: next(day), lambda: next(evenly))
    assert was_set_s(now, lambda: next(day)) == pytest.approx(5 - 1_008)


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

    assert failures(recorder) == {"bad": "no such file"}
    (series,) = recorder.series()
    assert series.name == "g"
    assert series.values.tolist() == [1.0, 2.0, 4.0]
    assert np.all(np.diff(series.unix_ns) > 0)


def nothing(name: str) -> Sampler:
    return Sampler(name, (Column(name, "1"),), lambda: {name: 0.0})


@pytest.mark.parametrize(
    ("row", "fact"),
    [
        ({"table": "t"}, "a row has no column bytes"),
        ({"table": "t", "bytes": Decimal(3)}, "column bytes holds a Decimal"),
        ({"table": "t", "bytes": float("nan")}, "column bytes holds no number"),
    ],
)
def test_a_snapshot_that_cannot_be_kept_is_a_failure(row: dict[str, Any], fact: str) -> None:
    columns = (Label("table"), Column("bytes", "B", "gauge"))
    recorder = Recorder([Snapshot("tables", columns, lambda: [row])])
    with recorder:
        recorder.window_begins()

    assert failures(recorder)["tables"].startswith(fact)
    assert recorder.snapshots() == []


def test_a_tally_is_counted_by_whole_seconds_with_its_ticks() -> None:
    kept = KeptTally(Tally("seen", ("a", "b"), list))
    kept.add(5 * SECOND, [("x", "1"), ("x", "1"), ("y", "1")])
    kept.add(5 * SECOND + 999_999_999, [("y", "1")])
    kept.add(6 * SECOND, [])
    kept.add(8 * SECOND, [("x", "1")])

    (series,) = kept.series()
    assert series.keys == (("x", "1"), ("y", "1"))
    rows = zip(series.seconds, series.key, series.counts, strict=True)
    assert sorted((int(s), int(k), int(n)) for s, k, n in rows) == [(5, 0, 2), (5, 1, 2), (8, 0, 1)]
    assert series.tick_seconds.tolist() == [5, 6, 8]
    assert series.ticks.tolist() == [2, 1, 1]
    with pytest.raises(ValueError, match="a key of seen has not 2 dimensions"):
        kept.add(9 * SECOND, [("x",)])


def test_a_column_that_a_take_leaves_out_has_no_sample_there() -> None:
    rows = iter([{"a": 1.0, "b": 5.0}, {"a": 2.0}, {"a": 3.0, "b": 7.0}])
    clock = iter([1, 2, 3])
    columns = (Column("a", "1"), Column("b", "1", "gauge"), Column("c", "1"))
    recorder = Recorder([Sampler("s", columns, lambda: next(rows))], unix_ns=lambda: next(clock))
    for _ in range(3):
        recorder.take()

    assert {s.name: (s.unix_ns.tolist(), s.values.tolist()) for s in recorder.series()} == {
        "a": ([1, 2, 3], [1.0, 2.0, 3.0]),
        "b": ([1, 3], [5.0, 7.0]),
    }


def test_samplers_of_one_name_are_a_defect() -> None:
    with pytest.raises(AssertionError, match="share a name: n"):
        Recorder([nothing("n"), nothing("n")])


def test_what_is_missing_is_told() -> None:
    missing = Missing("statements", "the extension is not there", "CREATE EXTENSION x;")
    with Recorder([missing]) as recorder:
        pass

    assert recorder.telemetry().missing == (missing,)


def test_no_telemetry_is_none_and_the_host_is_always_there() -> None:
    assert samplers_of(Subject(telemetry="none")) == []
    default, full = (samplers_of(Subject(telemetry=one)) for one in ("default", "full"))
    assert {one.name for one in default} <= {one.name for one in full}
    assert [one.name for one in samplers_for(HOST_IDLE_COLUMNS)] == ["host cpu"]
    Recorder(full)  # no two have a column in common
