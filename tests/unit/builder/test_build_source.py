"""Sources: what they are, their hash, unpacking."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from pgdyno.builder.source import Source, look, unpack
from pgdyno.folders import Folder
from pgdyno.model.errors import PlanError

CONFIGURE = "# Guess values\nPACKAGE_NAME='PostgreSQL'\nPACKAGE_TARNAME='x'\nPACKAGE_VERSION='{}'\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path / "postgresql-15.18"
    (top / "src").mkdir(parents=True)
    (top / "configure").write_text(CONFIGURE.format("15.18"))
    (top / "src" / "main.c").write_text("int main;")
    (top / "src" / "link.c").symlink_to("main.c")
    return top


def packed(tree: Path, kind: str = "gz") -> Path:
    path = tree.parent / f"source.tar.{kind}"
    with tarfile.open(path, f"w:{kind}") as archive:
        archive.add(tree, tree.name)
    return path


def unpacked(source: Source, into: Path) -> Path:
    with Folder.hold(into) as folder:
        return unpack(source, folder)


@pytest.mark.parametrize("version", ["15.18", "12.0", "18beta1", "18devel"])
def test_a_tree_and_a_tarball_are_known(tree: Path, version: str) -> None:
    (tree / "configure").write_text(CONFIGURE.format(version))
    for path in (tree, packed(tree)):
        source = look(path)
        assert (source.version, source.path) == (version, path)
        assert len(source.digest) == 64


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
def test_tarballs_are_unpacked(tree: Path, tmp_path: Path, kind: str) -> None:
    (tmp_path / "work").mkdir()

    top = unpacked(look(packed(tree, kind)), tmp_path / "work")

    assert (top / "src" / "main.c").read_text() == "int main;"
    assert (top / "src" / "link.c").is_symlink()


def test_a_tree_is_copied_without_its_history(tree: Path, tmp_path: Path) -> None:
    before = look(tree).digest
    (tree / ".git").mkdir()
    (tree / ".git" / "HEAD").write_text("ref")
    (tmp_path / "work").mkdir()

    source = look(tree)
    top = unpacked(source, tmp_path / "work")

    assert source.digest == before
    assert sorted(path.name for path in top.iterdir()) == ["configure", "src"]
    assert (top / "src" / "link.c").is_symlink()


def test_the_hash_of_a_tree_is_of_names_contents_and_links(tree: Path) -> None:
    digests = [look(tree).digest]
    (tree / "src" / "main.c").write_text("int other;")
    digests.append(look(tree).digest)
    (tree / "src" / "main.c").rename(tree / "src" / "other.c")
    digests.append(look(tree).digest)
    (tree / "src" / "link.c").unlink()
    (tree / "src" / "link.c").symlink_to("other.c")
    digests.append(look(tree).digest)
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("PACKAGE_NAME='bash'\nPACKAGE_VERSION='5.2'\n", "is not the source of PostgreSQL"),
        ("", "is not the source of PostgreSQL"),
        (CONFIGURE.format("9.6.24"), r"is PostgreSQL 9\.6\.24, supported are 12 to 18"),
        (CONFIGURE.format("19devel"), "is PostgreSQL 19devel, supported are 12 to 18"),
    ],
)
def test_other_sources_are_refused(tree: Path, text: str, fact: str) -> None:
    (tree / "configure").write_text(text)
    for path in (tree, packed(tree)):
        with pytest.raises(PlanError, match=fact):
            look(path)


def test_what_is_no_source_at_all_is_refused(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    (tree / "configure").unlink()
    for path, fact in (
        (tmp_path / "nothing", "is neither a folder nor a file"),
        (tmp_path / "text", "is not a tarball"),
        (tree, "holds no configure"),
        (packed(tree), "holds no configure"),
    ):
        with pytest.raises(PlanError, match=fact) as caught:
            look(path)
        assert str(caught.value.hint).startswith("Name PostgreSQL's source")


def test_a_tree_that_was_configured_is_refused(tree: Path) -> None:
    """Its objects would be taken for ours, whatever they were compiled with."""
    (tree / "config.status").write_text("")
    with pytest.raises(PlanError, match="was configured already"):
        look(tree)


@pytest.mark.parametrize("name", ["../../outside.c", "/tmp/pgdyno-outside.c"])
def test_a_tarball_that_would_write_elsewhere_is_refused(
    tree: Path, tmp_path: Path, name: str
) -> None:
    path = packed(tree)
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tree, tree.name)
        member = archive.gettarinfo(tree / "src" / "main.c")
        member.name = name
        archive.addfile(member)
    folder = tmp_path / "work" / "deeper"
    folder.mkdir(parents=True)

    with pytest.raises(PlanError, match="which is not a file inside it"):
        unpacked(look(path), folder)

    assert not (folder / name).exists()


def test_a_tarball_with_a_link_that_leads_elsewhere_is_refused(tree: Path, tmp_path: Path) -> None:
    (tree / "away").symlink_to("/etc")
    (tmp_path / "work").mkdir()
    with pytest.raises(PlanError, match="holds /etc, which is not a file inside it"):
        unpacked(look(packed(tree)), tmp_path / "work")
