"""Root writes and removes files of a data directory, and nothing where its owner's links lead."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pgdyno.drills.checks import _cut_parts_in
from pgdyno.drills.controls import _put
from pgdyno.folders import Folder
from pgdyno.guard.relations import made, opened, removed
from pgdyno.guard.tree import files_below
from pgdyno.model.errors import TargetError
from pgdyno.shell import postgres_user
from tests.reachable import reachable_folder

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="it is about root")


@pytest.fixture
def data() -> Iterator[Path]:
    """A data directory of the server's user, beside a folder of root's."""
    user = postgres_user()
    for folder in reachable_folder("links"):
        roots = folder / "roots"
        roots.mkdir()
        (roots / "00000002.history").write_text("root's own")
        path = folder / "data"
        (path / "base").mkdir(parents=True)
        (path / "pg_tblspc").mkdir()
        for one in (path, *path.rglob("*")):
            os.chown(one, user.uid, user.gid)
        for name in ("pg_wal", "pg_tblspc/9", "base/5"):
            (path / name).symlink_to(roots)
            os.chown(path / name, user.uid, user.gid, follow_symlinks=False)
        yield path


def written(data: Folder, path: str) -> None:
    with made(data, path):
        pass


def read(data: Folder, path: str) -> None:
    with opened(data, path, writes=False):
        pass


@pytest.mark.parametrize("what", [written, read, removed])
@pytest.mark.parametrize(
    "path", ["pg_wal/00000002.history", "pg_tblspc/9/PG_18_1/5/7", "base/5/00000002.history"]
)
def test_no_link_leads_to_roots_files(
    data: Path, what: Callable[[Folder, str], None], path: str
) -> None:
    with (
        Folder.hold(data) as folder,
        pytest.raises(TargetError, match=r"belongs to user root|not a directory"),
    ):
        what(folder, path)
    with Folder.hold(data) as folder, pytest.raises(TargetError):
        files_below(folder, path.split("/", maxsplit=1)[0])
    roots = data.parent / "roots"
    assert [one.name for one in roots.iterdir()] == ["00000002.history"]
    assert (roots / "00000002.history").read_text() == "root's own"


def test_no_drill_writes_into_files_of_roots(data: Path) -> None:
    """By a second name of one, or by a path that the server tells."""
    roots, user = data.parent / "roots", postgres_user()
    (data / "base/6").mkdir()
    os.chown(data / "base/6", user.uid, user.gid)
    os.link(roots / "00000002.history", data / "base/6/16384")

    with Folder.hold(data) as folder, folder.into("base") as base, base.into("6") as database:
        with pytest.raises(TargetError, match="no regular file of user"):
            _cut_parts_in(database, 8192)
        for path, refusal in (
            ("base/6/16384", "no regular file of user"),
            ("../roots/00000002.history", "is no path of a file below a data directory"),
        ):
            with pytest.raises(TargetError, match=refusal):
                _put(folder, path, b"theirs", 0)
    assert (roots / "00000002.history").read_text() == "root's own"
