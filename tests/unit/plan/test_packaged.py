"""Plans by name: what is nearly one is told which; files of one's own are left alone."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from pgdyno.model.errors import PlanError
from pgdyno.model.looks import LOOKS
from pgdyno.model.wording import listed
from pgdyno.plan import read_plan
from pgdyno.plan.packaged import FOLDER, plan_path

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_a_plan_that_is_shortened_reaches_its_first_look(path: Path) -> None:
    """Else it measures, and can say nothing of what it has measured."""
    if not tomllib.loads(path.read_text()).get("quick"):
        return
    draft = read_plan(path, quick=True)
    if draft.whole_rounds is not None:
        assert draft.document.protocol.rounds >= LOOKS[draft.whole_rounds][0]


def test_the_readme_names_the_plans_that_do_not_check_every_trial() -> None:
    known = {path.stem: read_plan(path).document.protocol for path in FOLDER.glob("*.toml")}
    fewer = [f"`{name}`" for name, one in sorted(known.items()) if one.checked_rounds == 1]
    told = " ".join((ROOT / "README.md").read_text().split())
    assert f"checked ({listed(fewer)}: in round 1 only)" in told
    assert {one.checked_rounds for one in known.values()} == {None, 1}


def test_a_name_that_is_nearly_a_plan_is_told_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PlanError, match="plan demoo is no file here") as caught:
        plan_path("demoo")
    assert "Did you mean demo?" in (caught.value.hint or "")

    assert plan_path("demo") == FOLDER / "demo.toml"
    assert plan_path("mine.toml") == Path("mine.toml"), "whoever reads it says that it is not there"
    Path("demoo").write_text("")
    assert plan_path("demoo") == Path("demoo"), "a file of one's own"


@pytest.mark.parametrize("said", ["walwritr.toml", "walwriter", "walwriter.tom"])
def test_a_plan_beside_a_name_that_is_nearly_its_own_is_suggested(
    tmp_path: Path, said: str
) -> None:
    meant = tmp_path / "walwriter.toml"
    assert plan_path(tmp_path / said) == tmp_path / said, "nothing lies there"
    meant.write_text("")
    with pytest.raises(PlanError, match="no such file") as caught:
        plan_path(tmp_path / said)
    assert caught.value.hint == f"Did you mean {meant}?"
    for strange in ("a" * 5000, "a\0b", "none/at/all", ""):
        assert plan_path(strange) == Path(strange)
