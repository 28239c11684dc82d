"""Folders and files: no link is followed, no stranger's folder becomes ours, nothing is half."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pgdyno import folders
from pgdyno.access import is_closed, open_folder, stranger_on, stranger_on_program
from pgdyno.folders import MARK, Folder, scratch
from pgdyno.model.errors import TargetError
from pgdyno.shell import run
from pgdyno.target.home import (
    FIXTURES,
    locked_home,
    open_home,
    our_folder,
    remove_folder,
    take_stage_folder,
)
from tests.waiting import DEADLINE_S

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="strangers are made by root")


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[Path]:
    """A file that nobody may change, with what it is compared by."""
    path = tmp_path / "witness"
    path.write_text("kept")
    before = path.stat()
    yield path
    after = path.stat()
    assert path.read_text() == "kept"
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode, before.st_uid, before.st_gid,
    )  # fmt: skip


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Folder]:
    (tmp_path / "held").mkdir()
    with Folder.hold(tmp_path / "held") as folder:
        yield folder


def test_a_file_replaces_a_link_and_does_not_follow_it(held: Folder, witness: Path) -> None:
    (held.path / "conf").symlink_to(witness)

    held.write("conf", "ours", 0o600)

    assert not (held.path / "conf").is_symlink()
    assert (held.path / "conf").read_text() == "ours"
    assert held.names() == ["conf"]


@pytest.mark.parametrize("call", ["open", "read", "log", "lock", "into", "remove_folder"])
def test_nothing_goes_through_a_link(held: Folder, witness: Path, call: str) -> None:
    leads = witness if call in ("open", "read", "log", "lock") else witness.parent
    (held.path / "name").symlink_to(leads)

    with pytest.raises(TargetError):
        getattr(held, call)("name")


def test_making_a_folder_takes_none_that_is_there(held: Folder, witness: Path) -> None:
    (held.path / "there").symlink_to(witness.parent)

    with pytest.raises(TargetError, match=r"make folder .*there: file exists"):
        held.make("there", 0o700)


def test_clearing_removes_links_and_not_what_they_lead_to(held: Folder, witness: Path) -> None:
    with held.make("tree") as tree, tree.make("deep") as deep:
        (deep.path / "file").symlink_to(witness)
        (deep.path / "folder").symlink_to(witness.parent)

    held.remove_folder("tree")

    assert held.names() == []


def test_a_pipe_is_not_waited_for(held: Folder) -> None:
    os.mkfifo(held.path / "pipe")

    with pytest.raises(TargetError, match="is not a regular file"):
        held.read("pipe")


def test_a_text_has_a_bound(held: Folder) -> None:
    (held.path / "long").write_text("x" * 100)

    with pytest.raises(TargetError, match="longer than 99 bytes"):
        held.read("long", most=99)
    assert held.read("long", most=100) == "x" * 100


@as_root
def test_a_strangers_file_is_not_read(held: Folder) -> None:
    (held.path / "his").write_text("x")
    os.chown(held.path / "his", NOBODY, NOBODY)

    with pytest.raises(TargetError, match="belongs to user nobody"):
        held.read("his")
    assert held.read("his", NOBODY) == "x"


@as_root
def test_what_another_user_owns_is_removed_with_his_rights(tmp_path: Path, witness: Path) -> None:
    tmp_path.chmod(0o755)
    place = tmp_path / "place"
    place.mkdir()
    with Folder.hold(place) as folder, folder.make("his", 0o700, folders.Owner(NOBODY, NOBODY)):
        inner = place / "his" / "inner"
        inner.mkdir()
        (inner / "roots").write_text("he may not remove this: the folder is root's")

        with pytest.raises(TargetError, match="find ended with code 1"):
            folder.remove_folder("his")
    assert (inner / "roots").exists()


@as_root
def test_a_strangers_link_on_the_way_is_refused(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    (tmp_path / "target").mkdir()
    (open_to_all / "link").symlink_to(tmp_path / "target")

    with pytest.raises(TargetError, match=r"leads through the link .*open/link"):
        open_folder(open_to_all / "link")
    assert stranger_on(open_to_all / "link") == open_to_all
    (tmp_path / "ours").symlink_to(tmp_path / "target")
    os.close(open_folder(tmp_path / "ours"))
    assert stranger_on(tmp_path / "ours") is None


@as_root
def test_who_could_change_a_file(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "program"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    assert stranger_on(program) is None
    assert stranger_on_program(program) is None
    os.chown(program.parent, NOBODY, NOBODY)
    assert stranger_on(program) == program.parent
    os.chown(program.parent, 0, 0)
    program.chmod(0o757)
    assert stranger_on(program) == program
    assert not is_closed(Path("/tmp").stat(), sticky_holds=False)


@as_root
def test_root_runs_no_program_that_others_could_have_put_there(tmp_path: Path) -> None:
    def made(folder: Path) -> Path:
        program = folder / "program"
        program.write_text("#!/bin/sh\necho ran\n")
        program.chmod(0o755)
        return program

    for name, mode, owner in (
        ("open", 0o777, 0), ("sticky", 0o1777, 0), ("theirs", 0o755, NOBODY),
    ):  # fmt: skip
        folder = tmp_path / name
        folder.mkdir()
        program = made(folder)
        folder.chmod(mode)
        os.chown(folder, owner, owner)
        with pytest.raises(TargetError, match="is not run as root: others than root can change"):
            run([program])
        inner = folder / "roots"
        inner.mkdir()
        if name == "sticky":  # as a clone in /tmp: nobody else can rename root's folder there
            assert run([made(inner)]).stdout == "ran\n"
        else:
            with pytest.raises(TargetError, match="is not run as root"):
                run([made(inner)])


# -- homes ------------------------------------------------------------------------------------


def state(path: Path) -> list[tuple[str, int, int, int]]:
    """Everything below a folder, the folder too: name, mode, owner, time of the last change."""
    return [
        (str(one), facts.st_mode, facts.st_uid, facts.st_mtime_ns)
        for one in [path, *sorted(path.rglob("*"))]
        for facts in [one.lstat()]
    ]


def test_a_home_is_made_with_its_mark_and_taken_by_one(tmp_path: Path) -> None:
    home = tmp_path / "a" / "home"
    with locked_home(home):
        assert (home / MARK).read_text() == "pgdyno home\n"
        with pytest.raises(TargetError, match="another pgdyno works in"), locked_home(home):
            pass
    with locked_home(home):
        pass


def test_an_empty_folder_becomes_a_home_as_it_is(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o750)
    before = home.stat()

    open_home(home).close()

    after = home.stat()
    assert (after.st_mode, after.st_uid) == (before.st_mode, before.st_uid)


@pytest.mark.parametrize(
    "entry", ["thesis.tex", "fixtures/photos", "builds/mine", "work/letters", "work/x"]
)
def test_a_folder_of_somebodys_is_no_home(tmp_path: Path, entry: str) -> None:
    home = tmp_path / "home"
    path = home / entry
    path.parent.mkdir(parents=True)
    path.write_text("precious")
    before = state(home)

    with pytest.raises(TargetError, match="is not marked as pgdyno's"):
        open_home(home)

    assert state(home) == before


OF_EARLIER_NAMES = (
    "work/data/letters",
    "builds/0123456789ab/work",
    "fixtures/deadbeef.loading/x",
    "fixtures/0123456789abcdef/fixture.json",
    "lock",
    "calibration.json",
)


@pytest.mark.parametrize("entry", OF_EARLIER_NAMES)
def test_names_like_ours_make_no_home(tmp_path: Path, entry: str) -> None:
    home = tmp_path / "home"
    path = home / entry
    path.parent.mkdir(parents=True)
    path.write_text("precious")
    before = state(home)

    for taken in (open_home, lambda path: locked_home(path).__enter__()):
        with pytest.raises(TargetError, match="is not marked as pgdyno's") as refused:
            taken(home)
        assert "Only if it is the home of an earlier pgdyno" in str(refused.value.hint)

    assert state(home) == before


def test_an_earlier_home_is_taken_over_once_its_user_marked_it(tmp_path: Path) -> None:
    home = tmp_path / "my home"
    (home / FIXTURES / "0123456789abcdef" / "data").mkdir(parents=True)
    (home / "work").mkdir()
    (home / "lock").touch(0o600)
    with pytest.raises(TargetError) as refused:
        open_home(home)
    subprocess.run(str(refused.value.hint).partition("mark it: ")[2], shell=True, check=True)

    with open_home(home) as folder, our_folder(folder, FIXTURES) as fixtures:
        assert fixtures.names() == [MARK, "0123456789abcdef"]
        our_folder(folder, "work").close()


def test_a_folder_with_other_things_too_is_told_no_way_to_mark_it(tmp_path: Path) -> None:
    (tmp_path / "work" / "data").mkdir(parents=True)
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(TargetError, match=r"holds thesis\.tex") as refused:
        open_home(tmp_path)
    assert "touch" not in str(refused.value.hint)


def test_a_folder_whose_maker_was_killed_before_it_was_opened_is_opened(tmp_path: Path) -> None:
    with open_home(tmp_path / "home") as home:
        (home.path / FIXTURES).mkdir(0o700)
        our_folder(home, FIXTURES).close()
        assert stat.S_IMODE((home.path / FIXTURES).stat().st_mode) == 0o755


def test_a_folder_in_a_home_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    with open_home(tmp_path / "home") as home:
        foreign = home.path / FIXTURES / "photos"
        foreign.mkdir(parents=True)
        with pytest.raises(TargetError, match="fixtures is there already, and is not marked"):
            our_folder(home, FIXTURES)
        assert foreign.exists()


@pytest.mark.parametrize("name", [MARK, "lock"])
def test_marks_and_locks_are_no_links(tmp_path: Path, witness: Path, name: str) -> None:
    home = tmp_path / "home"
    with locked_home(home):
        pass
    (home / name).unlink()
    (home / name).symlink_to(witness)

    with pytest.raises(TargetError), locked_home(home):
        pass


@as_root
@pytest.mark.parametrize("how", ["owner", "mode"])
def test_root_keeps_nothing_where_others_write(tmp_path: Path, how: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    if how == "owner":
        os.chown(home, NOBODY, NOBODY)
    else:
        home.chmod(0o777)
    before = state(home)

    with pytest.raises(TargetError, match="others than root can change"):
        open_home(home)

    assert state(home) == before


def test_a_place_appears_with_its_mark_and_is_left(tmp_path: Path) -> None:
    outside = tmp_path / "srv"
    outside.mkdir()
    place = take_stage_folder(outside, tmp_path / "home")
    assert sorted(one.name for one in place.folder.path.iterdir()) == [MARK, "lock"]
    with pytest.raises(TargetError, match="another pgdyno works in"):
        take_stage_folder(outside, tmp_path / "home")
    place.leave()
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("before", ["unlink", "rename", "rmdir"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_place_that_a_kill_left_half_removed_is_ours_still(
    tmp_path: Path, before: str, nth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside, home = tmp_path / "srv", tmp_path / "home"
    outside.mkdir()
    place = take_stage_folder(outside, home)
    calls, real = iter(range(1, 100)), getattr(os, before)

    def killed(*given: Any, **named: Any) -> None:
        if next(calls) == nth:
            raise KeyboardInterrupt  # as good as a kill: nothing is tried after it
        real(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, before, killed)
        with suppress(KeyboardInterrupt):
            place.leave()

    take_stage_folder(outside, home).leave()
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("left", ["nothing", "mark"])
def test_a_place_that_a_kill_left_half_made_goes_with_the_next(tmp_path: Path, left: str) -> None:
    half = tmp_path / "srv" / ".pgdyno-work.new"
    half.mkdir(parents=True)
    if left == "mark":
        (half / MARK).write_text("pgdyno pgdyno-work\n")

    place = take_stage_folder(half.parent, tmp_path / "home")

    assert [one.name for one in half.parent.iterdir()] == ["pgdyno-work"]
    place.leave()
    assert list(half.parent.iterdir()) == []


@pytest.mark.parametrize("kind", ["full", "file", "link"])
def test_what_has_the_passing_name_of_a_place_is_refused(
    tmp_path: Path, kind: str, witness: Path
) -> None:
    name = tmp_path / "srv" / ".pgdyno-work.new"
    name.parent.mkdir()
    if kind == "full":
        name.mkdir()
        (name / "precious").write_text("x")
    if kind == "file":
        name.write_text("x")
    if kind == "link":
        name.symlink_to(witness.parent)
    before = state(name.parent)

    with pytest.raises(TargetError, match=r"\.pgdyno-work\.new"):
        take_stage_folder(name.parent, tmp_path / "home")

    assert state(name.parent) == before


@pytest.mark.parametrize("kind", ["folder", "full", "file", "link"])
def test_a_place_of_somebodys_is_refused(tmp_path: Path, kind: str, witness: Path) -> None:
    outside = tmp_path / "srv"
    outside.mkdir()
    name = outside / "pgdyno-work"
    if kind in ("folder", "full"):
        name.mkdir()
    if kind == "full":
        (name / "data").mkdir()
    if kind == "file":
        name.write_text("x")
    if kind == "link":
        name.symlink_to(witness.parent)
    before = state(outside)

    with pytest.raises(TargetError):
        take_stage_folder(outside, tmp_path / "home")

    assert state(outside) == before


def test_a_place_does_not_lie_in_the_home(tmp_path: Path) -> None:
    (tmp_path / "home" / "work").mkdir(parents=True)

    with pytest.raises(TargetError, match="which pgdyno keeps for itself"):
        take_stage_folder(tmp_path / "home" / "work", tmp_path / "home")


# -- folders for a while ----------------------------------------------------------------------

KILLED = """
import os, signal, sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from pgdyno.folders import scratch
with scratch(Path(sys.argv[1]), "pgdyno-x-") as folder:
    folder.write("half", "x")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_kill_left_goes_when_the_next_one_comes(tmp_path: Path) -> None:
    foreign = tmp_path / "pgdyno-x-theirs"
    foreign.mkdir()
    (foreign / "precious").write_text("kept")
    (tmp_path / "pgdyno-x-link").symlink_to(foreign)
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], timeout=DEADLINE_S, check=False)
    assert len(list(tmp_path.iterdir())) == 3

    with scratch(tmp_path, "pgdyno-x-") as first, scratch(tmp_path, "pgdyno-x-") as second:
        assert first.path != second.path
        assert len(list(tmp_path.iterdir())) == 4
        assert stat.S_IMODE(first.facts.st_mode) == 0o755

    assert sorted(one.name for one in tmp_path.iterdir()) == ["pgdyno-x-link", "pgdyno-x-theirs"]
    assert (foreign / "precious").read_text() == "kept"


def test_what_its_maker_is_removing_is_left_to_it(tmp_path: Path) -> None:
    """Its mark goes last but one, and what is held without a mark is no leftover of a kill."""
    with scratch(tmp_path, "pgdyno-x-") as leaving:
        leaving.remove(MARK)
        with scratch(tmp_path, "pgdyno-x-"):
            assert leaving.path.is_dir()
    left = tmp_path / "pgdyno-x-left"
    left.mkdir()
    with scratch(tmp_path, "pgdyno-x-"):
        assert not left.exists(), "nobody holds it"


def test_removing_what_is_not_there_is_fine(tmp_path: Path) -> None:
    remove_folder(tmp_path / "nothing")
    remove_folder(tmp_path / "no" / "where")


def test_a_folder_of_the_passing_name_goes_only_with_a_mark_that_is_one(tmp_path: Path) -> None:
    """What lies in a folder that is called like a mark is somebody's."""
    precious = tmp_path / ".place.new" / MARK / "precious"
    precious.parent.mkdir(parents=True)
    precious.touch()
    with Folder.hold(tmp_path) as outside:
        with pytest.raises(TargetError, match="may be somebody else's"):
            outside.appear("place")
        assert precious.exists()
        precious.unlink()
        precious.parent.rmdir()
        precious.parent.touch()
        outside.appear("place").close()
        assert outside.names() == ["place"]
