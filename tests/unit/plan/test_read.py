"""Reading: files that are no plans, overrides, and the order in which values win."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.model.errors import PlanError
from pgdyno.plan import read_plan
from pgdyno.plan.schema.complaint import Complaint
from pgdyno.plan.schema.override import Override, parse_override
from pgdyno.plan.schema.read import read_plan_text

TEXT = """
name = "small"
question = "Is it read?"
[[stage]]
name = "only"
why = "The only one."
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(TEXT)
    return path


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="cannot be read: no such file or directory"):
        read_plan(tmp_path / "none.toml")


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="is a folder, allowed is a regular file"):
        read_plan(tmp_path)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_bytes(b'name = "\xff"')
    with pytest.raises(PlanError, match="is not UTF-8: byte 8 is wrong"):
        read_plan(path)


def test_a_file_that_is_far_too_large(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    with path.open("wb") as file:
        os.truncate(file.fileno(), (1 << 20) + 1)
    with pytest.raises(PlanError, match="has 1048577 bytes, allowed are 1048576"):
        read_plan(path)


def test_the_draft_keeps_the_text_and_the_path_as_given(plan: Path) -> None:
    draft = read_plan(str(plan))
    assert (draft.text, draft.source) == (TEXT, str(plan))


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("a.b=1", ("a", "b"), 1),
        ("a.b=1.5", ("a", "b"), 1.5),
        ("a.b=true", ("a", "b"), True),
        ("a.b=off", ("a", "b"), "off"),
        ("a.b=16GB", ("a", "b"), "16GB"),
        ("a.b=read committed", ("a", "b"), "read committed"),
        ('a.b="16 GB"', ("a", "b"), "16 GB"),
        ("a.b=[1, 2]", ("a", "b"), [1, 2]),
        ("a.b={c=1}", ("a", "b"), {"c": 1}),
        ("stage.async-commit.why='x=y'", ("stage", "async-commit", "why"), "x=y"),
        ('s."p.q" = 1', ("s", "p.q"), 1),
        (" a . b = x ", ("a", "b"), "x"),
    ],
)
def test_overrides(text: str, path: tuple[str, ...], value: object) -> None:
    assert parse_override(text) == Override(text, path, value)


@pytest.mark.parametrize("text", ["a", "=1", "a.=1", "a b=1", "a=[", "a='", 'a=x"y', "a="])
def test_overrides_that_are_none(text: str) -> None:
    assert isinstance(parse_override(text), Complaint)


def test_overrides_win_in_their_order(plan: Path) -> None:
    draft = read_plan(plan, ["protocol.rounds=4", "protocol.rounds=5"])
    assert draft.document.protocol.rounds == 5
    assert draft.origins["protocol.rounds"] == "--set protocol.rounds=5"


def test_an_override_cannot_pass_through_a_value(plan: Path) -> None:
    with pytest.raises(PlanError, match="name is not a table"):
        read_plan(plan, ["name.first=x"])
    with pytest.raises(PlanError, match="stage only is a table; name one of its keys"):
        read_plan(plan, ["stage.only=1"])
    with pytest.raises(PlanError, match="stages cannot be replaced as a whole"):
        read_plan(plan, ["stage=[]"])


def test_an_override_can_mend_a_plan(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(TEXT + "setings = {}\n[protocol]\nrounds = 0\n")
    with pytest.raises(PlanError) as caught:
        read_plan(path, ["protocol.rounds=3"])
    assert "setings" in caught.value.fact
    assert "rounds" not in caught.value.fact


CYCLES = """
name = "short"
question = "How long?"
[protocol]
checkpoints = "cycles"
cycles = 3
[quick.protocol]
rounds = 3
window_s = 5
%s
[[stage]]
name = "one"
why = "The only one."
"""


@pytest.mark.parametrize(
    ("said", "follows"),
    [("", "ignore"), ('checkpoints = "cycles"', "cycles"), ("cycles = 1", "cycles")],
)
def test_the_short_version_waits_for_no_cycles_unless_it_says_so(said: str, follows: str) -> None:
    text = CYCLES % said
    quick = read_plan_text(text, "short.toml", Path(), quick=True)

    assert quick.document.protocol.checkpoints == follows
    assert quick.origins["protocol.checkpoints"] == (
        "short.toml" if "cycles = 1" in said else "quick"
    )
    assert read_plan_text(text, "short.toml", Path()).document.protocol.checkpoints == "cycles"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("protocol.rounds=many", '"many" must be a whole number'),
        ("protocol.rounds=2.5", "2.5 must be a whole number"),
        ("protocol.window_s=long", '"long" must be a number'),
        ("protocol.prewarm=maybe", '"maybe" must be true or false'),
        ("stage.initdb.skip=2", "2 must be true or false"),
        (f"protocol.rounds={'9' * 400}", "is out of range"),
    ],
)
def test_a_value_of_another_type_is_refused_in_our_words(override: str, said: str) -> None:
    with pytest.raises(PlanError) as refused:
        read_plan("plans/demo.toml", [override])
    assert said in refused.value.fact
    assert "input should" not in refused.value.fact
