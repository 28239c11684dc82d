"""Imports through the api: JSON, tables, ratios, and a run file that keeps them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pgdyno
from pgdyno.model.errors import PlanError, StoreError
from pgdyno.store import RunFile
from tests.data.hammerdb_jobs import job_store
from tests.data.imported import FOLDER
from tests.data.miniature import write_miniature


def at(name: str) -> Path:
    return FOLDER / name


def test_json_is_whole_and_finite() -> None:
    found = pgdyno.import_results([at("pgbench-18-tpcb.txt"), at("go-tpc-1-json.txt")])
    plain = json.loads(found.to_json())

    assert plain["schema"] == "pgdyno.imports/1"
    assert [one["tool"] for one in plain["results"]] == ["pgbench", "go-tpc"]
    assert plain["results"][1]["version"] is None
    assert "NaN" not in found.to_json()


def test_a_table_tells_what_was_told_from_what_was_counted() -> None:
    rows = list(pgdyno.import_results([at("hammerdb-4.9-cli.txt")]).table().rows())

    assert [(row["metric"], row["told"]) for row in rows] == [
        ("NOPM", True), ("TPM", True), ("nopm_committed", False),
    ]  # fmt: skip


def test_no_ratio_unless_it_is_asked_for_and_then_with_what_differs() -> None:
    found = pgdyno.import_results([at("benchmarksql-4.1-console.txt"), at("go-tpc-1-plain.txt")])
    assert not [line for line in found.lines() if " = x" in line]

    said = list(found.lines("nopm_ended"))
    assert any("= x1.949" in line for line in said)
    assert any("without an interval and without a verdict" in line for line in said)
    differs = next(line for line in said if line.startswith("What differs"))
    assert "tool: BenchmarkSQL and go-tpc" in differs
    assert "warehouses: 1 and not told" in differs
    assert any("settings of the server" in line for line in said if line.startswith("Not told"))


def test_a_ratio_of_what_means_something_else_is_refused() -> None:
    found = pgdyno.import_results([at("benchmarksql-4.1-console.txt"), at("pgbench-18-tpcb.txt")])

    for metric in ("tpmC", "tps", "nopm_committed"):
        with pytest.raises(PlanError):
            found.beside(metric)
    with pytest.raises(PlanError, match="result 3 was asked for, 2 were read"):
        found.beside("tps", 0, 2)


def test_the_run_info_belongs_to_the_results_of_its_run() -> None:
    names = ("benchmarksql-5.0-runInfo.csv", "benchmarksql-5.0-result.csv")
    (one,) = pgdyno.import_results([at(name) for name in names]).results

    assert one.form == "result.csv of 5"
    assert one.version == "5.0"
    assert one.conditions["warehouses"] == 1


def test_properties_that_come_with_the_end_of_a_console_belong_to_it(tmp_path: Path) -> None:
    console = at("benchmarksql-5.0-console.txt").read_text()
    tail = tmp_path / "tail.txt"
    tail.write_text("".join(f"> {line}\n" for line in console.splitlines()[-5:]))
    properties = at("benchmarksql-5.0-properties.txt")
    (alone,) = pgdyno.import_results([tail]).results
    (one,) = pgdyno.import_results([tail, properties]).results
    (whole,) = pgdyno.import_results([at("benchmarksql-5.0-console.txt")]).results

    assert {"T2", "E2", "E7"} <= {
        check.trap for check in alone.checks if check.outcome == "unknown"
    }
    assert one.conditions == whole.conditions
    assert one.told[0].value == 11226.71
    (settings,) = pgdyno.import_results([properties]).results
    assert (settings.form, settings.comparable, settings.told) == ("properties", (), ())
    # Of two such files nobody knows which is this run's.
    other = tmp_path / "other.properties"
    other.write_text(properties.read_text().replace("warehouses=1", "warehouses=9"))
    found = pgdyno.import_results([tail, properties, other]).results
    assert [result.form for result in found] == ["console", "properties", "properties"]
    assert "warehouses" not in found[0].conditions


def test_warehouses_are_named_where_nobody_told_and_must_not_contradict() -> None:
    (one,) = pgdyno.import_results([at("hammerdb-3.2-console.txt")], warehouses=800).results
    assert one.conditions["warehouses"] == 800

    with pytest.raises(PlanError, match="tells 800 warehouses, 10 were named"):
        pgdyno.import_results([at("hammerdb-4.9-cli.txt")], warehouses=10)


def test_nothing_to_read_is_refused() -> None:
    with pytest.raises(PlanError, match="no file was named"):
        pgdyno.import_results([])


def test_a_run_file_keeps_results_and_texts_without_secrets(tmp_path: Path) -> None:
    run = write_miniature(tmp_path / "run.sqlite")
    files = [at("hammerdb-4.9-cli.txt"), at("benchmarksql-4.1-console.txt")]
    found = pgdyno.import_results(files, into=run)
    pgdyno.import_results(files[:1], into=run)  # the text of the same file is kept once

    with RunFile.read(run) as file:
        kept, texts = file.imported(), file.logs()
    assert kept == (*found.results, *pgdyno.import_results(files[:1]).results)
    named = [name for name in texts if name.startswith("imported")]
    assert {name.split()[1] for name in named} == {one.source.sha256 for one in found.results}
    assert "System achieved 69200 NOPM" in "".join(texts[name] for name in named)
    assert "hunter2" not in "".join(texts.values())


def test_a_job_store_is_kept_by_what_its_users_said(tmp_path: Path) -> None:
    run = write_miniature(tmp_path / "run.sqlite")
    said = ("pg_superuserpass = hunter2", "Vuser 1:TEST RESULT : System achieved 7 NOPM from 9"
            " PostgreSQL TPM")  # fmt: skip
    store = job_store(tmp_path / "hammer.DB", said=said)
    (one,) = pgdyno.import_results([store], into=run).results

    with RunFile.read(run) as file:
        kept = {name: text for name, text in file.logs().items() if one.source.sha256 in name}
    assert "".join(kept.values()).splitlines()[1:] == [
        "pg_superuserpass = (hidden)", "Vuser 1:TEST RESULT : System achieved 7 NOPM from 9"
        " PostgreSQL TPM",
    ]  # fmt: skip


def test_a_report_shows_both_and_rests_on_ours_alone(tmp_path: Path) -> None:
    run = write_miniature(tmp_path / "run.sqlite")
    before = pgdyno.Run(run).facts
    pgdyno.import_results([at("field-six-stages.txt")], into=run)
    after = pgdyno.Run(run)

    assert after.facts.answer == before.answer
    assert after.facts.stages == before.stages
    text = after.report("md")
    assert "## Results of other tools" in text
    assert "○ 1. BenchmarkSQL" in text
    assert "606,481" in text  # four clients, added by the importer
    assert "T1, results 1 to 21:" in text
    assert "the others have their own" in text
    assert "Results of other tools" not in (
        pgdyno.Run(write_miniature(tmp_path / "n.sqlite"))
    ).report("md")
    assert "Results of other tools" in after.report("html")
    assert len(json.loads(after.report("json"))["imported"]) == 21


def test_what_is_no_run_file_is_not_written_to(tmp_path: Path) -> None:
    other = tmp_path / "run.sqlite"
    other.write_text("mine")

    with pytest.raises(StoreError):
        pgdyno.import_results([at("hammerdb-4.9-cli.txt")], into=other)
    assert other.read_text() == "mine"
