"""A folder of runs in the order of time: intervals, changes of level, a limit for CI."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import pgdyno
from pgdyno.analysis.compared_stages import known_runs, levels
from pgdyno.analysis.stored import Stored
from pgdyno.model.errors import PlanError, StoreError
from pgdyno.model.units import moment_text
from pgdyno.report.history import lines
from pgdyno.store.run_file import RunFile
from tests.data.miniature import CHARACTERS, write_miniature

PGBENCH = "pgbench (PostgreSQL) 18.6"
FACTORS = (1.0, 1.02, 0.99, 1.01, 0.98, 0.8, 0.79, 0.81, 0.8, 0.78)


def a_run(folder: Path, days: int, factor: float, **more: object) -> Path:
    """A run of one stage."""
    stages = (replace(CHARACTERS[0], nopm=CHARACTERS[0].nopm * factor),)
    options: dict[str, object] = {"invalid": (), "characters": stages} | more
    path = folder / f"{days:02}.sqlite"
    return write_miniature(path, days=days, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten days of one stage; since the sixth it is slower. Beside them what is no run."""
    found = tmp_path_factory.mktemp("runs")
    for days, factor in enumerate(FACTORS, 1):
        a_run(found, days, factor)
    shutil.copy(found / "01.sqlite", found / "copy.sqlite")
    (found / "notes.sqlite").write_text("mine")
    return found


def test_one_line_a_run_in_the_order_of_time(folder: Path) -> None:
    found = pgdyno.history(folder)

    assert [line.file for line in found.facts.lines] == [f"{n:02}.sqlite" for n in range(1, 11)]
    assert {line.series for line in found.facts.lines} == {1}
    assert all(line.low is not None and line.p99_ns for line in found.facts.lines)
    assert found.facts.gates == ()
    assert not found.falls_below
    assert len(found.facts.left_out) == 2
    assert len(list(found.table().rows())) == 10
    assert json.loads(found.json())["schema"] == "pgdyno.history/1"


def test_a_change_of_level_stands_where_it_is(folder: Path) -> None:
    (change,) = pgdyno.history(folder).facts.changes

    assert change.line == 5
    assert change.ratio == pytest.approx(0.8, rel=0.05)
    assert "another level from here on" in pgdyno.history(folder).text()


def test_what_a_change_of_level_did_is_no_noise_and_hides_no_drop(folder: Path) -> None:
    found = pgdyno.history(folder, fail_below=0.95, against=folder / "01.sqlite")
    (gate,) = found.facts.gates

    assert gate.fails
    assert gate.ratio == pytest.approx(0.78, rel=0.05)
    assert gate.least_found > 0.8
    line = found.facts.lines[0]
    assert (line.high or 0) / (line.low or 1) < 1.2


def test_a_line_has_the_confidence_and_the_gravest_doubt_of_its_report(tmp_path: Path) -> None:
    a_run(tmp_path, 1, 1.0, failed=(2,))
    a_run(tmp_path, 2, 1.0, rounds=2)
    lines = pgdyno.history(tmp_path).facts.lines
    answers = [pgdyno.Run(tmp_path / f"0{day}.sqlite").facts.answer for day in (1, 2)]

    assert [line.confidence for line in lines] == [one.confidence for one in answers]
    assert [line.doubt for line in lines] == [
        "1 of 3 trials failed, which counts against `initdb`, and 4 more",
        "inputs out of their band (rolled back New-Orders), and 3 more",
    ]
    assert "only 2 rounds" in [one.text for one in answers[1].doubts]
    assert (
        "low: inputs out of their band (rolled back New-Orders), and 3 more"
        in pgdyno.history(tmp_path).text()
    )


def test_no_line_is_wider_for_its_doubt_and_stages_share_theirs(folder: Path) -> None:
    """A terminal went on with a doubt under the times."""
    facts = pgdyno.history(folder).facts
    ours = replace(facts.lines[0], doubt="no whole checkpoint cycles, and 4 more", file="a.sqlite")
    tuned = replace(ours, stage="tuned")
    for second, told in (
        (tuned, ["    low: no whole checkpoint cycles, and 4 more"]),
        (
            replace(tuned, doubt="only 2 rounds"),
            [f"    {ours.stage}, low: no whole checkpoint cycles, and 4 more",
             "    tuned, low: only 2 rounds"],
        ),
    ):  # fmt: skip
        pair = (replace(ours, confidence="low"), replace(second, confidence="low"))
        printed = list(lines(replace(facts, changes=(), lines=pair)))
        at = printed.index("    a.sqlite") + 1
        assert printed[at : at + len(told)] == told
        assert not any("cycles" in text for text in printed[:at])


def test_of_a_run_that_was_resumed_no_earlier_copy_is_told(tmp_path: Path) -> None:
    """The first by name was, and what had been measured since was `left out` as a copy."""
    for day in (1, 2, 3):
        a_run(tmp_path, day, 1.0)
    (tmp_path / "01.sqlite").rename(tmp_path / "resumed.sqlite")
    a_run(tmp_path, 1, 1.0, planned=(2, 3))
    found = pgdyno.history(tmp_path).facts

    assert [(one.file, one.rounds) for one in found.lines] == [
        ("resumed.sqlite", 3), ("02.sqlite", 3), ("03.sqlite", 3),
    ]  # fmt: skip
    (copy,) = found.left_out
    assert copy.startswith("01.sqlite is a copy of run ")

    runs = []
    for name in ("01", "resumed"):
        with RunFile.read(tmp_path / f"{name}.sqlite") as run:
            runs += known_runs(Stored(run))
    assert [one.mean.rounds for one in runs] == [1, 3]
    for known in (runs, runs[::-1]):
        assert levels(known) == [[runs[1]]], "the noise between sessions is of what was measured"


def test_the_note_says_of_how_many_runs_an_interval_is(tmp_path: Path) -> None:
    for days, known in ((1, False), (2, False), (3, True)):
        a_run(tmp_path, days, FACTORS[days])
        found = pgdyno.history(tmp_path)
        assert all((line.low is not None) == known for line in found.facts.lines)
        note = "An interval takes 3 or more runs of one stage, its own among them."
        assert (note in found.text()) != known


def test_a_drop_below_the_limit_fails_and_a_stage_at_its_level_does_not(
    folder: Path, tmp_path: Path
) -> None:
    before = [folder / f"{number:02}.sqlite" for number in range(1, 6)]
    for path in before:
        shutil.copy(path, tmp_path / path.name)
    good = pgdyno.history(tmp_path, fail_below=0.9, against=before[0])
    (gate,) = good.facts.gates
    assert gate.fails is not True
    assert gate.run.endswith("-5"), "the newest"
    assert gate.least_found < 0.9

    a_run(tmp_path, 6, 0.6)
    bad = pgdyno.history(tmp_path, fail_below=0.9, against=before[0])
    assert bad.falls_below
    assert "lies below 0.9" in bad.text()


def test_a_damaged_run_of_a_year_is_named_and_left_out_but_of_no_limit(tmp_path: Path) -> None:
    for days in range(1, 6):
        a_run(tmp_path, days, FACTORS[days - 1])
    cut = tmp_path / "05.sqlite"
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    found = pgdyno.history(tmp_path)

    assert [line.file for line in found.facts.lines] == [f"{n:02}.sqlite" for n in range(1, 5)]
    (said,) = found.facts.left_out
    assert "05.sqlite cannot be read" in said
    with pytest.raises(StoreError, match=r"05\.sqlite cannot be read"):  # it may be the newest
        pgdyno.history(tmp_path, fail_below=0.9, against=tmp_path / "01.sqlite")


def test_what_cannot_be_told_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="go together"):
        pgdyno.history(folder, fail_below=0.9)
    with pytest.raises(PlanError, match="above 0 and at most 1"):
        pgdyno.history(folder, fail_below=1.2, against=folder / "01.sqlite")
    with pytest.raises(PlanError, match="is no folder"):
        pgdyno.history(tmp_path / "none")
    with pytest.raises(PlanError, match="holds no run of a plan"):
        pgdyno.history(tmp_path)
    a_run(tmp_path, 1, 1.0)
    a_run(tmp_path, 2, 1.0)
    with pytest.raises(PlanError, match="the noise between sessions is not known") as caught:
        pgdyno.history(tmp_path, fail_below=0.9, against=tmp_path / "01.sqlite")
    assert "into one folder, which `pgdyno compare` takes as --runs" in str(caught.value.hint)


def test_a_run_without_a_finished_round_has_no_confidence(tmp_path: Path) -> None:
    a_run(tmp_path, 1, 1.0, rounds=1, planned=(1,))
    (line,) = pgdyno.history(tmp_path).facts.lines

    assert line.throughput is None
    assert "no round finished" in pgdyno.history(tmp_path).text()
    assert line.confidence not in pgdyno.history(tmp_path).text()


def test_a_twin_is_no_stage_of_its_own(tmp_path: Path) -> None:
    """Its rounds all finished, and the history said that none had."""
    (first,) = CHARACTERS[:1]
    twin = replace(first, stage=replace(first.stage, name="initdb-twin", twin_of="initdb"))
    a_run(tmp_path, 1, 1.0, characters=(first, twin))

    assert [line.stage for line in pgdyno.history(tmp_path).facts.lines] == ["initdb"]
    assert "no round finished" not in pgdyno.history(tmp_path).text()


def test_a_finished_round_of_nothing_is_not_called_unfinished(folder: Path) -> None:
    found = pgdyno.history(folder).facts
    nothing = replace(found.lines[0], throughput=None, low=None, high=None)
    said = "\n".join(lines(replace(found, lines=(nothing,), changes=())))

    assert "no throughput to tell" in said
    assert "no round finished" not in said


def test_a_reader_can_go_on_from_the_lines_of_a_run(folder: Path) -> None:
    facts = pgdyno.history(folder).facts
    printed = list(lines(facts))

    for line in facts.lines:
        (at,) = (number for number, text in enumerate(printed) if text.strip() == line.file)
        assert moment_text(line.started_ns) in printed[at - 1], "right below its line"
    assert "driven by" not in " ".join(printed), "by ours, as usual"
    shared = replace(facts, lines=tuple(replace(one, engine=PGBENCH) for one in facts.lines))
    assert f"All runs were driven by {PGBENCH}." in list(lines(shared))


def test_who_drove_is_told_where_it_differs_and_below_the_line(folder: Path) -> None:
    facts = pgdyno.history(folder).facts
    ours, other, *_ = (replace(one, run="r", file="20261122-222600-demo.sqlite")
                       for one in facts.lines)  # fmt: skip
    mixed = replace(facts, changes=(), lines=(ours, ours, replace(other, engine=PGBENCH)))
    bare = len(list(lines(replace(facts, changes=(), lines=(ours, ours, other)))))
    printed = list(lines(mixed))

    told = [text for text in printed if ours.file in text]
    assert told == [
        f"    {ours.file}, driven by pgdyno",
        f"    {ours.file}, driven by {PGBENCH}",
    ]
    assert len(printed) == bare + 1, "stages of a run that one engine drove share a line"
    long = replace(ours, file=f"20261122-222600-{'demo' * 9}.sqlite")
    apart = list(lines(replace(mixed, lines=(long, replace(other, engine=PGBENCH)))))
    assert f"    {long.file}" in apart
    assert "    driven by pgdyno" in apart
    below = [text for text in (*printed, *apart) if text.startswith("    ")]
    assert max(map(len, below)) <= 80


def test_the_engine_of_a_line_is_that_of_its_stage(tmp_path: Path) -> None:
    first = CHARACTERS[0]
    driven = replace(first.stage, workload=replace(first.stage.workload, engine="pgbench"))
    a_run(tmp_path, 1, 1.0)
    stages = (replace(first, stage=driven),)
    a_run(tmp_path, 2, 1.0, rounds=1, planned=(1,), characters=stages)
    found = pgdyno.history(tmp_path)

    assert [line.engine for line in found.facts.lines] == ["pgdyno", "pgbench"]
    assert "    02.sqlite, driven by pgbench" in found.text().splitlines()
    assert [row["engine"] for row in found.table().rows()] == ["pgdyno", "pgbench"]
