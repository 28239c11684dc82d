"""The folder that probes write in, and what runs in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.folders import MARK
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.probe.fio import find_fio
from pgdyno.probe.folder import accepts_direct, own_folder, require_room
from pgdyno.probe.program import run_probe
from tests.waiting import until


def test_commas_between_folders_are_answered_with_how_they_are_named(tmp_path: Path) -> None:
    """`--folder` of `run` takes them."""
    with pytest.raises(PlanError) as refused:
        require_room([Path(f"{tmp_path},{tmp_path}")], 1)
    assert refused.value.hint == "Name folders that exist, with spaces between them: /a /b."
    assert refused.value.fact == f"{tmp_path},{tmp_path}: no such file or directory"


def test_a_number_that_is_no_folder_is_taken_for_the_value_of_an_option(tmp_path: Path) -> None:
    """Of `--depths 1 16` the shell makes a path of the second."""
    with pytest.raises(PlanError) as refused:
        require_room([tmp_path, tmp_path / "16"], 1)
    assert refused.value.hint == (
        "Name folders that exist. Commas separate the values of an option: --depths 1,16."
    )


def test_the_folder_goes_however_it_ends(tmp_path: Path) -> None:
    def interrupted() -> None:
        with own_folder(tmp_path) as folder:
            (folder / "data").write_bytes(b"x")
            assert folder.parent == tmp_path
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_use_stays_and_a_dead_one_goes(tmp_path: Path) -> None:
    dead = tmp_path / ".pgdyno-storage-dead"
    dead.mkdir()
    (dead / MARK).touch()
    (tmp_path / ".pgdyno-storage-just-made").mkdir()  # killed before it had its mark
    foreign = tmp_path / ".pgdyno-storage-foreign"
    foreign.mkdir()
    (foreign / "data").touch()
    (tmp_path / ".pgdyno-storage-link").symlink_to(foreign)
    with own_folder(tmp_path) as first:
        with pytest.raises(PlanError, match="another pgdyno works in"), own_folder(tmp_path):
            pytest.fail("both would measure each other")
        assert first.is_dir()

    assert sorted(tmp_path.iterdir()) == [foreign, tmp_path / ".pgdyno-storage-link"]
    assert (foreign / "data").exists()


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="is not a folder"), own_folder(tmp_path / "nothing"):
        pass


def test_too_little_room_is_refused_with_both_values(tmp_path: Path) -> None:
    free = require_room([tmp_path], 1)[tmp_path]

    with pytest.raises(PlanError, match=r"free, of which 5% stay free, and the probe needs "):
        require_room([tmp_path], free)


def test_paths_of_one_file_system_need_room_together(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    half = int(require_room([tmp_path], 1)[tmp_path] * 0.7)
    require_room([tmp_path], half)

    with pytest.raises(PlanError, match="the probe needs"):
        require_room([tmp_path, other], half)


def test_direct_writes_leave_no_file(tmp_path: Path) -> None:
    assert accepts_direct(tmp_path) in (True, False)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_fio_is_told_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(TargetError, match="fio is not on PATH") as caught:
        find_fio()
    assert "apt-get install fio" in (caught.value.hint or "")


def test_a_failed_program_is_told_with_its_first_words() -> None:
    args = ["sh", "-c", "echo no space; echo no space; exit 3"]

    with pytest.raises(TargetError, match=r"fill it: sh ended with code 3: no space$"):
        run_probe(args, timeout_s=10, what="fill it")


def test_a_killed_program_is_told_with_its_signal() -> None:
    with pytest.raises(TargetError, match="signal SIGKILL: it said nothing"):
        run_probe(["sh", "-c", "kill -9 $$"], timeout_s=10, what="fill it")


def test_a_program_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    args = ["sh", "-c", f"sleep 60 & echo $! > {pid}; wait"]

    for timeout_s in (1, 10, 100):
        with pytest.raises(TargetError, match=f"did not end within {timeout_s} s"):
            run_probe(args, timeout_s=timeout_s, what="wait")
        if pid.exists():  # on a busy machine it may not come so far in a second
            break
    until(lambda: _ended(int(pid.read_text())), "its end")


def _ended(pid: int) -> bool:
    """Whether it is gone, or waits for its parent to take note."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "Z"
    except FileNotFoundError:
        return True


def test_all_that_a_probe_would_refuse_is_refused_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(PlanError, match="file is not a folder"):
        require_room([file], 1)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("pgdyno.probe.folder.stranger_on", lambda _: Path("/srv/theirs"))
    with pytest.raises(PlanError, match="others than root can change /srv/theirs"):
        require_room([tmp_path], 1)


def test_two_names_of_one_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    with pytest.raises(PlanError, match=r"/disk and .*/link are one folder"):
        require_room([tmp_path / "disk", tmp_path / "link"], 1)


def test_where_nothing_can_be_written_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_room([tmp_path], 1)
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(PlanError, match="nothing can be written in it") as refused:
        require_room([tmp_path], 1)
    assert "read-only" in str(refused.value.hint)
