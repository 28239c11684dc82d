"""Stages, run files and results of other tools beside each other, as far as that is honest."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Literal

import pytest
from typer.testing import CliRunner

import pgdyno
from pgdyno.analysis.beside_facts import Against
from pgdyno.api.comparing import Beside
from pgdyno.cli.app import app
from pgdyno.model.errors import PgdynoError, PlanError, StoreError
from pgdyno.model.fleet import Fleet, FleetResult
from pgdyno.model.run import Cell, SnapshotColumn, SnapshotRows, TrialState
from pgdyno.model.wal import WalKind, WindowWal
from pgdyno.model.workload import Share
from pgdyno.report.beside import some_bytes
from pgdyno.store.run_file import RunFile
from tests.data.hosts import DRIVEN
from tests.data.imported import FOLDER, warned
from tests.data.miniature import CHARACTERS, write_miniature
from tests.data.profiled import add_profiles
from tests.data.servers_result import over_two


def session(folder: Path, days: int, factor: float = 1.0, **more: object) -> Path:
    """A run of all stages on another day, which its session made faster or slower."""
    characters = tuple(replace(one, nopm=one.nopm * factor) for one in CHARACTERS)
    options: dict[str, object] = {"invalid": (), "characters": characters} | more
    path = folder / f"{days}.sqlite"
    return write_miniature(path, days=days, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five days of the same plan on one host."""
    found = tmp_path_factory.mktemp("runs")
    for days, factor in enumerate((1.0, 1.03, 0.98, 1.01, 0.97), 1):
        session(found, days, factor)
    return found


def only(found: Beside) -> Against:
    """The one comparison."""
    (row,) = found.facts.rows
    (one,) = row.against
    return one


def test_stages_of_one_run_are_paired_as_its_report_pairs_them(folder: Path) -> None:
    run = folder / "1.sqlite"
    one = only(pgdyno.compare(f"{run}:initdb", f"{run}:tuned"))

    assert one.how == "paired"
    assert one.comparison == pgdyno.Run(run).compare("tuned", "initdb")
    named = {line.what for line in one.differences if line.group == "settings"}
    assert {"shared_buffers", "effective_cache_size"} <= named


def from_hosts(path: Path, *names: str, degraded: int = 0) -> Path:
    """The same run, as if its load had come from hosts, some of them lost in the first trials."""
    with RunFile.append(path) as run:
        info = run.info()
        assert info.plan is not None
        fleet = Fleet(names, degraded=True)
        plan = replace(info.plan, protocol=replace(info.plan.protocol, fleet=fleet))
        run.put_found("info", replace(info, plan=plan))
        for trial in run.trials():
            if trial.result is None:
                continue
            hosts = tuple(replace(one, name=name)
                          for one, name in zip(DRIVEN.hosts, names, strict=False))  # fmt: skip
            lost = ("host ssh://c was lost: gone",) if trial.round <= degraded else ()
            result = replace(trial.result, fleet=FleetResult(hosts, lost, went_on=True))
            state = TrialState.DEGRADED if lost else trial.state
            run.put_trial(replace(trial, state=state, result=result))
    return path


def test_runs_whose_load_came_from_other_hosts_are_not_judged_and_say_so(tmp_path: Path) -> None:
    one = from_hosts(session(tmp_path, 1), "local:a", "local:b")
    same = from_hosts(session(tmp_path, 2), "local:a", "local:b", degraded=1)
    other = from_hosts(session(tmp_path, 3), "local:a", "ssh://c")
    alone = session(tmp_path, 4)

    for path, value in ((other, "local:a and ssh://c"), (alone, "one process")):
        found = only(pgdyno.compare(f"{one}:tuned", f"{path}:tuned"))
        assert found.comparison.verdict == "not judged"
        line = next(line for line in found.differences if line.what == "load from")
        assert line.values == ("local:a and local:b", value)
    alike = only(pgdyno.compare(f"{one}:tuned", f"{same}:tuned"))
    assert {
        (line.what, line.values[1]) for line in alike.differences if line.group == "pgdyno"
    } == {("left out, driven without lost hosts", "1 trial")}
    assert "load from" not in {line.what for line in alike.differences}


def test_of_several_comparisons_each_has_to_be_surer(folder: Path) -> None:
    run = folder / "1.sqlite"
    alone = only(pgdyno.compare(f"{run}:initdb", f"{run}:tuned")).comparison
    (row,) = pgdyno.compare(run).facts.rows

    assert [side.stage for side in row.sides] == ["initdb", "tuned", "async-commit"]
    beside = row.against[0].comparison
    assert (beside.low, beside.high) == (alone.low, alone.high)
    assert beside.p_adjusted is not None
    assert beside.p_adjusted >= (alone.p_adjusted or 0)


def test_stages_of_a_run_beside_its_first_are_judged_as_in_its_report(folder: Path) -> None:
    """Whoever asks for all of them at once makes the family that the report has made."""
    run = pgdyno.Run(folder / "1.sqlite")
    (row,) = pgdyno.compare(run.path).facts.rows

    told = {one.name: one.to_first for one in run.facts.stages if one.to_first is not None}
    for side, against in zip(row.sides[1:], row.against, strict=True):
        report, beside = told[side.stage], against.comparison
        assert (beside.p_adjusted, beside.verdict) == (report.p_adjusted, report.verdict)


def test_runs_of_two_days_have_a_ratio_and_no_interval_and_are_told_how_to_get_one(
    folder: Path,
) -> None:
    found = pgdyno.compare(f"{folder / '1.sqlite'}:tuned", f"{folder / '2.sqlite'}:tuned")
    one = only(found)

    assert one.how == "unpaired"
    assert one.comparison.ratio == pytest.approx(1.03, rel=0.05)
    assert one.comparison.low is None
    assert one.comparison.verdict == "not judged"
    assert "it takes 3 further runs of one stage on one host, there is 1" in one.comparison.reason
    assert one.hint is not None
    assert "--runs" in one.hint
    assert found.facts.rows[0].noise is None


def test_the_noise_between_sessions_is_measured_from_the_runs_there_are(folder: Path) -> None:
    found = pgdyno.compare(
        f"{folder / '1.sqlite'}:tuned", f"{folder / '5.sqlite'}:tuned", runs=folder
    )
    one, noise = only(found), found.facts.rows[0].noise

    assert noise is not None
    assert noise.runs == 4, "stages share their run's session, and what is asked about is no noise"
    assert noise.freedom == 3
    assert one.comparison.low is not None
    assert one.comparison.low < 1 < (one.comparison.high or 0)
    assert one.comparison.verdict == "undecided"


def test_a_large_difference_of_two_days_is_found(folder: Path, tmp_path: Path) -> None:
    slow = session(tmp_path, 6, 0.6)
    one = only(pgdyno.compare(f"{folder / '3.sqlite'}:tuned", f"{slow}:tuned", runs=folder))

    assert one.comparison.verdict == "worse"
    assert one.comparison.high is not None
    assert one.comparison.high < 0.75


def test_copies_of_a_run_tell_nothing_more(folder: Path, tmp_path: Path) -> None:
    for name in "abc":
        shutil.copy(folder / "1.sqlite", tmp_path / f"{name}.sqlite")
    shutil.copy(folder / "2.sqlite", tmp_path / "2.sqlite")
    one = only(
        pgdyno.compare(f"{tmp_path / 'a.sqlite'}:tuned", f"{tmp_path / '2.sqlite'}:tuned",
                       runs=tmp_path)
    )  # fmt: skip
    assert "there is 1" in one.comparison.reason

    with pytest.raises(PlanError, match="the same stage of one run"):
        pgdyno.compare(f"{tmp_path / 'a.sqlite'}:tuned", f"{tmp_path / 'b.sqlite'}:tuned")


def test_another_load_or_another_way_to_measure_is_not_judged(folder: Path, tmp_path: Path) -> None:
    stages = tuple(
        replace(one, stage=replace(one.stage, workload=replace(one.stage.workload, connections=64)))
        for one in CHARACTERS
    )
    other = write_miniature(tmp_path / "o.sqlite", days=6, invalid=(), characters=stages)
    one = only(pgdyno.compare(f"{folder / '1.sqlite'}:tuned", f"{other}:tuned", runs=folder))

    assert one.comparison.verdict == "not judged"
    assert "connections (8 and 64)" in one.comparison.reason


def in_two_parts(path: Path, share: Share, servers: tuple[str, ...]) -> Path:
    """The same run, as if two servers, or two databases of one, had had a part of the load each."""
    with RunFile.append(path) as run:
        info = run.info()
        assert info.plan is not None
        target = replace(info.plan.target, servers=servers, share=share)
        stages = tuple(replace(one, workload=one.workload.over(2, share))
                       for one in info.plan.stages)  # fmt: skip
        run.put_found("info", replace(info, plan=replace(info.plan, target=target, stages=stages)))
    return path


def test_a_load_over_several_servers_is_not_that_of_one(folder: Path, tmp_path: Path) -> None:
    """Sharded, something else is asked for; and the noise of one server is not that of two."""
    names = ("host=a", "host=b")
    sharded = in_two_parts(session(tmp_path, 6), "block", names)
    tenants = in_two_parts(session(tmp_path, 7), "alike", names)
    databases = in_two_parts(session(tmp_path, 8), "alike", ())

    found = only(pgdyno.compare(f"{folder / '1.sqlite'}:tuned", f"{sharded}:tuned", runs=folder))
    assert found.comparison.verdict == "not judged"
    assert "blocks of the warehouses (1 and 2) and servers (1 and 2)" in found.comparison.reason
    of_tenants = only(pgdyno.compare(f"{databases}:tuned", f"{tenants}:tuned")).differences
    assert [(one.what, one.values) for one in of_tenants] == [("servers", ("1", "2"))]


def beside_another(path: Path, version: str, work_mem: str) -> Path:
    """The same run, as if a second server of this kind had had a part of the load."""
    both = over_two()
    first, second = both.servers
    second = replace(second, server=version, configured={"work_mem": work_mem})
    with RunFile.append(path) as run:
        for trial in run.trials():
            assert trial.result is not None
            result = replace(trial.result, parts=both.parts, servers=(first, second))
            run.put_trial(replace(trial, result=result))
    return path


def test_what_other_servers_have_otherwise_is_told(tmp_path: Path) -> None:
    one = beside_another(session(tmp_path, 1), "PostgreSQL 18.5", "4MB")
    other = beside_another(session(tmp_path, 2), "PostgreSQL 18.6", "8MB")

    found = only(pgdyno.compare(f"{one}:tuned", f"{other}:tuned")).differences

    assert {(line.group, line.what, line.values) for line in found} == {
        ("build", "server 2", ("PostgreSQL 18.5", "PostgreSQL 18.6")),
        ("settings", "work_mem", ("not set; 4MB on server 2", "not set; 8MB on server 2")),
    }


def test_years_apart_is_more_than_the_noise_has_seen(folder: Path, tmp_path: Path) -> None:
    late = session(tmp_path, 800, 1.3)
    one = only(pgdyno.compare(f"{folder / '1.sqlite'}:tuned", f"{late}:tuned", runs=folder))

    assert one.comparison.verdict == "not judged"
    assert "what changes in between is not in it" in one.comparison.reason
    for days in (801, 802, 803):
        session(tmp_path, days)
    lately = only(pgdyno.compare(f"{folder / '1.sqlite'}:tuned", f"{late}:tuned", runs=tmp_path))
    assert lately.comparison.verdict != "not judged"


def test_failed_trials_are_no_proof_in_favour(folder: Path, tmp_path: Path) -> None:
    fast = session(tmp_path, 6, 1.8, failed=(2,))
    one = only(pgdyno.compare(f"{folder / '1.sqlite'}:tuned", f"{fast}:tuned", runs=folder))

    assert one.comparison.verdict == "undecided"
    assert "trials failed" in one.comparison.reason


def test_whole_run_files_are_compared_stage_by_stage(folder: Path) -> None:
    found = pgdyno.compare(folder / "1.sqlite", folder / "2.sqlite")

    assert [[side.stage for side in row.sides] for row in found.facts.rows] == [
        ["initdb"] * 2, ["tuned"] * 2, ["async-commit"] * 2,
    ]  # fmt: skip


def test_a_result_of_another_tool_has_no_verdict_and_a_ratio_only_if_asked(folder: Path) -> None:
    subjects = (f"{folder / '1.sqlite'}:tuned", FOLDER / "hammerdb-4.9-cli.txt")
    plain = pgdyno.compare(*subjects)
    assert plain.facts.ratios == ()
    assert plain.facts.rows[0].against == ()
    assert "NOPM 69,200 a minute" in plain.text()

    asked = pgdyno.compare(*subjects, ratio="nopm_committed")
    (ratio,) = asked.facts.ratios
    assert ratio.ratio == pytest.approx(69_200 / ratio.values[0])
    told = {one.what: one.values for one in ratio.differences}
    assert told["warehouses"] == ("10", "800")
    assert told["tool"] == ("pgdyno", "HammerDB")
    with pytest.raises(PlanError, match="has no tps"):
        pgdyno.compare(*subjects, ratio="tps")


def test_a_console_of_benchmarksql_has_a_figure_in_common_with_ours(folder: Path) -> None:
    """It tells New-Orders however they ended, and ours are counted in the same way for it."""
    run, console = folder / "1.sqlite", FOLDER / "benchmarksql-5.0-console-oracle.txt"
    (ratio,) = pgdyno.compare(f"{run}:tuned", console, ratio="nopm_ended").facts.ratios
    told = {one.what: one.values for one in ratio.differences}
    with RunFile.read(run) as file:
        ended = [
            60 * (kind.window.succeeded + kind.window.rolled_back + kind.window.failed)
            / trial.result.window_s
            for trial in file.trials() if trial.stage == "tuned" and trial.result
            for kind in trial.result.kinds if kind.kind == "new_order"
        ]  # fmt: skip

    assert ratio.values == (pytest.approx(median(ended)), 118204.31)
    assert told["New-Orders in the mix, %"] == ("45", "40")
    assert told["Payments in the mix, %"] == ("43", "36")
    assert told["database"] == ("PostgreSQL 18.6", "oracle")
    assert "keying and think times" not in told  # neither waits


def test_results_of_other_tools_alone_are_laid_beside_each_other() -> None:
    found = pgdyno.compare(FOLDER / "pgbench-18-tpcb.txt", FOLDER / "pgbench-15-tpcb.txt",
                           ratio="tps")  # fmt: skip
    assert found.facts.rows == ()
    assert len(found.facts.ratios) == 1


def test_results_of_several_files_are_checked_beside_each_other() -> None:
    names = ("pgbench-18-tpcb.txt", "pgbench-18-select-connect.txt")
    one, other = pgdyno.compare(*(FOLDER / name for name in names)).facts.imported
    assert [warned(result, "T10").outcome for result in (one, other)] == ["fires", "fires"]
    # Of a file's results one may be chosen: what the others say is then not beside it.
    pages = FOLDER / "field-full-page-writes.txt"
    alone, _ = pgdyno.compare(f"{pages}:1", FOLDER / names[0]).facts.imported
    assert warned(alone, "E6").outcome == "fires"


def test_a_drop_below_the_limit_fails_the_command_of_ci(folder: Path, tmp_path: Path) -> None:
    slow, base = session(tmp_path, 6, 0.6), folder / "3.sqlite"
    sides = (f"{base}:tuned", f"{slow}:tuned")
    bad = pgdyno.compare(*sides, runs=folder, fail_below=0.95)
    (gate,) = bad.facts.gates
    assert gate.fails
    assert bad.falls_below
    assert gate.least_found is not None
    assert gate.least_found < 0.95

    shown = CliRunner().invoke(
        app, ["compare", *sides, "--runs", str(folder), "--fail-below", "0.95"]
    )
    assert shown.exit_code == 1
    assert "lies below 0.95" in bad.text()


def test_a_stage_at_its_level_is_not_failed_and_each_says_what_would_be_found(folder: Path) -> None:
    found = pgdyno.compare(folder / "1.sqlite", folder / "5.sqlite", runs=folder, fail_below=0.9)

    assert [one.stage for one in found.facts.gates] == ["initdb", "tuned", "async-commit"]
    assert not found.falls_below
    assert found.text().count("would be found in four of five cases") == 3


def test_stages_of_one_run_are_held_against_a_limit_by_their_rounds(folder: Path) -> None:
    run = folder / "1.sqlite"
    found = pgdyno.compare(f"{run}:async-commit", f"{run}:initdb", fail_below=0.95)
    (gate,) = found.facts.gates

    assert gate.fails
    assert (gate.stage, gate.against, gate.least_found) == ("initdb", "async-commit", None)
    better = pgdyno.compare(f"{run}:initdb", f"{run}:async-commit", fail_below=0.95)
    assert better.facts.gates[0].fails is False


@pytest.mark.parametrize(
    ("subjects", "limit", "said"),
    [
        (("1.sqlite:tuned", "2.sqlite:tuned"), 0.95, "the noise between sessions is not known"),
        (("1.sqlite:tuned", "2.sqlite:tuned"), 1.5, "is 1.5, above 0 and at most 1 is allowed"),
        (("1.sqlite:tuned", "2.sqlite:tuned"), float("nan"), "above 0 and at most 1 is allowed"),
        (("1.sqlite:tuned", str(FOLDER / "hammerdb-4.9-cli.txt")), 0.95, "no stage is compared"),
    ],
)
def test_nothing_is_passed_that_is_not_known(
    folder: Path, subjects: tuple[str, ...], limit: float, said: str
) -> None:
    with pytest.raises(PlanError, match=said):
        pgdyno.compare(*(folder / one for one in subjects), fail_below=limit)


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        (lambda runs: (f"{runs / '1.sqlite'}:tuned",), PlanError, "two are needed"),
        (lambda runs: (f"{runs / '1.sqlite'}:none", runs / "2.sqlite"), PgdynoError,
         r"1\.sqlite is called 'none', there are initdb, tuned and async-commit"),
        (lambda runs: (runs / "none.sqlite", runs / "1.sqlite"), StoreError, "none.sqlite"),
        (lambda _: (f"{FOLDER / 'hammerdb-4.9-cli.txt'}:7",) * 2, PlanError, "has no result '7'"),
        (lambda _: (), PlanError, "nothing to compare"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(
    folder: Path,
    asked: Callable[[Path], tuple[str | Path, ...]],
    error: type[PgdynoError],
    said: str,
) -> None:
    with pytest.raises(error, match=said):
        pgdyno.compare(*asked(folder))


def test_no_ratio_is_asked_for_where_no_other_tool_is(folder: Path) -> None:
    with pytest.raises(PlanError, match="no result of another tool"):
        pgdyno.compare(folder / "1.sqlite", ratio="tps")
    with pytest.raises(PlanError, match="is no folder"):
        pgdyno.compare(folder / "1.sqlite", runs=folder / "1.sqlite")


def test_json_is_whole_and_the_table_has_a_row_for_each_side(folder: Path) -> None:
    found = pgdyno.compare(folder / "1.sqlite", folder / "2.sqlite", runs=folder)
    plain = json.loads(found.json())

    assert plain["schema"] == "pgdyno.compare/1"
    assert len(plain["rows"]) == 3
    assert "NaN" not in found.json()
    rows = list(found.table().rows())
    assert len(rows) == 6
    assert [row["side"] for row in rows] == [0, 1] * 3
    assert rows[1]["how"] == "unpaired"


def with_plans(path: Path, shapes: Mapping[str, Mapping[str, str]]) -> Path:
    """The run, with what each stage's windows began and ended with."""
    names = ("statement", "kind", "shape", "error")
    columns = tuple(SnapshotColumn(name, "", "label") for name in names)
    with RunFile.append(path) as file:
        for trial in file.trials():
            rows: tuple[dict[str, Cell], ...] = tuple(
                {"statement": statement, "kind": "", "shape": shape, "error": ""}
                for statement, shape in shapes.get(trial.stage, {}).items()
            )
            assert trial.result is not None
            begin_ns, end_ns = trial.result.window_ns
            ends: list[tuple[Literal["begin", "end"], int]] = [("begin", begin_ns), ("end", end_ns)]
            seen = [SnapshotRows("plans", at, at_ns, columns, rows) for at, at_ns in ends]
            file.put_trial(trial, snapshots=seen if rows else ())
    return path


def test_plans_of_statements_that_both_know_are_told_where_they_differ(tmp_path: Path) -> None:
    both = {"no_stock": "Index Scan stock", "no_item": "Index Scan item"}
    path = with_plans(
        session(tmp_path, 1),
        {"initdb": both, "tuned": {**both, "no_stock": "Seq Scan stock", "pay": "Result"}},
    )
    found = only(pgdyno.compare(f"{path}:initdb", f"{path}:tuned"))

    (plan,) = [one for one in found.differences if one.group == "plans"]
    assert (plan.what, plan.values) == ("no_stock", ("Index Scan stock", "Seq Scan stock"))
    found = only(pgdyno.compare(f"{path}:initdb", f"{path}:async-commit"))
    assert [one for one in found.differences if one.group == "plans"] == []


def test_wal_stands_beside_each_other_by_kind_of_record(tmp_path: Path) -> None:
    path, bare = session(tmp_path, 1), session(tmp_path, 2)
    images = {"initdb": 450, "tuned": 900}
    with RunFile.append(path) as file:
        for trial in file.trials():
            if trial.result is not None and trial.stage in images:
                kinds = (WalKind("Heap", "UPDATE", 100, 100 * images[trial.stage], 50, 4_500),)
                wal = WindowWal(1.0, 100_000, 600, 90_000, 50, 45_000, 100, kinds, ())
                file.put_trial(replace(trial, result=replace(trial.result, wal=wal)))
    found = pgdyno.compare(f"{path}:initdb", f"{path}:tuned", f"{bare}:tuned")
    (row,) = found.facts.rows

    assert [side.wal_kinds for side in row.sides] == [
        {"Heap UPDATE": 450.0}, {"Heap UPDATE": 900.0}, {},
    ]  # fmt: skip
    (line,) = [one.split() for one in found.lines() if "Heap UPDATE" in one]
    assert line == ["Heap", "UPDATE", "450", "900", "–", "×2.000", "–"]


def test_a_ratio_of_few_bytes_stands_beside_digits_that_have_it() -> None:
    """`0`, `0` and ×2.968 stood in a line, and `1`, `0` and ×0.894."""
    kinds = [
        (0.15, "0.15"),
        (0.55, "0.55"),
        (9.96, "10"),
        (0.0, "0"),
        (12.4, "12"),
        (1296, "1,296"),
    ]
    assert [some_bytes(value) for value, _ in kinds] == [text for _, text in kinds]


def test_functions_of_profiles_stand_beside_each_other(tmp_path: Path) -> None:
    path, bare = session(tmp_path, 1), session(tmp_path, 2)
    add_profiles(path)
    found = pgdyno.compare(f"{path}:initdb", f"{path}:tuned", f"{bare}:tuned")
    (row,) = found.facts.rows
    first, second, third = (side.functions for side in row.sides)

    assert first
    assert second
    assert third is None
    heavy = "backend: _bt_compare (postgres)"
    profiles = pgdyno.Run(path).facts.profiles
    assert profiles is not None
    (told,) = [one for one in profiles.heavy if f"{one.role}: {one.name} ({one.module})" == heavy]
    assert (first[heavy], second[heavy]) == (told.shares[0].own, told.shares[1].own)
    (line,) = [one for one in found.lines() if heavy in one]
    assert line.endswith("–")
