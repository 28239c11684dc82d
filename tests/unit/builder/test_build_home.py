"""Where builds may lie: their folder's name passes through make and shells, and is run by none."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.builder.compile import build
from pgdyno.builder.source import Source
from pgdyno.model.build import Recipe
from pgdyno.model.errors import TargetError
from pgdyno.shell import OsUser, postgres_user


def _untrained(_bindir: Path, _user: OsUser, _profiles: Path) -> None:
    raise AssertionError("nothing is compiled")


@pytest.mark.parametrize(
    "name", ["a home", "$(touch x)", "`touch x`", "a;b", "a#b", "a%b", "a'b", 'a"b', "a\\b", "a&b"]
)
def test_a_home_whose_name_make_would_not_take_is_refused(tmp_path: Path, name: str) -> None:
    home = tmp_path / name
    source = Source(tmp_path / "source", "18.6", "0" * 64)

    with pytest.raises(TargetError, match=r"PGDYNO_HOME is .*, and make would not take") as caught:
        build(source, Recipe(), home, postgres_user(), _untrained)

    assert str(caught.value.hint).startswith("Set PGDYNO_HOME to a folder")
    assert not home.exists()
