"""Kept builds: complete ones are found, half ones are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.model.build import Recipe
from pgdyno.model.errors import TargetError
from pgdyno.target.kept_builds import build_bindir, build_folder, keep_build, kept_builds
from tests.data.builds import a_build


def test_complete_builds_are_found_in_the_order_of_their_making(tmp_path: Path) -> None:
    later, first = a_build("bbb", recipe=Recipe("clang", features=("lz4",))), a_build("aaa", "x")
    for build in (later, first):
        build_folder(tmp_path, build.ident).mkdir(parents=True)
        keep_build(tmp_path, build)
    build_bindir(tmp_path, "ccc").mkdir(parents=True)  # was not finished

    assert kept_builds(tmp_path) == (first, later)


def test_there_are_none_before_the_first(tmp_path: Path) -> None:
    assert kept_builds(tmp_path) == ()


def test_a_record_of_another_pgdyno_is_named(tmp_path: Path) -> None:
    folder = build_folder(tmp_path, "aaa")
    folder.mkdir(parents=True)
    (folder / "build.json").write_text('{"ident": "aaa"}')

    with pytest.raises(
        TargetError, match="is not a record of a build that this pgdyno knows"
    ) as told:
        kept_builds(tmp_path)
    assert str(folder) in str(told.value.hint)
