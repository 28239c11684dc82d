"""Root imports and exports files where others can write, and follows none of their links.

Nothing is read that only root could read, and nothing is written anywhere else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pgdyno.loader import export as exporting
from pgdyno.loader.csv_files import load_csv, read_folder
from pgdyno.loader.export import export
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError, PgdynoError
from tests.cluster.conftest import cluster_apart
from tests.cluster.loading import new_database, run
from tests.data.workloads import changed, tpcc
from tests.reachable import reachable_folder

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="it is about root")
NOBODY = 65534
SECRET = "1,2,root's own\n"
SPEC = changed(tpcc(), schema="bmsql")
FILES = ("config.csv", "warehouse.csv", "cust-hist.csv")


@pytest.fixture
def folder() -> Iterator[Path]:
    yield from reachable_folder("files")


@pytest.fixture
def witness(folder: Path) -> Path:
    path = folder / "secret" / "witness"
    path.parent.mkdir(mode=0o700)
    path.write_text(SECRET)
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def exported() -> Iterator[Path]:
    for folder in reachable_folder("rows"):
        export(folder / "rows", SPEC)
        yield folder / "rows"


@pytest.fixture
def theirs(folder: Path, exported: Path) -> Path:
    """An export in a folder of another user's, who has the files as well."""
    place = folder / "theirs"
    place.mkdir()
    for file in exported.iterdir():
        (place / file.name).write_bytes(file.read_bytes())
    for path in (place, *place.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    return place


def soft(path: Path, witness: Path) -> None:
    path.unlink()
    path.symlink_to(witness)


def hard(path: Path, witness: Path) -> None:
    path.unlink()
    os.link(witness, path)


def device(path: Path, _witness: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("plant", [soft, hard, device])
@pytest.mark.parametrize("name", FILES)
def test_no_file_of_roots_is_read_for_a_stranger(
    theirs: Path, witness: Path, name: str, plant: Callable[[Path, Path], None]
) -> None:
    assert read_folder(theirs).warehouses == 1, "their own files are read"
    plant(theirs / name, witness)
    with pytest.raises(DriveError) as caught:
        read_folder(theirs)
    assert name in caught.value.fact
    assert "root's own" not in str(caught.value)


def test_no_link_of_a_strangers_leads_to_a_folder(folder: Path, exported: Path) -> None:
    place = folder / "theirs"
    place.mkdir()
    (place / "rows").symlink_to(exported)
    os.chown(place, NOBODY, NOBODY)
    os.lchown(place / "rows", NOBODY, NOBODY)
    with pytest.raises(DriveError, match=r"leads through the link .*/theirs/rows"):
        read_folder(place / "rows")


@pytest.mark.cluster
def test_a_link_that_comes_after_the_look_is_not_copied(theirs: Path, witness: Path) -> None:
    files = read_folder(theirs)
    soft(theirs / "warehouse.csv", witness)
    with cluster_apart("embedded-18", "socket") as cluster:
        database: Connection = new_database(cluster.connection(), "files")
        with pytest.raises(DriveError, match=r"warehouse\.csv"):
            load_csv(database, files)
        left = "SELECT count(*) FROM pg_class WHERE relname ~ 'bmsql|pgdyno'"
        assert run(database, left) == [(0,)]


def test_an_export_goes_nowhere_else(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at a place that is open to all and the first file, others come first."""
    place, goal = folder / "open", folder / "goal"
    place.mkdir()
    place.chmod(0o1777)
    goal.mkdir()

    def linked() -> None:
        (place / "new").symlink_to(goal)
        os.lchown(place / "new", NOBODY, NOBODY)

    def owned() -> None:
        (place / "new").mkdir()
        os.chown(place / "new", NOBODY, NOBODY)

    for come_first in (linked, owned):
        monkeypatch.setattr(exporting, "_require_room", lambda *_, first=come_first: first())
        with pytest.raises(PgdynoError):
            export(place / "new", SPEC)
        assert not list(goal.iterdir())
        assert not list((place / "new").iterdir())
        (place / "new").unlink() if come_first is linked else (place / "new").rmdir()


def test_an_export_stays_in_the_folder_that_was_looked_at(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goal, carried_out = folder / "goal", exporting._run
    goal.mkdir()

    def swapped(spec: str, progress: object) -> object:
        (folder / "new").rename(folder / "moved")
        (folder / "new").symlink_to(goal)
        return carried_out(spec, progress)  # type: ignore[arg-type]

    monkeypatch.setattr(exporting, "_run", swapped)
    export(folder / "new", SPEC)
    assert not list(goal.iterdir())
    assert read_folder(folder / "moved").warehouses == 1
