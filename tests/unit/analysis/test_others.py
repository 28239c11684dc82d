"""What differs between stages of ours and results of other tools, in a report."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import pgdyno
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.others import NOT_TOLD, OtherConditions
from tests.data.hammerdb_jobs import job_store
from tests.data.hostile import WORDS
from tests.data.imported import FOLDER, warned
from tests.data.miniature import write_miniature


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_miniature(tmp_path / "run.sqlite")


def with_others(run: Path, *names: str) -> Facts:
    """Imported one after the other, as people do."""
    for name in names:
        pgdyno.import_results([FOLDER / name], into=run)
    return pgdyno.Run(run).facts


def found(facts: Facts) -> OtherConditions:
    assert facts.imported_conditions is not None
    return facts.imported_conditions


def test_nothing_of_others_nothing_differs(run: Path) -> None:
    assert pgdyno.Run(run).facts.imported_conditions is None


def test_what_nobody_told_is_said_and_what_is_the_same_is_not(run: Path) -> None:
    lines = {
        one.what: (one.ours, one.theirs)
        for one in found(with_others(run, "benchmarksql-5.0-console-oracle.txt")).lines
    }

    assert lines["database"] == ("PostgreSQL 18.6", ("oracle",))
    assert lines["warehouses"] == ("10", ("1,000",))
    assert lines["what a crash may take"] == ("D0, D2", (NOT_TOLD,))
    assert lines["Payments in the mix, %"] == ("43", ("36",))
    assert "keying and think times" not in lines  # neither waits
    assert "isolation" not in lines  # it does not tell, as few do


def test_results_that_share_all_of_it_stand_in_one_column(run: Path) -> None:
    facts = with_others(run, "field-six-stages.txt")
    groups = found(facts).groups

    assert sorted(place for group in groups for place in group) == list(range(21))
    assert len(groups) < 10
    assert all(len(one.theirs) == len(groups) for one in found(facts).lines)


def test_what_was_imported_one_after_the_other_is_checked_together(run: Path) -> None:
    one, other = with_others(run, "pgbench-18-tpcb.txt", "pgbench-18-select-connect.txt").imported

    assert warned(one, "T10").outcome == "fires"
    assert warned(other, "T10").outcome == "fires"


def test_what_was_imported_twice_is_no_copy_of_itself(run: Path) -> None:
    with_others(run, "hammerdb-3.2-console.txt")
    pgdyno.import_results([FOLDER / "hammerdb-3.2-console.txt"], into=run, warehouses=800)
    (one,) = pgdyno.Run(run).facts.imported

    assert one.conditions["warehouses"] == 800
    assert warned(one, "E10").outcome == "silent"


def test_each_job_of_a_store_is_a_result_of_its_own(run: Path, tmp_path: Path) -> None:
    store = job_store(tmp_path / "hammer.DB")
    with closing(sqlite3.connect(store)) as db, db:
        for table in ("JOBMAIN", "JOBOUTPUT"):
            names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            chosen = ", ".join("'other'" if name == "jobid" else f'"{name}"' for name in names)
            db.execute(f"INSERT INTO {table} SELECT {chosen} FROM {table}")
    pgdyno.import_results([store], into=run)

    assert len(pgdyno.Run(run).facts.imported) == 2


def test_hostile_names_reach_no_reader(run: Path, tmp_path: Path) -> None:
    text = (FOLDER / "benchmarksql-5.0-console-oracle.txt").read_text()
    for number, word in enumerate(WORDS.values()):
        console = tmp_path / f"console-{number}.txt"
        console.write_text(text.replace("oracle", f"o{word}"), newline="")
        pgdyno.import_results([console], into=run)
    pages = pgdyno.Run(run)
    html, markdown, plain = (pages.report(name) for name in ("html", "md", "json"))

    assert len(pages.facts.imported) == len(WORDS)
    for page in (html, markdown, plain):
        assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(page)
    for page in (html, markdown):
        assert "<img src=x" not in page
        assert "<!--<script>document" not in page


def test_a_time_that_no_calendar_has_is_not_told(run: Path, tmp_path: Path) -> None:
    rows = (FOLDER / "benchbase-2023-raw.csv").read_text().splitlines()
    cells = rows[1].split(",")
    far = ",".join((*cells[:2], "999999999999999.5", *cells[3:]))
    path = tmp_path / "raw.csv"
    path.write_text("\n".join((rows[0], far, far)))
    pgdyno.import_results([path], into=run)
    lines = {one.what: one.theirs for one in found(pgdyno.Run(run).facts).lines}

    assert lines["measured"] == (NOT_TOLD,)
