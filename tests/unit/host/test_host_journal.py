"""Where the journal lies, who is believed, and what a full disk leaves of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pgdyno.host.change import apply, plan
from pgdyno.host.journal import EARLIER_NAME, Change, Journal, JournalError
from pgdyno.host.knob_location import knob_location
from pgdyno.host.state_folder import state_folder
from pgdyno.host.undo import restore
from pgdyno.model.errors import TargetError

BOOT = "7f0c"
LINE = (
    '{"what": "%s", "number": 1, "boot": "7f0c", "change": {"key": "vm.swappiness",'
    ' "before": "60", "after": "1", "also": []}}\n'
)


def test_it_lies_outside_of_what_may_be_removed() -> None:
    home = {"PGDYNO_HOME": "/srv/pgdyno", "XDG_STATE_HOME": "/srv/states"}
    own = "/var/lib/pgdyno-host" if os.geteuid() == 0 else "/srv/states/pgdyno-host"
    assert str(state_folder(home)) == own
    assert state_folder(home | {"PGDYNO_HOST_STATE": "/srv/x"}) == Path("/srv/x")
    with pytest.raises(TargetError, match="expected an absolute path"):
        state_folder({"PGDYNO_HOST_STATE": "here"})


def test_one_of_an_earlier_version_is_still_restored(tree: Path) -> None:
    path = tree.parent / EARLIER_NAME
    path.write_text(LINE % "intend" + LINE % "done")
    path.chmod(0o644)
    knob_location("vm.swappiness", tree).write("1")
    today = Journal(tree.parent / "state" / "journal.jsonl", BOOT)
    (one,) = restore([today, Journal(path, BOOT, earlier=True)], root=tree)
    assert one.fate == "restored"
    assert knob_location("vm.swappiness", tree).read() == "60"
    assert restore([today, Journal(path, BOOT, earlier=True)], root=tree) == ()
    assert not today.path.parent.exists(), "restore makes no journal"


def test_its_folder_is_made_for_us_alone(tree: Path) -> None:
    book = Journal(tree.parent / "a/b/journal.jsonl", BOOT)
    apply(plan([("vm.swappiness", "1")], tree), book, root=tree)
    assert book.path.parent.stat().st_mode & 0o777 == 0o700
    assert book.path.stat().st_mode & 0o777 == 0o600


def strangers(folder: Path) -> dict[str, Path]:
    """Ways in which somebody else could have root write, or believe, a file of theirs."""
    victim = folder / "victim"
    victim.write_text(LINE % "intend")
    paths = {name: folder / name / "journal.jsonl" for name in ("link", "above", "hard", "fifo")}
    for path in paths.values():
        path.parent.mkdir()
    paths["link"].symlink_to(victim)
    paths["hard"].hardlink_to(victim)
    os.mkfifo(paths["fifo"])
    (folder / "to").symlink_to(paths["above"].parent)
    paths["above"] = folder / "to" / "journal.jsonl"
    for name, mode in (("open-file", 0o644), ("open-folder", 0o777)):
        paths[name] = folder / name / "journal.jsonl"
        paths[name].parent.mkdir()
        paths[name].write_text(LINE % "intend")
        paths[name].parent.chmod(mode | 0o100)
    paths["open-file"].chmod(0o666)
    return paths


@pytest.mark.parametrize("kind", ["link", "above", "hard", "fifo", "open-file", "open-folder"])
def test_a_journal_that_others_could_have_written_is_not_believed(tree: Path, kind: str) -> None:
    path = strangers(tree.parent)[kind]
    victim = tree.parent / "victim"
    held = victim.read_text()
    knob_location("vm.swappiness", tree).write("1")
    with pytest.raises(TargetError, match=r"is a link|not a plain file|belongs to user"):
        restore([Journal(path, BOOT)], root=tree)
    with pytest.raises(TargetError, match=r"is a link|not a plain file|belongs to user"):
        apply(plan([("vm.swappiness", "5")], tree), Journal(path, BOOT), root=tree)
    assert knob_location("vm.swappiness", tree).read() == "1"
    assert victim.read_text() == held


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_one_that_belongs_to_somebody_else_is_not_believed(tree: Path) -> None:
    path = tree.parent / EARLIER_NAME
    path.write_text(LINE % "intend")
    os.chown(path, 65534, 65534)
    with pytest.raises(TargetError, match="belongs to user 65534"):
        restore([Journal(path, BOOT, earlier=True)], root=tree)
    folder = tree.parent / "theirs"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    with pytest.raises(TargetError, match="so that others could exchange what is in it"):
        apply(
            plan([("vm.swappiness", "5")], tree), Journal(folder / "own/j", BOOT), root=tree
        )  # fmt: skip
    assert list(folder.iterdir()) == []


def test_a_line_that_finds_no_room_leaves_the_others_whole(tree: Path) -> None:
    """The disk is full: nothing is changed, and what was changed before can be put back."""
    script = f"""
import resource, signal, sys
from pathlib import Path
from pgdyno.host.change import apply, plan
from pgdyno.host.journal import Journal
from pgdyno.model.errors import TargetError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
root, book = Path({str(tree)!r}), Journal(Path({str(tree.parent / "journal.jsonl")!r}), {BOOT!r})
apply(plan([("vm.swappiness", "1")], root), book, root=root)
size = book.path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + int(sys.argv[1]), -1))
try:
    apply(plan([("kernel.numa_balancing", "0")], root), book, root=root)
except TargetError as error:
    print(error.fact)
"""
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    for room in (0, 1, 100, 250, 320):  # of the first line, within it, of the second one
        done = subprocess.run(
            [sys.executable, "-c", script, str(room)], capture_output=True, text=True, check=True
        )
        assert "write the journal" in done.stdout, (room, done.stderr)
        assert knob_location("kernel.numa_balancing", tree).read() == "1"
        assert knob_location("vm.swappiness", tree).read() == "1"
        undone = restore([Journal(tree.parent / "journal.jsonl", BOOT)], root=tree)
        assert all(one.ok for one in undone)
        assert {path: path.read_bytes() for path in before} == before
        (tree.parent / "journal.jsonl").unlink()


def test_what_is_put_back_is_put_back_though_it_cannot_be_written_down(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = Journal(tree.parent / "journal.jsonl", BOOT)
    wishes = [("vm.swappiness", "1"), ("kernel.numa_balancing", "0")]
    apply(plan(wishes, tree), book, root=tree)

    def full(_book: Journal, _one: object) -> None:
        raise JournalError("write the journal: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "undone", full)
        with pytest.raises(JournalError):
            restore([book], root=tree)
    assert knob_location("vm.swappiness", tree).read() == "60"
    assert knob_location("kernel.numa_balancing", tree).read() == "1"
    assert [one.fate for one in restore([book], root=tree)] == ["was so"] * 2


def test_changes_that_stand_are_told_with_what_became_of_them(tree: Path) -> None:
    book = Journal(tree.parent / "journal.jsonl", BOOT)
    apply(plan([("vm.swappiness", "1")], tree), book, root=tree)
    with book.locked():
        (one,) = book.standing()
    assert (one.number, one.change, one.became) == (1, Change("vm.swappiness", "60", "1"), "1")
