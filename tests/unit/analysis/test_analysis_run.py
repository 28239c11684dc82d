"""Facts are those of the run file: nothing lost, nothing used that must not be used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from pgdyno.analysis.facts import Facts, StageFacts
from pgdyno.analysis.run import analyse
from pgdyno.model.build import Recipe
from pgdyno.model.fixture_shape import FixtureShape
from pgdyno.model.run import TrialState
from pgdyno.report import markdown
from pgdyno.store import RunFile
from tests.data.builds import a_build
from tests.data.miniature import CHARACTERS, WINDOW_S, write_miniature
from tests.unit.conftest import analysed


def stage(facts: Facts, name: str) -> StageFacts:
    return next(stage for stage in facts.stages if stage.name == name)


def test_medians_are_those_of_the_finished_trials(tmp_path: Path) -> None:
    with RunFile.read(write_miniature(tmp_path / "run.sqlite")) as run:
        facts = analyse(run)
        finished = [t.result for t in run.finished() if t.stage == "tuned" and t.result]

    tuned = stage(facts, "tuned")
    assert tuned.nopm is not None
    assert tuned.tpm_total is not None
    assert sorted(tuned.nopm.rounds) == sorted(result.nopm for result in finished)
    assert tuned.nopm.median == median(result.nopm for result in finished)
    assert tuned.tpm_total.median == median(result.tpm_total for result in finished)


def test_an_invalid_trial_is_told_and_not_used(facts: Facts) -> None:
    (left_out,) = facts.not_finished
    assert (left_out.number, left_out.stage, left_out.state) == (5, "async-commit", "invalid")
    assert left_out.reason == "consistency condition 3 of clause 3.3.2 is violated by 2 rows"

    async_commit = stage(facts, "async-commit")
    assert async_commit.rounds == (1, 3)
    assert async_commit.nopm is not None
    assert left_out.nopm not in async_commit.nopm.rounds
    assert async_commit.to_first is not None
    assert async_commit.to_first.rounds == 2
    assert facts.conditions[2].violations == ("trial 5: 2 violations, e.g. (1, 4, 3001)",)


def test_planted_speedups_lie_in_their_intervals(facts: Facts) -> None:
    base = CHARACTERS[0].nopm
    for character in CHARACTERS[1:]:
        compared = stage(facts, character.stage.name).to_first
        assert compared is not None
        assert compared.low is not None
        assert compared.high is not None
        # The made-up dips of checkpoints and the Poisson noise move a stage by some percent.
        assert compared.low * 0.95 <= character.nopm / base <= compared.high * 1.05
        # One of its three trials was invalid, and two cannot outweigh that.
        invalid = character.stage.name == "async-commit"
        assert compared.verdict == ("undecided" if invalid else "better")
        assert compared.failures == ("1 of 3 trials of async-commit failed" if invalid else None)


def test_costs_are_counters_divided_by_transactions(facts: Facts) -> None:
    costs = stage(facts, "tuned").per_transaction
    assert costs["wal_bytes"].median == pytest.approx(3_900)
    assert costs["server_cpu_us"].median == pytest.approx(1_050)
    assert costs["read_bytes"].median == pytest.approx(310)
    tuned = stage(facts, "tuned").tpm_total
    assert tuned is not None
    cpu_us = [8.4e6 / (tpm / 60 * WINDOW_S) for tpm in tuned.rounds]
    assert costs["client_cpu_us"].rounds == pytest.approx(cpu_us)


def test_merged_latency_is_that_of_the_slowest_and_fastest_rounds(facts: Facts) -> None:
    for of in facts.stages:
        line = of.percentiles("new_order")
        assert line is not None
        assert 0 < line.p50_ns < line.p90_ns < line.p95_ns < line.p99_ns < line.p999_ns
        assert line.p999_ns <= line.max_ns


def test_time_is_counted_once(facts: Facts) -> None:
    phases = facts.phases
    assert "window" not in phases.other_s, "the window is a part of driving"
    told = phases.measuring_s + sum(phases.other_s.values()) + phases.between_s
    assert told == pytest.approx(phases.total_s)
    assert phases.stopped_s == 0, "nothing was interrupted"


def test_the_time_for_which_a_run_was_stopped_is_told_apart(tmp_path: Path) -> None:
    """Resumed three minutes later, it seemed to have been busy between its trials."""
    path = write_miniature(tmp_path / "run.sqlite", invalid=())
    with RunFile.append(path) as run:
        whole = analyse(run)
        broken = next(one for one in run.trials() if one.number == 5)
        assert broken.started_ns is not None
        run.put_trial(replace(broken, state=TrialState.RUNNING, ended_ns=None, result=None))
        run.begin_again([5])
        pause_ns = 3_600 * 10**9
        for one in run.trials():
            if one.number == 5:
                again = replace(broken, started_ns=broken.started_ns + pause_ns, attempt=2)
            elif one.number > 5 and one.started_ns is not None and one.ended_ns is not None:
                again = replace(one, started_ns=one.started_ns + pause_ns,
                                ended_ns=one.ended_ns + pause_ns)  # fmt: skip
            else:
                continue
            run.put_trial(replace(again, replaced_by=None))
        facts = analyse(run)
    assert facts.phases.stopped_s == pytest.approx(3_600)
    assert facts.phases.between_s == pytest.approx(whole.phases.between_s)
    assert facts.phases.total_s == pytest.approx(whole.phases.total_s + 3_600)
    assert "interrupted: until the next trial began | 1 h 00 min |" in markdown.render(facts)


def test_a_run_without_a_finished_trial_has_a_report(tmp_path: Path) -> None:
    facts = analysed(tmp_path / "run.sqlite", planned=tuple(range(1, 10)), invalid=())
    assert facts.answer.finding == "No trial finished, so there is no answer."
    assert facts.trials_finished == 0
    assert len(facts.not_finished) == 9
    assert all(stage.nopm is None and not stage.latency for stage in facts.stages)


def test_a_failed_trial_has_a_reason_and_no_numbers(tmp_path: Path) -> None:
    facts = analysed(tmp_path / "run.sqlite", failed=(4,), invalid=())
    (failed,) = facts.not_finished
    assert failed.state == "failed"
    assert failed.reason == "server went away: 57P02 after 12 s"
    assert failed.nopm is None
    assert "1 of 9 trials failed, which counts against `tuned`" in facts.answer.limits


def test_identical_stages_give_the_noise_floor(tmp_path: Path) -> None:
    twin = replace(
        CHARACTERS[0],
        stage=replace(CHARACTERS[0].stage, name="initdb-twin", twin_of="initdb", afresh=True),
    )
    facts = analysed(
        tmp_path / "run.sqlite", characters=(*CHARACTERS[:2], twin), invalid=(), aa=True, rounds=5
    )
    assert facts.noise_floor is not None
    assert facts.noise_floor.sd is not None
    assert 0.001 < facts.noise_floor.sd < 0.1
    assert "identical stages differ" in facts.noise_floor.sentence
    last = facts.stages[2].to_first
    assert last is not None
    assert last.verdict == "undecided"
    assert last.rounds_needed is None, "no number of rounds decides between equal stages"


def test_one_stage_is_compared_with_nothing(tmp_path: Path) -> None:
    facts = analysed(tmp_path / "run.sqlite", characters=CHARACTERS[:1], invalid=())
    assert facts.first.to_first is None
    assert "nothing to compare" in facts.answer.finding


def test_builds_of_stages_are_told(tmp_path: Path) -> None:
    build = a_build("abcd", "fast", Recipe("clang", "3"))
    own, ours = CHARACTERS[0], replace(CHARACTERS[1].stage, build=build)
    path = write_miniature(
        tmp_path / "run.sqlite", invalid=(), characters=(own, replace(CHARACTERS[1], stage=ours))
    )
    with RunFile.append(path) as run:
        other = replace(run.fixtures()[0], ident="0th3r", shape=FixtureShape(postgres_major=15))
        run.put_fixture(other)
        facts = analyse(run)
        text = markdown.render(analyse(run))

    told = "build fast: PostgreSQL 15.18, clang -O3 (clang 12)"
    assert [one.build for one in facts.stages] == [None, told]
    assert facts.versions == ("PostgreSQL 18.6", "PostgreSQL 15.18")
    assert facts.builds["fast"]["recipe.optimise"] == "3"
    assert facts.fixture["ident"] == "f1x7ure0"
    assert [one["ident"] for one in facts.further_fixtures] == ["0th3r"]
    assert facts.conditions[0].checks == 2 + 6, "two fixtures, six trials"
    for line in ("PostgreSQL 18.6 and PostgreSQL 15.18 ·", f"It runs on {told}.", "The build fast.",
                 "Another fixture, for builds that store otherwise."):  # fmt: skip
        assert line in text


def test_an_installation_that_no_stage_runs_on_is_not_told(tmp_path: Path) -> None:
    build = a_build("abcd")
    characters = tuple(replace(one, stage=replace(one.stage, build=build)) for one in CHARACTERS)
    facts = analysed(tmp_path / "run.sqlite", characters=characters)

    assert facts.build == {}
    assert facts.versions == ("PostgreSQL 15.18",)
    assert list(facts.builds) == ["abcd"]
    assert all(one.what != "build" for one in facts.differences)
