"""Journals: on the disk with all their names before anything is overwritten, and of whose data."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.folders import Folder
from pgdyno.guard import journal
from pgdyno.guard.state import folder_at
from pgdyno.guard.writing import write_new
from pgdyno.model.errors import TargetError
from pgdyno.model.repair import RedoBegin

BEGIN = RedoBegin(
    18, "7", "in production", False, False, "0/1", "0/1", 1, True, False, 1, 8192, 131072, 16 << 20
)


def test_every_name_that_leads_to_a_journal_is_synced_before_the_cluster_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, write = os.fsync, os.pwrite

    def fsync(handle: int) -> None:
        done.append(os.readlink(f"/proc/self/fd/{handle}"))
        sync(handle)

    def pwrite(handle: int, data: bytes, at: int) -> int:
        done.append("pwrite")
        return write(handle, data, at)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "pwrite", pwrite)
    (tmp_path / "data" / "base" / "5").mkdir(parents=True)
    (tmp_path / "data" / "global").mkdir()
    (tmp_path / "data" / "base" / "5" / "7").write_bytes(b"old.")
    with (
        Folder.hold(tmp_path / "data") as data,
        folder_at(tmp_path / "state" / "7") as journals,
        journal.new(journals) as (folder, writer),
    ):
        writer.add("base/5/7", 0, 0, b"old.", b"new.", ("0/1",))
        head = writer.seal(journal.head_for(BEGIN, "0/2", data))
        write_new(data, folder, head)
    assert (tmp_path / "data" / "base" / "5" / "7").read_bytes() == b"new."
    before = done[: done.index("pwrite")]
    own = tmp_path / "state" / "7" / "repair-0001"
    for path in (own / "pages", own / "groups", own, own.parent, own.parent.parent, tmp_path):
        assert str(path) in before, path


def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    """Whoever names one of his for journals would find it closed to everybody who uses it."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for mode in (0o755, 0o750):
        theirs.chmod(mode)
        with folder_at(theirs) as journals, journal.new(journals) as (folder, _):
            assert folder.facts.st_mode & 0o777 == 0o700, "what is ours is closed"
        assert theirs.stat().st_mode & 0o777 == mode
    for mode in (0o777, 0o1777):
        theirs.chmod(mode)
        with pytest.raises(TargetError, match=f"mode {mode:03o}"):
            folder_at(theirs)
        assert theirs.stat().st_mode & 0o1777 == mode
    with folder_at(tmp_path / "above" / "ours") as made:
        assert made.facts.st_mode & 0o777 == 0o700


def test_a_repair_that_was_broken_off_stands_in_the_way_of_its_own_data_alone(
    tmp_path: Path,
) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "global").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    later = replace(BEGIN, redo_lsn="0/9")
    with (
        Folder.hold(tmp_path / "a") as data,
        Folder.hold(tmp_path / "link") as linked,
        Folder.hold(tmp_path / "b") as others,
        folder_at(tmp_path / "journals") as journals,
    ):
        with journal.new(journals) as (folder, writer):
            writer.add("base/5/7", 0, 0, b"old.", b"new.", ("0/1",))
            writer.seal(journal.head_for(BEGIN, "0/2", data))
            name = folder.path.name
        for ours in (data, linked):
            assert journal.unfinished(journals, BEGIN, ours) is not None
            assert journal.latest(journals, ours) is not None
        for begin in (BEGIN, later):  # a standby has the same system, and its journals lie here
            assert journal.unfinished(journals, begin, others) is None
        assert journal.latest(journals, others) is None
        with pytest.raises(
            TargetError, match=r"redo from 0/1, the cluster is .* from 0/9"
        ) as caught:
            journal.unfinished(journals, later, data)
        assert f"remove {journals.path / name}" in (caught.value.hint or ""), "how to go on"
        # The data were made anew at the same path, as pg_basebackup does.
        (tmp_path / "a" / "global").rename(tmp_path / "a" / "before")
        (tmp_path / "a" / "global").mkdir()
        assert journal.unfinished(journals, later, data) is None
        assert journal.latest(journals, data) is None


def test_a_journal_of_another_version_is_refused_by_its_version(tmp_path: Path) -> None:
    """What else it says of itself has other names there."""
    with folder_at(tmp_path / "journals") as journals, journal.new(journals) as (folder, _):
        folder.write("state", '{"version": 2, "state": "whole", "runs_sha256": ""}', 0o600)
        with pytest.raises(TargetError, match="has version 2, this pgdyno reads 3") as caught:
            journal.head_of(folder)
        assert caught.value.hint == "Use the pgdyno that wrote it."


@pytest.mark.parametrize("state", ["", "[]", '{"version": 3}'])
def test_a_state_that_is_none_is_damage(tmp_path: Path, state: str) -> None:
    with folder_at(tmp_path / "journals") as journals, journal.new(journals) as (folder, _):
        folder.write("state", state, 0o600)
        with pytest.raises(TargetError, match="is damaged: its state"):
            journal.head_of(folder)


def test_runs_that_follow_each_other_share_a_sum_and_come_back_as_they_were(
    tmp_path: Path,
) -> None:
    (tmp_path / "data" / "global").mkdir(parents=True)
    runs = [
        ("a", 0, b"old.", b"new.", None, 3), ("a", 40, b"ab", b"cd", None, 3),
        ("b", 8, b"", b"grown", (None, 13), 3), ("b", 0, b"x", b"", (1, None), 3),
        ("a", 4, b"0", b"1", None, 0),
    ]  # fmt: skip
    with (
        Folder.hold(tmp_path / "data") as data,
        folder_at(tmp_path / "journals") as journals,
        journal.new(journals) as (folder, writer),
    ):
        for path, at, old, new, ends, step in runs:
            writer.add(path, at, at, old, new, ends=ends, step=step)
        head = writer.seal(journal.head_for(BEGIN, "0/2", data))
        assert head.runs == len(runs)
        assert len(folder.read("groups").splitlines()) == 4
        for step in (0, 3):
            found = [
                (run.path, run.file_at, bytes(old), bytes(new), run.ends)
                for run, old, new in journal.runs_of(folder, head, step)
            ]
            assert found == [one[:5] for one in runs if one[5] == step]
        pages = tmp_path / "journals" / folder.path.name / "pages"
        pages.write_bytes(pages.read_bytes().replace(b"cd", b"ce"))
        with pytest.raises(TargetError, match="is damaged: byte 0 of a"):
            list(journal.runs_of(folder, head, 3))
