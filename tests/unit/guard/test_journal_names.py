"""A journal is on the disk with all names that lead to it before anything is overwritten."""

from __future__ import annotations

import os
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
    for path in (own / "pages", own / "runs", own, own.parent, own.parent.parent, tmp_path):
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
