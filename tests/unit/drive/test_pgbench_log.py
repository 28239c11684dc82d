"""pgbench's log of every transaction: counted in the window, as it was recorded on servers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pgdyno.drive import pgbench_log
from pgdyno.drive.histogram import Histogram
from pgdyno.drive.pgbench_log import Form, Log
from pgdyno.model.errors import DriveError
from pgdyno.store.histogram import merged_quantiles

DATA = Path(__file__).parents[2] / "data" / "pgbench"
S = 1_000_000_000
BEGIN = 1_795_348_700 * S  # before the recorded ones
FORM = Form(lag=False, retries=True)


def read(path: Path, *kinds: str, form: Form = FORM, window: tuple[int, int]) -> Log:
    log = Log(kinds, form, window[0] - S, window)
    with path.open("rb") as file:
        log.read(path.name, file)
    return log


def whole(path: Path, form: Form, *kinds: str) -> Log:
    return read(path, *kinds, form=form, window=(BEGIN, BEGIN + 1_000 * S))


@pytest.mark.parametrize("version", [18, 15])
def test_a_recorded_log_agrees_with_the_recorded_summary(version: int) -> None:
    log = whole(DATA / f"{version}-rate.log", Form(lag=True, retries=True), "simple-update")
    (kind,) = log.kinds()

    assert log.lines == kind.window.succeeded == kind.run.succeeded == 912
    text = (DATA / f"{version}-rate.txt").read_text()
    assert f"latency average = {kind.response_ns['mean'] / 1e6:.3f} ms" in text
    assert f"schedule lag: avg {kind.queue_ns['mean'] / 1e6:.3f} (max " in text
    assert kind.service_ns["mean"] == pytest.approx(
        kind.response_ns["mean"] - kind.queue_ns["mean"], abs=2
    )


def test_what_ends_in_the_window_is_counted_and_all_is_accounted_for(tmp_path: Path) -> None:
    rows = [
        (900_000, 9.999_999),  # of the warm-up
        (100, 10.0),  # the first that counts
        (300, 11.999_999),  # the last one
        (500_000, 12.1),  # under way at the end
        (200, 12.2),  # began after it
    ]
    path = tmp_path / "log"
    path.write_text("".join(
        f"0 {at} {time} 0 {int(end)} {round(end % 1 * 1e6)} 0\n"
        for at, (time, end) in enumerate(rows)
    ))  # fmt: skip

    log = read(path, "tpcb", window=(10 * S, 12 * S))
    (kind,) = log.kinds()

    assert (kind.window.succeeded, kind.window.unfinished, kind.window.due) == (2, 1, 3)
    assert (kind.run.succeeded, kind.run.due) == (5, 5)
    assert merged_quantiles([kind.response], [0.5, 1.0]) == [100_031, 300_031]
    (series,) = log.series()
    assert series.name == "driver.committed.tpcb"
    assert (series.unix_ns[0], series.values.tolist()) == (9 * S, [1, 1, 1, 2])


@pytest.mark.parametrize("version", [18, 15])
def test_failures_and_retries_are_told_by_kind(version: int) -> None:
    path = DATA / f"{version}-ser.log"
    words = [line.split() for line in path.read_text().splitlines()]
    log = whole(path, FORM, "ser.sql", "sel.sql")
    ser, sel = log.kinds()

    failed = sum(word[2] == "serialization" for word in words)
    assert failed > 10
    assert (ser.run.failed, sel.run.failed) == (failed, 0)
    assert sel.run.succeeded == sum(word[3] == "1" for word in words)
    assert ser.run.retries_40001 == sum(int(word[6]) for word in words)
    (error,) = log.errors()
    assert (error["sqlstate"], error["count"]) == ("40001", failed)


def test_parts_of_a_large_file_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    path, form = DATA / "18-rate.log", Form(lag=True, retries=True)
    at_once = whole(path, form, "tpcb").kinds()
    monkeypatch.setattr(pgbench_log, "_CHUNK_BYTES", 1000)

    assert whole(path, form, "tpcb").kinds() == at_once


@pytest.mark.parametrize("text", ["0 1 100 0 12 5 0 7\n", "0 1 much 0 12 5 0\n", "0 1 100 0 12"])
def test_another_form_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "log").write_text(text)

    with pytest.raises(DriveError, match="pgbench's log log"):
        read(tmp_path / "log", "tpcb", window=(10 * S, 20 * S))


def test_histograms_are_those_of_the_core() -> None:
    values = np.random.default_rng(1).lognormal(16, 3, 5_000).astype(np.int64)
    histogram = Histogram()
    histogram.add(values[:100])
    histogram.add(values[100:])
    histogram.add(np.array([0, 2047, 2048, 4 * 3_600 * S]))

    summary = histogram.summary_ns()

    everything = np.concatenate([values, [0, 2047, 2048, 3_600 * S]])
    for name, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999)):
        exact = np.quantile(everything, share, method="inverted_cdf")
        assert summary[name] == pytest.approx(exact, rel=1e-3)
    assert summary["mean"] == pytest.approx(everything.mean())
    assert summary["max"] == pytest.approx(3_600 * S, rel=1e-3)
    assert Histogram().summary_ns() == dict.fromkeys(summary, 0)
