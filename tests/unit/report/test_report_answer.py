"""The two sentences say what the comparisons say, for every way it can come out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pgdyno.model.settings import Rung
from pgdyno.model.workload import Tpcc
from pgdyno.report.facts import Facts
from tests.data.miniature import CHARACTERS, MIX, WORKLOAD
from tests.unit.report.conftest import analysed

INITDB, TUNED, ASYNC = CHARACTERS


def test_the_best_safe_stage_comes_before_the_best_unsafe_one(facts: Facts) -> None:
    finding = facts.answer.finding
    assert finding.startswith("`tuned` gives ×1.")
    assert "3 paired rounds" in finding
    assert "on rung D0, where nothing is lost; `async-commit` gives ×1." in finding
    assert finding.endswith("but on rung D2, where a crash may lose the last commits.")


def test_no_better_stage(tmp_path: Path) -> None:
    slower = replace(TUNED, nopm=INITDB.nopm * 0.7)
    facts = analysed(tmp_path / "run.sqlite", characters=(INITDB, slower), invalid=())
    assert facts.answer.finding.startswith(
        "No stage is shown to be better than `initdb`: `tuned` is worse at ×0."
    )


def test_undecided_names_the_rounds_it_needs(tmp_path: Path) -> None:
    noisy = replace(TUNED, nopm=INITDB.nopm * 0.95, noise=0.05)
    facts = analysed(tmp_path / "run.sqlite", characters=(INITDB, noisy), invalid=())
    compared = facts.stages[1].to_first
    assert compared is not None
    assert compared.verdict == "undecided"
    assert f"`tuned` is undecided, needs about {compared.rounds_needed} rounds at" in (
        facts.answer.finding
    )


def test_only_a_lower_rung_is_better(tmp_path: Path) -> None:
    risky = replace(TUNED, stage=replace(TUNED.stage, rung=Rung.D4, rung_reason="fsync = off"))
    facts = analysed(tmp_path / "run.sqlite", characters=(INITDB, risky), invalid=())
    assert facts.answer.finding.startswith("Only on a lower rung is a stage better: `tuned`")
    assert "a crash of the machine may tear pages" in facts.answer.finding


def test_limits_name_what_weakens_the_claim(facts: Facts) -> None:
    limits = facts.answer.limits
    assert "only 2 paired rounds" in limits
    assert "1 of 9 trials invalid and left out" in limits
    assert "inputs out of their band (rolled back New-Orders)" in limits


def test_many_clean_rounds_have_fewer_limits(tmp_path: Path, facts: Facts) -> None:
    many = analysed(tmp_path / "run.sqlite", rounds=6, invalid=())
    assert "paired round" not in many.answer.limits
    assert "left out" not in many.answer.limits
    assert len(many.answer.limits) < len(facts.answer.limits)


def test_each_load_is_answered_for_itself(tmp_path: Path) -> None:
    other = replace(WORKLOAD, tpcc=Tpcc(10, mix={**MIX, "payment": 1.0}))
    paying, twice = (
        replace(INITDB, nopm=nopm, stage=replace(INITDB.stage, name=name, workload=other))
        for name, nopm in (("paying", 60_000), ("twice", 120_000))
    )
    facts = analysed(tmp_path / "run.sqlite", characters=(INITDB, TUNED, paying, twice), invalid=())

    assert [facts.base_of(stage).name for stage in facts.stages] == [
        "initdb", "initdb", "paying", "paying"
    ]  # fmt: skip
    assert facts.base == "the first of its load"
    tuned, doubled = facts.answer.finding.split(". ", 1)
    assert tuned.startswith("`tuned` gives ×1.")
    assert "of `initdb`" in tuned
    assert doubled.startswith("`twice` gives ×")
    assert "of `paying`" in doubled
