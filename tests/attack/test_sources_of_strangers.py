"""Root builds from the tree of another user, and reads none of root's files by links in it.

What is read is compiled as the user that runs PostgreSQL, who could read it then.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pgdyno.builder.source import look, unpack
from pgdyno.folders import Folder
from pgdyno.model.errors import PgdynoError, TargetError
from pgdyno.shell import OsUser
from tests.attack.planting import Planter
from tests.reachable import reachable_folder
from tests.tally import survived
from tests.unit.builder.test_build_source import CONFIGURE, packed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="it is about root")
NOBODY = OsUser("nobody", 65534, 65534)
SECRET = "root's own\n"
STEPS_MAX = 2000


@pytest.fixture
def folder() -> Iterator[Path]:
    yield from reachable_folder("source")


@pytest.fixture
def witness(folder: Path) -> Path:
    path = folder / "secret" / "witness"
    path.parent.mkdir(mode=0o700)
    path.write_text(SECRET)
    path.chmod(0o600)
    return path


def tree_of_a_stranger(folder: Path) -> Path:
    """A source, which names files as those are called that a `Planter` swaps."""
    top = folder / "theirs" / "postgresql-15.18"
    shutil.rmtree(top.parent, ignore_errors=True)
    (top / "data").mkdir(parents=True)
    (top / "configure").write_text(CONFIGURE.format("15.18"))
    for name in ("lock", "PG_VERSION", "data/fixture.json", "data/postgresql.conf"):
        (top / name).write_text("theirs")
    (top / "link").symlink_to("configure")
    for path in (top.parent, top, *top.rglob("*")):
        os.chown(path, NOBODY.uid, NOBODY.gid, follow_symlinks=False)
    return top


def built_from(source: Path, work: Path) -> list[str]:
    """The texts that the compiling user would get."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    found = look(source)
    with Folder.hold(work) as place:
        top = unpack(found, place)
    return [path.read_text() for path in top.rglob("*") if path.is_file() and not path.is_symlink()]


def test_a_stranger_swaps_links_in_at_any_step(folder: Path, witness: Path) -> None:
    top, work = tree_of_a_stranger(folder), folder / "work"
    planter = Planter(NOBODY, (top,), witness)
    with planter.at(STEPS_MAX):
        assert len(built_from(top, work)) == 5, "a stranger's tree as such is built from"
    assert planter.steps > 20
    for step in range(planter.steps):
        top = tree_of_a_stranger(folder)
        with planter.at(step), suppress(PgdynoError):
            built_from(top, work)
        left = [path for path in work.rglob("*") if path.is_file() and not path.is_symlink()]
        assert SECRET not in [path.read_text() for path in left], f"at step {step}"
        survived("links in a source that root reads")
    assert planter.planted > planter.steps / 2, "there was too little to attack"


@pytest.mark.parametrize("kind", ["tree", "tarball"])
def test_a_file_of_roots_that_a_stranger_linked_is_not_read(
    folder: Path, witness: Path, kind: str
) -> None:
    """By hard links, which kernels may allow, and by the name itself."""
    top = tree_of_a_stranger(folder)
    (top / "moved").write_text("root's, as all may read")
    assert len(built_from(top, folder / "work")) == 6
    if kind == "tree":
        (top / "hard").hardlink_to(witness)
        named, fact = top, "hard belongs to user root, and others than root can change folder"
    else:
        named, fact = top.parent / "source.tar.gz", "read .*source.tar.gz: "
        named.symlink_to(packed(top).rename(witness.parent / "real.tar.gz"))
        os.chown(named, NOBODY.uid, NOBODY.gid, follow_symlinks=False)

    with pytest.raises(TargetError, match=fact):
        built_from(named, folder / "work")


def test_in_a_folder_open_to_all_a_file_of_roots_is_read_that_has_one_name(
    folder: Path, witness: Path
) -> None:
    """As a tarball that root put into /tmp; one with two names may be linked there."""
    top = tree_of_a_stranger(folder)
    own = folder / "open"
    own.mkdir()
    own.chmod(0o1777)
    tarball = packed(top).rename(own / "source.tar.gz")
    os.chown(tarball, 0, 0)
    assert len(built_from(tarball, folder / "work")) == 5
    (own / "other").hardlink_to(tarball)
    with pytest.raises(TargetError, match=r"source\.tar\.gz belongs to user root"):
        built_from(tarball, folder / "work")


def test_a_source_that_changes_meanwhile_is_not_built_under_its_old_hash(folder: Path) -> None:
    top = tree_of_a_stranger(folder)
    work = folder / "work"
    work.mkdir()
    for source in (top, packed(top)):
        found = look(source)
        if source.is_dir():
            (top / "lock").write_text("changed")
        else:
            packed(top)
        (work / source.name).mkdir()
        with (
            Folder.hold(work / source.name) as place,
            pytest.raises(TargetError, match="has changed since pgdyno looked at it"),
        ):
            unpack(found, place)
