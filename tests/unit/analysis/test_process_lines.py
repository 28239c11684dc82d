"""CPUs of a server's processes over time: roles that add up, in steps that all of them have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pgdyno.analysis.process_lines import process_lines
from pgdyno.analysis.trials import POINTS_MAX
from pgdyno.model.run import Series, TrialRecord
from pgdyno.store import RunFile
from tests.data.miniature import write_miniature

NS = 1_000_000_000


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> TrialRecord:
    path = write_miniature(tmp_path_factory.mktemp("lines") / "run.sqlite")
    with RunFile.read(path) as run:
        return run.finished()[0]


def counted(trial: TrialRecord, seconds: list[float], **roles: list[float]) -> dict[str, Series]:
    """Counters of roles at these seconds of the window."""
    assert trial.result is not None
    times = trial.result.window_ns[0] + (np.array(seconds) * NS).astype(np.int64)
    return {
        f"process.{role}.cpu_s": Series(
            f"process.{role}.cpu_s", "s", "counter", times, np.array(values)
        )
        for role, values in roles.items()
    }


def test_a_line_is_what_the_counters_grew_by(trial: TrialRecord) -> None:
    series = counted(trial, [0, 1, 2, 4], wal_writer=[9, 9.1, 9.2, 9.4], backend=[0, 2, 3, 7.0])
    (line,) = process_lines([trial.stage], [trial], {trial.number: series})

    assert (line.trial, line.stage, line.step_s) == (trial.number, trial.stage, 1.0)
    assert line.second == (0.5, 1.5, 3.0)
    assert line.roles == {"backend": (2.0, 1.0, 2.0), "wal_writer": (0.1, 0.1, 0.1)}
    assert [*line.roles] == ["backend", "wal_writer"], "who used most first"


def test_who_used_nothing_is_no_line_and_nobody_looked_is_no_point(trial: TrialRecord) -> None:
    series = counted(trial, [0, 1, 15, 16], backend=[0, 1, 15, 16], startup=[0.0, 0, 0, 0])
    (line,) = process_lines([trial.stage], [trial], {trial.number: series})
    assert line.second == (0.5, 15.5)
    assert [*line.roles] == ["backend"]


def test_what_comes_after_the_window_does_not_count(trial: TrialRecord) -> None:
    assert trial.result is not None
    end = trial.result.window_s
    series = counted(trial, [end - 2, end - 1, end + 1], backend=[0, 1, 9])
    (line,) = process_lines([trial.stage], [trial], {trial.number: series})
    assert line.roles == {"backend": (1.0,)}


def test_a_long_window_has_as_many_points_as_fit_and_the_same_mean(trial: TrialRecord) -> None:
    assert trial.result is not None
    begin = trial.result.window_ns[0]
    long = replace(trial, result=replace(trial.result, window_ns=(begin, begin + 3600 * NS)))
    rng = np.random.default_rng(1)
    grown = rng.uniform(0, 2, 3600).cumsum()
    series = counted(long, [*range(3601)], backend=[0.0, *grown])
    (line,) = process_lines([trial.stage], [long], {trial.number: series})
    assert len(line.second) == POINTS_MAX
    assert np.mean(line.roles["backend"]) == pytest.approx(grown[-1] / 3600, rel=1e-3)


def test_a_burst_of_one_second_in_an_hour_is_kept_of_each_role_and_of_all(
    trial: TrialRecord,
) -> None:
    """While backends stood still the checkpointer had the CPUs: together they tell of nothing."""
    assert trial.result is not None
    begin = trial.result.window_ns[0]
    long = replace(trial, result=replace(trial.result, window_ns=(begin, begin + 3600 * NS)))
    backends, checkpointer = np.full(3600, 1.5), np.full(3600, 0.25)
    backends[1234], checkpointer[1234] = 0.0, 1.75
    checkpointer[2000] = 3.0
    series = counted(long, [*range(3601)], backend=[0.0, *backends.cumsum()],
                     checkpointer=[0.0, *checkpointer.cumsum()])  # fmt: skip
    (line,) = process_lines([trial.stage], [long], {trial.number: series})

    assert max(line.roles["checkpointer"]) < 1.0, "a mean of seconds does not tell"
    assert (min(line.least), max(line.greatest)) == (1.75, 4.5)
    alone = line.apart["backend"]
    assert min(alone.values) == 0.0
    assert alone.second[alone.values.index(0.0)] == 1234.5
    others = line.apart["checkpointer"]
    assert others.values[others.second.index(1234.5)] == 1.75
    assert others.values[others.second.index(2000.5)] == 3.0


def test_a_line_whose_points_are_single_steps_has_no_extremes(trial: TrialRecord) -> None:
    series = counted(trial, [0, 1, 2], backend=[0, 2, 3])
    (line,) = process_lines([trial.stage], [trial], {trial.number: series})
    assert (line.least, line.greatest, line.apart) == ((), (), {})


def test_nothing_sampled_is_no_line(trial: TrialRecord) -> None:
    assert process_lines([trial.stage], [trial], {}) == ()
    one = counted(trial, [0.0], backend=[1.0])
    assert process_lines([trial.stage], [trial], {trial.number: one}) == ()
