"""A run file read without a lock: whole, or not at all, and never in the writer's way."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from pgdyno.model.errors import StoreError
from pgdyno.store import RunFile
from pgdyno.store.unlocked import read_unlocked
from tests.data.miniature import write_miniature


def unpaused(_seconds: float) -> None:
    """No time passes in a test."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_miniature(tmp_path / "run.sqlite")


def test_it_holds_what_the_file_holds(path: Path) -> None:
    with read_unlocked(path) as unlocked, RunFile.read(path) as locked:
        assert unlocked.info() == locked.info()
        assert unlocked.trials() == locked.trials()
        assert unlocked.series(1).keys() == locked.series(1).keys()


def test_what_is_read_keeps_no_writer_from_writing(path: Path) -> None:
    with read_unlocked(path) as unlocked:
        unlocked._db.execute("BEGIN")
        unlocked._db.execute("SELECT count(*) FROM trial").fetchone()
        with sqlite3.connect(path, timeout=0) as writer:
            writer.execute("BEGIN EXCLUSIVE")
            writer.execute("DELETE FROM log")


def test_in_the_middle_of_a_transaction_it_is_tried_again(path: Path) -> None:
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA cache_size = 1")  # so that pages are written before the end
    writer.execute("PRAGMA cache_spill = 1")
    before = path.read_bytes()
    writer.execute("BEGIN")
    writer.executemany(
        "INSERT INTO log VALUES (1, ?, ?)", [(f"n{i}", "x" * 4000) for i in range(99)]
    )
    assert path.read_bytes() != before, "half of it lies in the file"
    tried: list[float] = []

    def pause(seconds: float) -> None:
        tried.append(seconds)
        if len(tried) == 3:
            writer.commit()

    with read_unlocked(path, pause) as found:
        assert len(found.logs(1)) == 99
    assert len(tried) == 3
    writer.close()


def test_who_writes_all_the_time_is_told_as_such(path: Path) -> None:
    path.with_name("run.sqlite-journal").touch()

    with pytest.raises(StoreError, match="was written at each of 100 looks"):
        read_unlocked(path, unpaused)


def test_a_write_between_the_looks_is_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole transaction between two looks for a journal: only the counter tells of it."""
    looks: list[bool] = []
    exists = Path.exists

    def looked(self: Path) -> bool:
        looks.append(exists(self))
        if len(looks) == 1:  # the counter was read, the content was not
            writer = sqlite3.connect(path)
            with writer:
                writer.execute("INSERT INTO log VALUES (1, 'late', 'x')")
            writer.close()
        return looks[-1]

    monkeypatch.setattr(Path, "exists", looked)
    with read_unlocked(path, unpaused) as found:
        assert "late" in found.logs(1)
    assert looks == [False] * 4, "it was tried a second time"


def test_while_another_thread_writes_every_look_is_whole(path: Path) -> None:
    begun, stop = threading.Event(), threading.Event()

    def write() -> None:
        number = 0
        with sqlite3.connect(path) as writer:
            writer.execute("PRAGMA synchronous = off")
            while not stop.is_set():
                number += 1
                rows = [(number, f"n{place}", str(number) * 3000) for place in range(8)]
                writer.execute("DELETE FROM log")
                writer.executemany("INSERT INTO log VALUES (?, ?, ?)", rows)
                writer.commit()
                begun.set()
                stop.wait(0.01)  # who never rests is told as such, see above
        writer.close()

    thread = threading.Thread(target=write)
    thread.start()
    begun.wait()
    try:
        seen = set()
        for _ in range(10):
            with read_unlocked(path) as found:
                assert found._db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
                numbers = {row[0] for row in found._db.execute("SELECT trial FROM log")}
                count = found._db.execute("SELECT count(*) FROM log").fetchone()[0]
            assert len(numbers) <= 1
            assert count in (0, 8)
            seen |= numbers
    finally:
        stop.set()
        thread.join()
    assert seen


@pytest.mark.parametrize("content", [b"", b"x", b"SQLite format 3\0" + b"\0" * 4080])
def test_what_is_no_run_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.sqlite"
    path.write_bytes(content)

    with pytest.raises(StoreError):
        read_unlocked(path, unpaused)
    with pytest.raises(StoreError):
        read_unlocked(tmp_path / "none.sqlite", unpaused)
