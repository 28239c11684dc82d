"""pgbench's log of every transaction: counted in the window, as it was recorded on servers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pgdyno.drive import pgbench_log
from pgdyno.drive.histogram import Histogram
from pgdyno.drive.pgbench_log import Form, Log
from pgdyno.model.errors import DriveError
from pgdyno.model.response_times import counted
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
    assert (kind.window.drained, kind.window.timed) == (1, 3)
    assert log.drained_s == pytest.approx(0.1)
    assert (kind.run.succeeded, kind.run.due) == (5, 5)
    # The one under way at the end is timed in full.
    assert merged_quantiles([kind.response], [0.3, 0.6]) == [100_031, 300_031]
    assert kind.response_ns["max"] == pytest.approx(500_000_000, rel=1e-3)
    assert "exact_below" not in kind.response_ns
    series = {one.name: one for one in log.series()}
    committed = series.pop("driver.committed.tpcb")
    assert (committed.unix_ns[0], committed.values.tolist()) == (9 * S, [1, 1, 1, 2])
    # And the same by how long they took: 100, 200 and 300 µs, half a second and nine tenths.
    assert {name: one.values.tolist() for name, one in series.items()} == {
        "driver.response.98304_131072_ns": [0, 1, 0, 0],
        "driver.response.196608_262144_ns": [0, 0, 0, 1],
        "driver.response.262144_393216_ns": [0, 0, 1, 0],
        "driver.response.402653184_536870912_ns": [0, 0, 0, 1],
        "driver.response.805306368_1073741824_ns": [1, 0, 0, 0],
    }


def test_times_over_time_of_a_long_run_are_joined_and_none_is_lost(tmp_path: Path) -> None:
    ends = [10, 11, 12, 7_209, 7_210, 20_000]
    path = tmp_path / "log"
    path.write_text("".join(f"0 {at} 150 0 {end} 5 0\n" for at, end in enumerate(ends)))

    log = read(path, "tpcb", window=(11 * S, 20_001 * S))

    kept = counted({one.name: one for one in log.series()})
    assert kept is not None
    unix_ns, step_s, edges_ns, counts = kept
    assert (step_s, edges_ns.tolist()) == (4, [131_072, 196_608])
    assert unix_ns[:2].tolist() == [10 * S, 14 * S]
    met = np.flatnonzero(counts[0])
    assert dict(zip((10 + 4 * met).tolist(), counts[0][met].tolist(), strict=True)) == {
        10: 3, 7_206: 1, 7_210: 1, 19_998: 1
    }  # fmt: skip


def scheduled(path: Path, *rows: tuple[int, float, float, float]) -> None:
    """Write rows of client, due time, begin and end, in seconds since the epoch."""
    path.write_text("".join(
        f"{client} {at} {round((end - due) * 1e6)} 0 {int(end)} {round(end % 1 * 1e6)}"
        f" {round((begin - due) * 1e6)} 0\n"
        for at, (client, due, begin, end) in enumerate(rows)
    ))  # fmt: skip


def test_requests_that_pgbench_never_began_are_estimated_by_its_rate(tmp_path: Path) -> None:
    form, window = Form(lag=True, retries=True), (10 * S, 20 * S)
    # Two threads of two clients. The server stood still from 17 s to 25 s: the first thread's
    # clients were both under way and began nothing more, the second one's caught up.
    scheduled(tmp_path / "one", (0, 16.5, 16.5, 25.0), (1, 16.9, 16.9, 25.0))
    scheduled(
        tmp_path / "two", (2, 16.5, 16.5, 16.6), (3, 16.9, 16.9, 25.0), (2, 19.5, 19.5, 25.0),
        (3, 20.5, 25.0, 25.1),
    )  # fmt: skip
    log = Log(["tpcb"], form, 9 * S, window)
    for name in ("one", "two"):
        with (tmp_path / name).open("rb") as file:
            log.read(name, file)

    # Of 100 a second the first thread has half, from 16.9 s to the window's end.
    assert log.unlogged(100.0) == 155
    (kind,) = log.kinds(log.unlogged(100.0))
    assert kind.response_ns["exact_below"] == kind.queue_ns["exact_below"] == 0
    assert "exact_below" not in kind.service_ns
    assert (kind.window.drained, kind.window.succeeded) == (4, 1)
    assert log.drained_s == 5.0


def test_a_thread_with_a_free_client_has_told_all(tmp_path: Path) -> None:
    form, window = Form(lag=True, retries=True), (10 * S, 20 * S)
    scheduled(tmp_path / "one", (0, 16.5, 16.5, 25.0), (1, 16.9, 16.9, 17.0))
    log = Log(["tpcb"], form, 9 * S, window)
    with (tmp_path / "one").open("rb") as file:
        log.read("one", file)

    assert log.unlogged(0.2) == 0, "nothing became due since 16.9 s"


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
    assert (error.sqlstate, error.count) == ("40001", failed)


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
