"""A campaign of run files that are none, or none any more: reported, or refused by name.

Bits are flipped, ends cut off, pages swapped; JSON in the rows is mutated as text; other SQLite
files, other formats, folders, pipes and devices stand where a run file was.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.attack.mutations import spoiled
from tests.attack.outcome import Tally, command, listing, require_clean
from tests.data.miniature import write_miniature

ROOT = Path(__file__).parents[2]
SEED = 14
_ROWS = (("head", "value"), ("trial", "record"), ("series", "samples"), ("times", "unix_ns"),
         ("log", "content"), ("trial", "state"), ("trial", "stage"), ("series", "unix_ns"),
         ("series", "times"))  # fmt: skip


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Whole run files: a small plan's, and one of the first format."""
    path = write_miniature(tmp_path_factory.mktemp("run") / "run.sqlite")
    return [path.read_bytes(), (ROOT / "tests" / "data" / "format-1.sqlite").read_bytes()]


def _pages(data: bytes, rng: np.random.Generator) -> bytes:
    pages = [data[at : at + 4096] for at in range(0, len(data), 4096)]
    one, other = (int(n) for n in rng.integers(len(pages), size=2))
    pages[one], pages[other] = pages[other], pages[one]
    return b"".join(pages)


def _bytes(data: bytes, rng: np.random.Generator) -> bytes:
    way = int(rng.integers(4))
    if way == 0:
        return data[: int(rng.integers(len(data)))]
    if way == 1:
        return _pages(data, rng)
    spoilt = bytearray(data)
    first = 100 if way == 2 else 0  # the head of the file, or what comes after it
    for _ in range(int(rng.integers(1, 200))):
        spoilt[int(rng.integers(first, len(spoilt) if first else 100))] ^= 1 << int(rng.integers(8))
    return bytes(spoilt)


def _row(path: Path, rng: np.random.Generator) -> None:
    """A row whose content is mutated as text: SQLite itself finds nothing wrong with the file."""
    with closing(sqlite3.connect(path)) as db, db:
        there = db.execute(
            "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c"
        )
        rows = sorted(set(_ROWS).intersection(there))  # formats differ
        table, column = rows[int(rng.integers(len(rows)))]
        ids = [row for (row,) in db.execute(f"SELECT rowid FROM {table}")]
        if not ids:
            return
        row = ids[int(rng.integers(len(ids)))]
        (value,) = db.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone()
        if isinstance(value, int):
            other = value + 1 + int(rng.integers(9))
            db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (other, row))
            return
        data = spoiled(value.encode() if isinstance(value, str) else value, rng)
        text = data.decode("utf-8", errors="replace") if isinstance(value, str) else data
        db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (text, row))


def _drop(path: Path, rng: np.random.Generator) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        table = ("head", "trial", "series", "log")[int(rng.integers(4))]
        way = ("DROP TABLE {0}", "DELETE FROM {0}", "ALTER TABLE {0} RENAME TO other",
               "PRAGMA application_id = 7", "PRAGMA user_version = 99")  # fmt: skip
        db.execute(way[int(rng.integers(len(way)))].format(table))


def _spoil(path: Path, originals: list[bytes], number: int) -> None:
    """A run file that is mutated in the way of this number."""
    rng = np.random.default_rng([SEED, number])
    data, way = originals[int(rng.integers(len(originals)))], int(rng.integers(8))
    path.write_bytes(_bytes(data, rng) if way < 3 else data)
    if way in (3, 4, 5, 6):
        _row(path, rng)
    elif way == 7:
        _drop(path, rng)


OTHERS = (
    ("compare", "attacked.sqlite"), ("compare", "attacked.sqlite", "whole.sqlite"),
    ("history", "."), ("history", ".", "--fail-below", "0.9", "--against", "whole.sqlite"),
    ("export", "attacked.sqlite", "tables", "--parquet"), ("diagnose", "attacked.sqlite"),
    ("next", "attacked.sqlite", "--rung", "D6"), ("import", "attacked.sqlite"),
    ("report", "attacked.sqlite", "-f", "conf", "--out", "-"),
)  # fmt: skip
"""What else reads run files."""


@pytest.mark.parametrize(
    ("first", "count"), [(400, 36), *(pytest.param(at, 90, marks=pytest.mark.long)
                                      for at in range(436, 706, 90))],
)  # fmt: skip
def test_a_mutated_run_file_is_read_or_refused_by_every_command(
    tmp_path: Path, originals: list[bytes], monkeypatch: pytest.MonkeyPatch, first: int, count: int
) -> None:
    monkeypatch.chdir(tmp_path)
    tally = Tally("mutated run files, other commands")
    Path("whole.sqlite").write_bytes(originals[0])
    for number in range(first, first + count):
        _spoil(Path("attacked.sqlite"), originals, number)
        words = OTHERS[number % len(OTHERS)]
        before = listing(tmp_path)
        with tally.case(number, Path("attacked.sqlite").read_bytes()[:300], " ".join(words)):
            tally.counts[require_clean(command(monkeypatch, *words))] += 1
            shutil.rmtree("tables", ignore_errors=True)
            assert listing(tmp_path) == before
    assert tally.counts["refused"]
    tally.keep()


@pytest.mark.parametrize(
    ("first", "count"), [(0, 60), *(pytest.param(at, 90, marks=pytest.mark.long)
                                    for at in range(60, 330, 90))],
)  # fmt: skip
def test_a_mutated_run_file_is_reported_or_refused(
    tmp_path: Path, originals: list[bytes], monkeypatch: pytest.MonkeyPatch, first: int, count: int
) -> None:
    monkeypatch.chdir(tmp_path)
    tally = Tally("mutated run files")
    path = Path("attacked.sqlite")
    for number in range(first, first + count):
        _spoil(path, originals, number)
        form = "html" if number % 10 == 0 else ("md", "json")[number % 2]
        before = listing(tmp_path)
        with tally.case(number, path.read_bytes()[:300], form):
            ended = command(monkeypatch, "report", "attacked.sqlite", "-f", form, "--out", "-")
            how = require_clean(ended, *(["attacked.sqlite"] if ended.code else []))
            assert listing(tmp_path) == before
            tally.counts[how] += 1
    assert tally.counts["refused"]
    tally.keep()


def _strange(path: Path, what: str) -> None:
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "loop":
        path.symlink_to(path)
    elif what in ("/dev/zero", "/proc/self/mem"):
        path.symlink_to(what)
    elif what == "other SQLite":
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("CREATE TABLE t (a)")
    else:
        path.write_bytes({
            "empty": b"", "text": b"hello\n" * 50, "gzip": b"\x1f\x8b\x08" + b"x" * 99,
            "UTF-16": "x".encode("utf-16"),
        }[what])  # fmt: skip


@pytest.mark.parametrize(
    "what",
    ["folder", "pipe", "loop", "/dev/zero", "/proc/self/mem", "other SQLite", "empty", "text",
     "gzip", "UTF-16"],
)  # fmt: skip
@pytest.mark.parametrize("word", ["report", "resume"])
def test_what_is_no_run_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    _strange(Path("attacked.sqlite"), what)
    before = listing(tmp_path)

    ended = command(monkeypatch, word, "attacked.sqlite")

    assert ended.code == 6
    assert require_clean(ended, "attacked.sqlite") == "refused"
    assert listing(tmp_path) == before
