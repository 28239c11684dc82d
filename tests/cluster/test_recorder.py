"""The recorder's thread: each sampler at its interval, snapshots when told of the window's ends."""

from __future__ import annotations

import pytest

from pgdyno.sample.recorder import Recorder
from pgdyno.sample.sampler import Column, Label, Sampler, Snapshot, Tally
from tests.waiting import until

pytestmark = pytest.mark.cluster


def counting() -> Sampler:
    values = iter(range(1_000_000))
    return Sampler("n", (Column("n", "1"),), lambda: {"n": float(next(values))}, interval_s=0.001)


def test_each_is_read_at_its_interval_and_its_cost_is_told() -> None:
    tally = Tally("seen", ("a",), lambda: [("x",), ("x",), ("y",)], interval_s=0.001)
    recorder = Recorder([counting(), tally], "full")
    with recorder:
        until(lambda: all(one.takes > 5 for one in recorder.telemetry().samplers), "five takes")

    told = recorder.telemetry()
    assert told.set == "full"
    assert told.seconds > 0
    assert [(one.name, one.kind, one.failure) for one in told.samplers] == [
        ("n", "series", None), ("seen", "tally", None)
    ]  # fmt: skip
    assert 0 < sum(one.cpu_s for one in told.samplers) <= told.cpu_s
    (series,) = recorder.series()
    assert series.values.tolist() == [float(n) for n in range(told.samplers[0].takes)]
    (seen,) = recorder.tallies()
    assert seen.ticks.sum() == told.samplers[1].takes
    assert seen.keys == (("x",), ("y",))
    counts = [int(seen.counts[seen.key == number].sum()) for number in (0, 1)]
    assert counts == [2 * seen.ticks.sum(), seen.ticks.sum()]


def test_snapshots_are_read_at_the_windows_ends_and_not_between() -> None:
    sizes = iter([10, 30])
    columns = (Label("table"), Column("bytes", "B", "gauge"))
    tables = Snapshot("tables", columns, lambda: [{"table": "t", "bytes": next(sizes)}])
    recorder = Recorder([counting(), tables])
    with recorder:
        recorder.window_begins()
        until(recorder.snapshots, "the first snapshot")
        taken = recorder.telemetry().samplers[0].takes
        until(lambda: recorder.telemetry().samplers[0].takes > taken + 3, "samples between")
        assert len(recorder.snapshots()) == 1
        recorder.window_ends()

    first, last = recorder.snapshots()
    assert (first.at, first.rows) == ("begin", ({"table": "t", "bytes": 10},))
    assert (last.at, last.rows) == ("end", ({"table": "t", "bytes": 30},))
    assert first.unix_ns < last.unix_ns
    assert [(c.name, c.kind) for c in last.columns] == [("table", "label"), ("bytes", "gauge")]
