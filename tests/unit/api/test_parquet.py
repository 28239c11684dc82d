"""Runs as SQL and as Parquet files say the same as the tables of the API, for many runs at once."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from pgdyno.api import table
from pgdyno.api.imports import import_results
from pgdyno.api.parquet import TABLES
from pgdyno.api.runs import Run
from pgdyno.api.table import Table
from pgdyno.cli.app import app
from pgdyno.model.errors import PgdynoError, StoreError
from pgdyno.store.run_file import RunFile
from pgdyno.store.views import VIEWS
from tests.data.imported import FOLDER
from tests.data.miniature import write_miniature

DATA = Path(__file__).parents[2] / "data"
OF_TRIALS = (
    "trial", "round", "stage", "state", "reason", "attempt", "nopm", "tps", "tpm_total", "window_s",
    "client_cpu_s", "started_unix_ns",
)  # fmt: skip
OF_KINDS = (
    "trial", "round", "stage", "kind", "due", "succeeded", "rolled_back", "failed", "unfinished",
    "p50_ns", "p90_ns", "p95_ns", "p99_ns", "p999_ns", "max_ns", "mean_ns",
)  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_miniature(tmp_path_factory.mktemp("run") / "run.sqlite", planned=(9,), failed=(8,))


def asked(path: Path, text: str) -> list[tuple[Any, ...]]:
    """Of the file itself, as any tool asks it."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        return db.execute(text).fetchall()


def plain(found: Table, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    rows = ([row[name] for name in names] for row in found.rows())
    return [tuple(None if one != one else one for one in row) for row in rows]  # noqa: PLR0124  NaN


def test_views_say_what_the_tables_of_the_api_say(path: Path) -> None:
    run = Run(path)
    trials = asked(path, f"SELECT {', '.join(OF_TRIALS)} FROM trials")
    assert len(trials) == 9
    for found, row in zip(trials, plain(run.trials(None), OF_TRIALS), strict=True):
        for one, expected in zip(found, row, strict=True):
            assert one == pytest.approx(expected)
    kinds = asked(path, f"SELECT {', '.join(OF_KINDS)} FROM kinds ORDER BY trial")
    assert kinds
    assert sorted(kinds) == sorted(plain(run.kinds(), OF_KINDS))
    names = ("stage", "name", "value", "origin", "detail")
    settings = asked(path, f"SELECT DISTINCT {', '.join(names)} FROM settings")
    assert sorted(settings) == sorted(plain(run.settings(), names))


def test_each_view_has_rows_of_this_run_and_its_documented_columns(path: Path) -> None:
    for one in VIEWS:
        with closing(sqlite3.connect(path)) as db:
            cursor = db.execute(f"SELECT * FROM {one.name}")
            rows = cursor.fetchall()
        assert [name for name, *_ in cursor.description] == [each.name for each in one.columns]
        assert {row[0] for row in rows} <= {Run(path).info.ident}
        # A miniature's requests do not fail, and nothing of others is in it.
        assert bool(rows) == (one.name not in ("errors", "imported")), one.name
        types: dict[str, Any] = {"integer": int, "real": (int, float), "text": str}
        for row in rows:
            for each, value in zip(one.columns, row, strict=True):
                fits = value is None or isinstance(value, types[each.type])
                assert fits, (one.name, each.name)


def test_results_of_other_tools_have_a_view_and_a_file(tmp_path: Path) -> None:
    run = write_miniature(tmp_path / "run.sqlite")
    names = ("hammerdb-4.9-cli.txt", "benchmarksql-5.0-result.csv")
    found = import_results([FOLDER / name for name in names], into=run).results
    rows = asked(run, 'SELECT result, tool, version, metric, value, unit, "of", told FROM imported')
    written = Run(run).parquet(tmp_path / "parquet")

    hammer = ("HammerDB", "4.9")
    assert rows[:3] == [
        (1, *hammer, "NOPM", 69200.0, "1/min", None, 1),
        (1, *hammer, "TPM", 160000.0, "1/min", None, 1),
        (1, *hammer, "nopm_committed", 69200.0, None, None, 0),
    ]
    assert [row[4] for row in rows[3:]] == [one.value for one in found[1].comparable]
    (table,) = [one for one in written.files if one.name == "imported.parquet"]
    assert table.rows == len(rows)
    assert {row[0] for row in asked(run, "SELECT sha256 FROM imported")} == {
        one.source.sha256 for one in found
    }


def test_a_file_from_before_the_views_gets_them_where_it_is_gone_on_with(tmp_path: Path) -> None:
    path = write_miniature(tmp_path / "old.sqlite")
    with closing(sqlite3.connect(path)) as db, db:
        for one in VIEWS:
            db.execute(f"DROP VIEW {one.name}")
    with RunFile.read(path) as file:
        read = file.laid_out()
    RunFile.append(path).close()
    assert {one.name: asked(path, f"SELECT * FROM {one.name}") for one in VIEWS} == read


def test_many_runs_are_read_as_one(tmp_path: Path) -> None:
    paths = [write_miniature(tmp_path / f"{days}.sqlite", days=days) for days in (1, 2)]
    for one in paths:
        Run(one).parquet(tmp_path / "all")
    shutil.copy(DATA / "format-1.sqlite", tmp_path / "first.sqlite")  # has other records
    Run(tmp_path / "first.sqlite").parquet(tmp_path / "all")
    glob = f"{tmp_path}/all/*"

    counted = duckdb.sql(
        f"SELECT run, count(*), avg(nopm) FROM '{glob}/trials.parquet'"
        " WHERE state = 'finished' GROUP BY run"
    ).fetchall()
    for one in [*paths, tmp_path / "first.sqlite"]:
        run = Run(one)
        ((_, count, nopm),) = [row for row in counted if row[0] == run.info.ident]
        assert count == len(run.trials())
        assert nopm == pytest.approx(float(run.trials()["nopm"].mean()))
    kinds = polars.read_parquet(f"{glob}/kinds.parquet")
    assert kinds.height == sum(len(Run(one).kinds()) for one in paths) + len(
        Run(tmp_path / "first.sqlite").kinds()
    )
    for name, _, columns in TABLES:
        schemas = {
            str(pyarrow.parquet.read_schema(one)) for one in tmp_path.glob(f"all/*/{name}.parquet")
        }
        assert len(schemas) == 1, name
        found = duckdb.sql(f"SELECT * FROM '{glob}/{name}.parquet'")
        assert found.columns == [one.name for one in columns]


def test_samples_sessions_and_verdicts_are_unpacked(path: Path, tmp_path: Path) -> None:
    run = Run(path)
    done = run.parquet(tmp_path)
    assert {one.name for one in done.files} == {f"{name}.parquet" for name, *_ in TABLES}
    for one in done.files:
        file = done.folder / one.name
        assert (one.rows, one.bytes) == (
            pyarrow.parquet.read_metadata(file).num_rows, file.stat().st_size,
        )  # fmt: skip
    series = polars.read_parquet(done.folder / "series.parquet").filter(trial=1)
    expected = run.series(1)
    assert series.height == len(expected)
    assert series["value"].sum() == pytest.approx(float(expected["value"].sum()))
    sessions = polars.read_parquet(done.folder / "sessions.parquet").filter(trial=1)
    with RunFile.read(path) as kept:
        tally = kept.tallies(1)["sessions"]
    assert sessions["met"].sum() == tally.counts.sum()
    assert set(sessions["wait_class"]) == {key[1] for key in tally.keys}
    verdicts = polars.read_parquet(done.folder / "verdicts.parquet").drop("run")
    names = tuple(verdicts.columns)
    assert [tuple(row) for row in verdicts.rows()] == plain(run.verdicts(), names)


def test_a_run_is_not_written_over_and_nothing_is_left_of_one_that_failed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(path)
    run.parquet(tmp_path)
    with pytest.raises(StoreError, match=f"has a {run.info.ident} already"):
        run.parquet(tmp_path)
    with monkeypatch.context() as changed:
        changed.setattr("pyarrow.parquet.ParquetWriter.write_table", full)
        with pytest.raises(StoreError, match="cannot be written: no space left on device"):
            run.parquet(tmp_path / "full")
    assert list((tmp_path / "full").iterdir()) == []
    monkeypatch.setattr(table, "import_module", missing)
    with pytest.raises(PgdynoError, match=r"pyarrow\.parquet is not installed"):
        run.parquet(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def full(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def missing(name: str) -> None:
    raise ImportError(name)


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (["RUN"], "run.sqlite is not tpcc, and --parquet is not given"),
        (["RUN", "--parquet", "--seed", "3"], "--parquet and --seed are given"),
        (["tpcc"], "nothing names the folder for the rows of tpcc"),
        (["tpcc", "x", "--parquet"], "--parquet is given, and tpcc is no run file"),
        (["none.sqlite", "--parquet"], "none.sqlite cannot be read"),
    ],
)
def test_what_does_not_fit_is_refused(
    words: list[str], fact: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(
        app, ["export", *(str(path) if one == "RUN" else one for one in words)]
    )
    assert done.exit_code != 0
    assert isinstance(done.exception, PgdynoError)
    assert fact in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_what_it_wrote(path: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "pgdyno", "export", str(path), "--parquet", "--json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=True)
    said = json.loads(done.stdout)
    assert said["folder"] == f"parquet/{Run(path).info.ident}"
    assert {one["name"] for one in said["files"]} == {f"{name}.parquet" for name, *_ in TABLES}
