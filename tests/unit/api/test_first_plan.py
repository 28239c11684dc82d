"""Answers to `pgdyno init` that cannot be meant."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pgdyno.api.first_plan import FirstPlan
from pgdyno.api.planning import load_plan
from pgdyno.cli.app import app
from pgdyno.model.errors import PlanError, TargetError


@pytest.mark.parametrize("server", ["embeded", "/usr/lib/postgresql/no-such-version/bin"])
def test_a_server_that_is_neither_is_told_what_it_may_be(server: str) -> None:
    with pytest.raises(PlanError, match="is not embedded, no folder that is there") as caught:
        FirstPlan(server, 1, "wal_buffers=64MB").text()
    assert "Write embedded" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("path", "setting", "plan", "stage"),
    [
        ("runs/night.toml", "synchronous_commit=off", "night", "synchronous_commit-off"),
        ("Mein Plan.toml", "wal_buffers=64MB", "mein-plan", "wal_buffers-64mb"),
        ("_.toml", "work_mem = 64MB", "first", "work_mem-64mb"),
    ],
)
def test_a_plan_and_its_stage_are_named_by_what_was_answered(
    path: str, setting: str, plan: str, stage: str
) -> None:
    made = tomllib.loads(FirstPlan("embedded", 1, setting).text(path))
    assert made["name"] == plan
    assert [one["name"] for one in made["stage"]] == ["baseline", stage]


def test_a_server_is_refused_without_words_of_a_plan_that_nobody_saw() -> None:
    with pytest.raises(TargetError, match=r"^folder /etc holds no postgres"):
        FirstPlan("/etc", 1, "wal_buffers=64MB").text()
    with pytest.raises(TargetError, match=r"^no connection to "):
        FirstPlan("host=/nowhere", 1, "wal_buffers=64MB").text()


def test_what_is_wrong_with_an_answer_is_told_of_the_answer() -> None:
    with pytest.raises(PlanError, match=r"^syncronous_commit = .* did you mean synchronous_commit"):
        FirstPlan("embedded", 1, "syncronous_commit=off").text()


def test_questions_that_nobody_answers_say_how_to_do_without(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["init", str(tmp_path / "first.toml")], input="")
    assert isinstance(done.exception, PlanError)
    assert done.exception.fact == "the input ended before all questions were answered"
    assert "--setting" in (done.exception.hint or "")
    assert not any(tmp_path.iterdir())


def test_a_plan_is_put_there_whole_and_over_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FirstPlan, "text", lambda _self, path: f"# {path}\n")
    path = tmp_path / "first.toml"
    FirstPlan().write(path)
    assert path.read_text() == f"# {path}\n"
    dangling = tmp_path / "link.toml"
    dangling.symlink_to(tmp_path / "elsewhere")
    for taken in (path, dangling):
        with pytest.raises(PlanError, match="exists"):
            FirstPlan().write(taken)
    assert path.read_text() == f"# {path}\n"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["first.toml", "link.toml"]


def test_what_cannot_be_written_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FirstPlan, "text", lambda _self, _path: "")
    (tmp_path / "file").touch()
    with pytest.raises(PlanError, match=r"first\.toml cannot be written: "):
        FirstPlan().write(tmp_path / "file" / "first.toml")


def test_what_the_server_has_already_is_no_trial() -> None:
    with pytest.raises(PlanError, match=r"^synchronous_commit = on is what the server has already"):
        FirstPlan("embedded", 1, "synchronous_commit=on").text()


def test_a_first_look_that_cannot_judge_the_setting_is_written_so() -> None:
    """Four short rounds were spent on what windows without whole cycles do not judge."""
    compressed = FirstPlan("embedded", 1, "wal_compression=on").text("wc.toml")
    assert "four short rounds, which do not judge this setting:" in compressed
    assert (
        "# what a stage may put at risk: nothing is lost; full pages are compressed" in compressed
    )
    assert "which seldom decide" in FirstPlan("embedded", 1, "work_mem=64MB").text("wm.toml")


def test_what_quick_cannot_judge_is_said_with_the_remedy(tmp_path: Path) -> None:
    path = FirstPlan("embedded", 1, "wal_compression=on").write(tmp_path / "wc.toml")
    short, whole = (load_plan(path, quick=quick).record.notes for quick in (True, False))
    assert short[0].startswith("stage wal_compression-on will not be judged against baseline")
    assert short[0].endswith("; that is of --quick: without it, windows follow checkpoints")
    assert "will not be judged" not in " ".join(whole)
