"""Plans by name: what is nearly one is told which; files of one's own are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.model.errors import PlanError
from pgdyno.plan.packaged import FOLDER, plan_path


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
