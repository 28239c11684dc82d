"""The run file: what is written is read, finished trials survive, and foreign files are refused."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from pgdyno.analysis.run import analyse
from pgdyno.model.errors import StoreError
from pgdyno.model.fixture_shape import FixtureShape
from pgdyno.model.manifest import FileSystem, HostManifest, Installation
from pgdyno.model.plan import EarlierReport
from pgdyno.model.record_json import from_json, to_json
from pgdyno.model.run import (
    Cell,
    Fixture,
    RunInfo,
    Series,
    SnapshotColumn,
    SnapshotRows,
    TallySeries,
    TrialRecord,
    TrialResult,
    TrialState,
)
from pgdyno.store.earlier_formats import head_of
from pgdyno.store.run_file import RunFile, is_run_file, require_new
from pgdyno.store.unlocked import read_unlocked
from tests.data.miniature import CHARACTERS, a_plan, a_result
from tests.unit.stats.test_stats_ceiling import CEILING

FIRST = Path(__file__).parents[2] / "data" / "format-1.sqlite"
SECOND = FIRST.with_name("format-2.sqlite")
INFO = RunInfo("r1", 1, "0.1.0", "pgdyno run x", None, HostManifest(), Installation(), None)
TRIALS = [TrialRecord(n, 1, f"s{n}", "h", TrialState.PLANNED) for n in (1, 2)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "r.sqlite"


def test_what_is_written_is_read(path: Path) -> None:
    series = Series(
        "wal.bytes", "B", "counter",
        np.array([1, 2, 2**62], dtype=np.int64), np.array([0.5, float(2**53), 1e300]),
    )  # fmt: skip
    fixture = Fixture("f", FixtureShape(warehouses=2), 10, None, (), "copy", reused=False)
    done = TrialRecord(1, 1, "s1", "h", TrialState.FAILED, reason="no disk", ended_ns=5)
    with RunFile.create(path, INFO, TRIALS) as run:
        run.put_fixture(fixture)
        run.put_trial(done, [series])
        run.put_log("server", "LOG: ready", 1)

    with RunFile.read(path) as run:
        assert run.info() == INFO
        assert run.fixtures() == (fixture,)
        assert run.trials() == [done, TRIALS[1]]
        assert run.finished() == []
        kept = run.series(1)["wal.bytes"]
        assert kept.unix_ns.tolist() == series.unix_ns.tolist()
        assert kept.values.tolist() == series.values.tolist()
        assert run.logs(1) == {"server": "LOG: ready"}
        assert run.logs() == {}


def a_tally() -> TallySeries:
    keys = (("backend", "flush"), ("backend", "cpu"))
    columns = ([7, 7, 9], [0, 1, 1], [12, 3, 2**40], [7, 8, 9], [10, 9, 10])
    arrays = [np.array(column, dtype=np.int64) for column in columns]
    return TallySeries("sessions", ("role", "wait_class"), keys, *arrays)


def a_snapshot(at: Literal["begin", "end"]) -> SnapshotRows:
    columns = (
        SnapshotColumn("table", "", "label"),
        SnapshotColumn("bytes", "B", "gauge"),
        SnapshotColumn("share", "1", "gauge"),
    )
    rows: tuple[dict[str, Cell], ...] = (
        {"table": "ä", "bytes": 2**60, "share": 0.5},
        {"table": "b", "bytes": 1, "share": None},
    )
    return SnapshotRows("tables", at, 5, columns, rows)


def test_tallies_and_snapshots_are_read_as_written(path: Path) -> None:
    with RunFile.create(path, INFO, TRIALS) as run:
        run.put_trial(TRIALS[0], tallies=[a_tally()], snapshots=[a_snapshot("end")])
        run.put_trial(TRIALS[1], snapshots=[a_snapshot("end"), a_snapshot("begin")])

    with RunFile.read(path) as run:
        kept = run.tallies(1)["sessions"]
        for name in ("seconds", "key", "counts", "tick_seconds", "ticks"):
            assert getattr(kept, name).tolist() == getattr(a_tally(), name).tolist()
        assert (kept.dimensions, kept.keys) == (a_tally().dimensions, a_tally().keys)
        assert run.snapshots(1) == [a_snapshot("end")]
        assert run.snapshots(2) == [a_snapshot("begin"), a_snapshot("end")]
        assert run.tallies(2) == {}


def test_columns_sampled_together_share_their_times(path: Path) -> None:
    at, later = np.array([1, 2], dtype=np.int64), np.array([3, 4], dtype=np.int64)
    values = np.array([0.5, 1.5])
    series = [Series(f"s{n}", "1", "gauge", times, values + n)
              for n, times in enumerate([at, later, at.copy(), at])]  # fmt: skip
    with RunFile.create(path, INFO, TRIALS) as run:
        run.put_trial(TRIALS[0], series)

    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM times").fetchone() == (2,)
    with RunFile.read(path) as run:
        kept = run.series(1)
    for one in series:
        assert kept[one.name].unix_ns.tolist() == one.unix_ns.tolist()
        assert kept[one.name].values.tolist() == one.values.tolist()


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ("UPDATE trial SET record = '{' WHERE number = 1", RunFile.trials),
        ("UPDATE head SET value = '{' WHERE key = 'fixture a'", RunFile.fixtures),
        ("UPDATE times SET unix_ns = x'00'", lambda run: run.series(1)),
        ("UPDATE tally SET dimensions = '{'", lambda run: run.tallies(1)),
        ("UPDATE snapshot SET columns = '{'", lambda run: run.snapshots(1)),
    ],
    ids=["trials", "fixtures", "series", "tallies", "snapshots"],
)
def test_a_damaged_file_is_not_locked_by_what_read_it(
    path: Path, change: str, read: Callable[[RunFile], object]
) -> None:
    two = [Series(name, "1", "gauge", np.array([1]), np.array([1.0])) for name in "ab"]
    tallies = [replace(a_tally(), name=name) for name in "ab"]
    with RunFile.create(path, INFO, TRIALS) as run:
        for ident in "ab":
            shape = FixtureShape(warehouses=2)
            run.put_fixture(Fixture(ident, shape, 10, None, (), "copy", reused=False))
        run.put_trial(TRIALS[0], two, tallies, [a_snapshot("begin"), a_snapshot("end")])
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(change)

    with pytest.raises(StoreError) as raised, RunFile.read(path) as run:
        read(run)

    with closing(sqlite3.connect(path, timeout=0)) as db, db:  # the error still has its frames
        db.execute("DELETE FROM trial")
    assert "is damaged" in str(raised.value)


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ("DELETE FROM times", "series of trial 1"),
        ("UPDATE tally SET key = seconds", "2 keys and refers to number 9"),
        ("UPDATE tally SET dimensions = '[\"one\"]'", "has 1 dimension, and keys"),
        ("UPDATE tally SET counts = tick_seconds, seconds = x''", "tallies of trial 1"),
        ('UPDATE snapshot SET columns = \'[["a", "", "label"]]\'', "snapshots of trial 1"),
        ("UPDATE snapshot SET at = 'meanwhile'", "at: input should be"),
    ],
)
def test_what_contradicts_itself_is_damaged(path: Path, change: str, fact: str) -> None:
    one = Series("a", "1", "gauge", np.array([1]), np.array([1.0]))
    with RunFile.create(path, INFO, TRIALS) as run:
        run.put_trial(TRIALS[0], [one], [a_tally()], [a_snapshot("end")])
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(change)

    with RunFile.read(path) as run, pytest.raises(StoreError, match=f"is damaged.*({fact})"):
        run.series(1), run.tallies(1), run.snapshots(1)


@pytest.mark.parametrize("read", [RunFile.read, RunFile.append, read_unlocked])
def test_a_schema_that_is_no_text_is_told(path: Path, read: Callable[[Path], RunFile]) -> None:
    """SQLite's own words of it are none, so that Python raises what is no error of SQLite."""
    RunFile.create(path, INFO, TRIALS).close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA writable_schema = ON")
        broken = "UPDATE sqlite_schema SET sql = 'CREATE none', name = CAST(x'68d820' AS TEXT)"
        db.execute(f"{broken} WHERE name = 'log'")

    with pytest.raises(StoreError, match=r"r\.sqlite cannot be read: malformed .*\\xd8"):
        read(path)


def test_each_fixture_is_kept_once(path: Path) -> None:
    one = Fixture("f", FixtureShape(), 10, None, (), "copy", reused=False)
    other = replace(one, ident="g")
    with RunFile.create(path, INFO, TRIALS) as run:
        assert run.fixtures() == ()
        for fixture in (one, other, one):
            run.put_fixture(replace(fixture, reused=True))

        assert {fixture.ident: fixture.reused for fixture in run.fixtures()} == {
            "f": True,
            "g": True,
        }
        assert len(run.fixtures()) == 2


def test_a_trial_written_again_replaces_its_series(path: Path) -> None:
    one = Series("a", "1", "gauge", np.array([1]), np.array([1.0]))
    with RunFile.create(path, INFO, TRIALS) as run:
        run.put_trial(TRIALS[0], [one], [a_tally()], [a_snapshot("end")])
        run.put_trial(TRIALS[0], [])

        assert run.series(1) == {}
        assert run.tallies(1) == {}
        assert run.snapshots(1) == []


def test_what_is_measured_again_keeps_what_was_there(path: Path) -> None:
    series = Series("a", "1", "gauge", np.array([1]), np.array([1.0]))
    failed = TrialRecord(1, 1, "s1", "h", TrialState.FAILED, "no disk", 3, 5)
    with RunFile.create(path, INFO, TRIALS) as run:
        run.put_trial(failed, [series], [a_tally()], [a_snapshot("begin")])
        run.put_log("server", "PANIC", 1)
        for attempt in (2, 3):
            run.begin_again([1, 2])
            assert {(t.number, t.state, t.attempt) for t in run.trials()} == {
                (1, TrialState.PLANNED, attempt), (2, TrialState.PLANNED, attempt)
            }  # fmt: skip

        # What was never begun left nothing to keep.
        assert run.replaced() == [replace(failed, number=3, replaced_by=1)]
        assert run.series(1) == {}
        assert run.tallies(1) == {}
        assert run.series(3)["a"].values.tolist() == [1.0]
        assert list(run.tallies(3)) == ["sessions"]
        assert run.snapshots(3) == [a_snapshot("begin")]
        assert run.logs(1) == {}
        assert run.logs(3) == {"server": "PANIC"}


def test_an_existing_file_is_never_overwritten(path: Path) -> None:
    RunFile.create(path, INFO, TRIALS).close()

    with pytest.raises(StoreError, match="exists") as refused:
        RunFile.create(path, INFO, TRIALS)
    assert refused.value.hint == (
        f"If its run was stopped, `pgdyno resume {path}` measures the rest; else name another one"
        " with --out."
    )


@pytest.mark.parametrize("others", ["file", "folder"])
def test_what_is_no_run_file_is_not_to_be_resumed(path: Path, others: str) -> None:
    path.parent.mkdir()
    path.write_text("theirs") if others == "file" else path.mkdir()

    with pytest.raises(StoreError, match="exists") as refused:
        RunFile.create(path, INFO, TRIALS)
    assert refused.value.hint == "Name another one with --out."


def test_a_run_file_is_not_named_as_its_page_would_be(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="has the name of a page") as refused:
        require_new(tmp_path / "new.html")

    assert refused.value.hint is not None
    assert f"Name it {tmp_path / 'new.sqlite'}" in refused.value.hint


def test_a_file_appears_whole_or_not_at_all(path: Path) -> None:
    def trials() -> Iterator[TrialRecord]:
        yield TRIALS[0]
        assert not path.exists()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RunFile.create(path, INFO, trials())

    assert list(path.parent.iterdir()) == []


def test_a_reader_cannot_write(path: Path) -> None:
    RunFile.create(path, INFO, TRIALS).close()

    with RunFile.read(path) as run, pytest.raises(StoreError, match="cannot be written"):
        run.put_trial(TRIALS[0])


@pytest.mark.parametrize("said", ["run", "run.html", "run.toml", "rnu.sqlite"])
def test_a_run_file_is_named_where_its_name_or_ending_is_another(path: Path, said: str) -> None:
    meant = path.with_name("run.sqlite")
    RunFile.create(meant, INFO, TRIALS).close()
    path.with_name("run.html").write_text("<p>a page</p>" * 99)
    with pytest.raises(StoreError) as caught:
        RunFile.read(path.with_name(said))
    assert caught.value.hint == f"Did you mean {meant}?"


@pytest.mark.parametrize(
    "said", ["runs/demo.sqlite", "demo", "demo.toml", "20261130-090000-demo.sqlite"]
)
def test_the_last_run_of_a_plan_is_named_to_who_names_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("demo.toml").write_text('name = "demo"')
    Path("runs").mkdir()
    for name in ("29-100000-demo", "30-090000-demo", "30-100000-mydemo", "30-110000-other"):
        RunFile.create(Path(f"runs/202611{name}.sqlite"), INFO, TRIALS).close()
    with pytest.raises(StoreError) as caught:
        RunFile.read(Path(said))
    assert caught.value.hint == "Did you mean runs/20261130-090000-demo.sqlite?"


@pytest.mark.parametrize(("said", "meant"), [("rnu.sqlite", "run.sqlite"), ("odl.log", "old.log")])
def test_who_asks_whether_it_is_a_run_file_hears_what_was_meant(
    path: Path, said: str, meant: str
) -> None:
    path.parent.mkdir()
    for name in ("run.sqlite", "old.log"):
        path.with_name(name).write_text("tps = 1")
    with pytest.raises(StoreError) as caught:
        is_run_file(path.with_name(said))
    assert caught.value.hint == f"Did you mean {path.with_name(meant)}?"


def test_a_missing_file_is_an_error(path: Path) -> None:
    with pytest.raises(StoreError, match="no such file"):
        RunFile.read(path)


@pytest.mark.parametrize("name", [f"{'a' * 300}/x.sqlite", "a\0/x.sqlite", "..", "/"])
def test_a_name_that_no_file_can_have_is_an_error(name: str) -> None:
    with pytest.raises(StoreError):
        RunFile.read(Path(name))


@pytest.mark.parametrize("content", [b"", b"SQLite? no.", b"\0" * 4096])
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    foreign = tmp_path / "x.sqlite"
    foreign.write_bytes(content)

    with pytest.raises(StoreError):
        RunFile.read(foreign)
    assert foreign.read_bytes() == content


@pytest.mark.parametrize("path", [FIRST, SECOND], ids=["format 1", "format 2"])
def test_the_manifests_of_earlier_files_are_read_into_records(path: Path) -> None:
    with RunFile.read(path) as run:
        info = run.info()

    assert info.host == HostManifest(
        cpu_model="AMD EPYC (2 CPUs)", cpus=2, memory_bytes=25_233_000_000,
        kernel="Linux 6.18.44", file_system=FileSystem("ext4"), clock_source="kvm-clock",
    )  # fmt: skip
    assert info.build == Installation(
        "PostgreSQL 18.6", origin="embedded", configure="'--with-lz4'"
    )  # fmt: skip


def test_manifests_without_a_word_are_those_of_nothing(tmp_path: Path) -> None:
    # A search and a calibration have no programs of PostgreSQL.
    head = json.loads(to_json(INFO)) | {
        "host": {"cpus": 2, "told": "by a later pgdyno"},
        "build": {},
    }

    info = from_json(RunInfo, json.dumps(head))

    assert info.host == HostManifest(cpus=2)
    assert info.build == Installation()


def test_a_file_of_the_first_format_is_read_as_todays() -> None:
    with RunFile.read(FIRST) as run:
        plan = run.info().plan
        results = [trial.result for trial in run.finished()]
        (fixture,) = run.fixtures()
        series = run.series(1)
        assert (run.tallies(1), run.snapshots(1)) == ({}, [])

    committed = series["driver.committed.new_order"]
    assert committed.values.size == committed.unix_ns.size > 0
    assert all(result is not None and result.telemetry is None for result in results)
    assert fixture.shape.warehouses == 10
    assert plan.workload.kind == "tpcc"
    assert plan.workload.tpcc is not None
    assert plan.workload.tpcc.warehouses == 10
    assert plan.workload.tpcc.mix["new_order"] == 45.0
    assert [stage.workload for stage in plan.stages] == [plan.workload] * len(plan.stages)
    assert all(result is not None and result.headline == "NOPM" for result in results)
    assert all(result is not None and result.nopm == result.throughput for result in results)
    assert len(results) == 2


def test_a_file_of_the_first_format_is_reported() -> None:
    with RunFile.read(FIRST) as run:
        facts = analyse(run)

    assert facts.headline == "NOPM"
    assert [stage.name for stage in facts.stages] == ["initdb", "tuned"]
    assert "better than `initdb`" in facts.answer.finding


def test_descriptions_of_the_fourth_format_are_read_as_todays() -> None:
    written = json.loads(to_json(INFO))
    stages = {"a": {"face": "statement", "round_trips": {"statement": {}}}}
    nothing = head_of(4, json.dumps(written | {"workload": {}, "stages": stages}))
    something = head_of(4, json.dumps(written | {"workload": {"kinds": ["tpcb"], "csv": {}}}))

    assert from_json(RunInfo, nothing).workload is None
    assert from_json(RunInfo, nothing).stages["a"].face == "statement"
    found = from_json(RunInfo, something).workload
    assert found is not None
    assert found.kinds == ("tpcb",)


def test_a_head_of_the_fifth_format_is_read_as_todays() -> None:
    written = json.loads(to_json(INFO))
    ceilings = {"ceilings": [json.loads(to_json(CEILING))]}
    bare = head_of(5, json.dumps(written | {"plan": {}, "calibration": None}))
    measured = head_of(5, json.dumps(written | {"plan": {}, "calibration": ceilings}))

    assert from_json(RunInfo, bare).plan is None
    assert from_json(RunInfo, bare).calibration == ()
    assert from_json(RunInfo, measured).calibration == (CEILING,)


def test_figures_of_earlier_reports_of_the_fifth_format_are_read_as_todays() -> None:
    plan = a_plan(CHARACTERS, 3)
    figures = replace(plan.stages[0], earlier={"nopm": 102_494.0})
    report = EarlierReport("a field report", "16 cores", 1)
    plan = replace(plan, earlier=report, stages=(figures, *plan.stages[1:]))

    written = to_json(replace(INFO, plan=plan)).replace('"earlier":', '"then":')
    written = written.replace('"calibration":[]', '"calibration":null')

    assert from_json(RunInfo, head_of(5, written)).plan == plan


def test_a_fixture_without_rows_of_ours_had_an_empty_report() -> None:
    fixture = Fixture("f", FixtureShape(), 1, None, (), "copy", reused=False)

    earlier = to_json(fixture).replace('"loaded":null', '"loaded":{}')

    assert "{}" in earlier
    assert from_json(Fixture, earlier) == fixture


def test_a_file_of_the_second_format_is_reported() -> None:
    with RunFile.read(SECOND) as run:
        facts = analyse(run)
        assert run.replaced() == []

    assert [stage.name for stage in facts.stages] == ["tuned", "async-commit"]
    assert [trial.state for trial in facts.trials] == ["finished"] * 3 + ["failed"]


@pytest.mark.parametrize(("file", "number"), [(FIRST, 1), (SECOND, 2)])
def test_a_file_of_an_earlier_format_is_not_gone_on_with(
    tmp_path: Path, file: Path, number: int
) -> None:
    copy = tmp_path / "first.sqlite"
    copy.write_bytes(file.read_bytes())

    with pytest.raises(StoreError, match=f"format {number}") as caught:
        RunFile.append(copy)
    assert "not resumed" in str(caught.value.hint)


def test_a_result_that_says_untold_is_read_as_unlogged() -> None:
    result = replace(a_result(), unlogged=3)
    written = to_json(result).replace('"unlogged"', '"untold"')
    assert '"untold"' in written
    assert from_json(TrialResult, written) == result
