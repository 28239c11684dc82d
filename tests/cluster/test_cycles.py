"""Windows of whole checkpoint cycles, and anchors, on real servers whose cycles are short."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.model.run import TrialRecord, TrialResult, TrialState
from pgdyno.store.run_file import RunFile
from tests.cluster.conftest import DEBIAN_BINDIR
from tests.cluster.test_run import pgdyno

pytestmark = pytest.mark.cluster

PLAN = """
name = "cycles"
question = "Do windows begin and end with checkpoints?"

[target]
kind = "embedded"

[workload]
kind = "tpcc"
warehouses = 2
connections = 4

[protocol]
rounds = 1
warmup_s = 1.0
window_s = 1.0
{protocol}

[[stage]]
name = "one"
why = "Its checkpoints are what is looked at."
settings = {{ {settings} }}
"""
SMALL_WAL = 'max_wal_size = "32MB", min_wal_size = "32MB", checkpoint_timeout = "30s"'
NOTICED_S = 1.0  # from a checkpoint's start until the driver is told; 15 tells twice a second
ATTEMPTS = 4  # of which the best is asked: what tells may have to wait for a processor


def measured(
    folder: Path, protocol: str, *args: str, settings: str = SMALL_WAL, attempt: int = 0
) -> TrialResult:
    path, out = folder / "cycles.toml", folder / f"run{attempt}.sqlite"
    path.write_text(PLAN.format(protocol=protocol, settings=settings))
    pgdyno("run", path, "--out", out, *args)
    with RunFile.read(out) as run:
        trial: TrialRecord = run.trials()[0]
    assert trial.state is TrialState.FINISHED, trial.reason
    assert trial.result is not None
    return trial.result


def begins_s(result: TrialResult) -> list[float]:
    """When checkpoints began by the server's own log, seconds since the window's begin."""
    return [
        (event.start_ns - result.window_ns[0]) / 1e9
        for event in result.events
        if event.kind == "checkpoint"
    ]


def is_begun_by_one(begins: list[float], second: float) -> bool:
    """Whether a checkpoint had begun just before."""
    return any(second - NOTICED_S <= at <= second for at in begins)


@pytest.mark.parametrize(
    "server",
    [
        pytest.param((), id="18"),
        pytest.param(("--bindir", DEBIAN_BINDIR), id="15", marks=pytest.mark.long),
    ],
)
@pytest.mark.long
def test_a_window_of_whole_cycles_begins_and_ends_with_checkpoints(
    folder: Path, home_env: Path, server: tuple[str, ...]
) -> None:
    late: list[list[float]] = []
    for attempt in range(ATTEMPTS):
        result = measured(folder, 'checkpoints = "cycles"\ncycles = 2', *server, attempt=attempt)
        begins = begins_s(result)
        if is_begun_by_one(begins, 0.0) and is_begun_by_one(begins, result.window_s):
            break
        late.append(begins)
    assert len(late) < ATTEMPTS, late

    inside = [at for at in begins if -NOTICED_S <= at <= result.window_s]
    assert len(inside) >= 3, "two cycles have three begins"
    assert result.followed is not None
    assert result.followed.cycles == 2
    assert len(result.followed.begins_ns) >= 3
    assert result.followed.load_ns[0] < result.window_ns[0]
    # What was counted belongs to this window and no other.
    assert result.client.window_s == pytest.approx(result.window_s, abs=0.1, rel=0.05)
    counted = sum(kind.window.succeeded for kind in result.kinds if kind.kind == "new_order")
    assert result.nopm == pytest.approx(counted * 60 / result.window_s)


@pytest.mark.long
def test_short_cycles_are_measured_whole_where_anchors_were_asked_for(
    folder: Path, home_env: Path
) -> None:
    result = measured(folder, 'checkpoints = "anchors"\nanchors = 1')

    assert result.followed is not None
    assert result.followed.cycles is not None


@pytest.mark.long
def test_an_anchor_goes_on_into_the_second_cycle(folder: Path, home_env: Path) -> None:
    by_time = 'max_wal_size = "24GB", checkpoint_timeout = "101s"'
    result = measured(
        folder, 'checkpoints = "anchors"\nanchors = 1',
        "--set", "workload.connections=1", settings=by_time,
    )  # fmt: skip

    assert result.followed is not None
    assert result.followed.cycles is None
    begin, end = result.followed.load_ns
    first = result.followed.begins_ns[0]
    assert (end - begin) / (first - begin) >= 1.25
    assert result.followed.spacing.timeout_s == 101
