"""Response times over time: what the driver counted, of the middle trial of each stage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from pgdyno.analysis.extremes import PARTS_MAX
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.response_map import response_maps
from pgdyno.model.response_times import SECOND_NS, counted, times_series
from pgdyno.model.run import Series, TrialRecord, TrialState
from tests.data.miniature import a_result

RESULT = a_result()
BEGIN_NS = RESULT.window_ns[0]
EDGES_NS = (0, 4096, 6144, 8192)


def kept(*columns: list[int], from_s: int = -2, step_s: int = 1) -> dict[str, Series]:
    counts = [np.array(column, dtype=np.int64) for column in columns]
    series = times_series(BEGIN_NS + from_s * SECOND_NS, step_s, EDGES_NS, counts)
    return {one.name: one for one in series}


def trial(number: int, stage: str, throughput: float, window_s: int = 30) -> TrialRecord:
    window_ns = (BEGIN_NS, BEGIN_NS + window_s * SECOND_NS)
    result = replace(RESULT, window_ns=window_ns, window_s=float(window_s), nopm=throughput)
    return TrialRecord(number, number, stage, "", TrialState.FINISHED, result=result)


def test_series_hold_what_was_counted_however_many_seconds_a_row_has() -> None:
    columns = [[0, 1, 2, 3], [0, 0, 0, 0], [7, 0, 0, 5]]
    for step_s in (1, 2, 64):
        read = counted(kept(*columns, step_s=step_s))
        assert read is not None
        unix_ns, seconds, edges_ns, counts = read
        assert (seconds, edges_ns.tolist()) == (step_s, [0, 4096, 6144, 8192])
        assert counts.tolist() == columns
        assert np.diff(unix_ns).tolist() == [step_s * SECOND_NS] * 3


def test_a_column_without_requests_has_no_series_and_is_none_of_its_neighbours() -> None:
    series = times_series(0, 1, (0, 4096, 6144, 8192, 12288), [
        np.array(column, dtype=np.int64) for column in ([3], [0], [0], [4])
    ])  # fmt: skip
    assert [one.name for one in series] == ["driver.response.0_4096_ns",
                                            "driver.response.8192_12288_ns"]  # fmt: skip
    read = counted({one.name: one for one in series})
    assert read is not None
    assert (read[2].tolist(), read[3].tolist()) == ([0, 4096, 8192, 12288], [[3], [0], [4]])


def test_a_run_without_them_has_no_map() -> None:
    other = {"driver.committed.x": Series("driver.committed.x", "1/s", "rate",
                                          np.array([BEGIN_NS]), np.array([1.0]))}  # fmt: skip
    assert counted(other) is None
    assert response_maps(["a"], [trial(1, "a", 5.0)], {1: other}) == ()
    assert response_maps(["a"], [trial(1, "a", 5.0)], {}) == ()


def test_the_middle_trial_is_shown_from_its_warm_up_to_the_end_of_its_window() -> None:
    trials = [trial(1, "a", 5.0), trial(2, "a", 9.0), trial(3, "a", 7.0)]
    series = {3: kept([1] * 32 + [90], [0] * 33, [0] * 10 + [4] + [0] * 22)}
    (found,) = response_maps(["a", "b"], trials, series)
    assert (found.trial, found.stage) == (3, "a")
    assert (found.edges_s[0], found.edges_s[-1], len(found.edges_s)) == (-2.0, 30.0, 33)
    assert found.edges_ns == EDGES_NS
    assert [sum(row) for row in found.counts] == [32, 0, 4], "the drain is left out"
    assert found.counts[2][10] == 4


@pytest.mark.parametrize("seconds", [3_600, 3_601, 3_599])
def test_an_hour_is_joined_and_a_stall_of_a_second_is_still_there(seconds: int) -> None:
    quick: npt.NDArray[np.int64] = np.full(seconds, 500, dtype=np.int64)
    quick[1_800] = 0
    slow = np.zeros(seconds, dtype=np.int64)
    slow[1_801] = 12
    series = {1: kept(quick.tolist(), [0] * seconds, slow.tolist(), from_s=0)}
    (found,) = response_maps(["a"], [trial(1, "a", 5.0, window_s=seconds)], series)
    assert len(found.counts[0]) <= PARTS_MAX
    assert [sum(row) for row in found.counts] == [500 * (seconds - 1), 0, 12], "none is lost"
    (at,) = np.flatnonzero(found.counts[2])
    assert found.edges_s[at] <= 1_801 < found.edges_s[at + 1]
    assert found.edges_s[-1] == seconds, "also where the last column holds fewer seconds"


def test_the_maps_of_a_run_hold_what_its_middle_trials_committed(facts: Facts) -> None:
    assert [one.stage for one in facts.response_maps] == [one.name for one in facts.stages]
    trials = {one.number: one for one in facts.trials}
    for found in facts.response_maps:
        line = trials[found.trial].timeline
        assert line is not None
        ended = [sum(column) for column in zip(*found.counts, strict=True)]
        assert ended == pytest.approx([tpm / 60 for tpm in line.tpm], abs=0.01)
