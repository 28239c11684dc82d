"""A campaign of run files that are none, or none any more: reported, or refused by name.

Bits are flipped, ends cut off, pages swapped; JSON in the rows is mutated as text; other SQLite
files, other formats, folders, pipes and devices stand where a run file was.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from pgdyno.model.run import SnapshotColumn, SnapshotRows
from pgdyno.store.series_bytes import UNPACKED_BYTES_MAX
from pgdyno.store.telemetry_rows import put_snapshots
from tests.attack.mutations import spoiled
from tests.attack.outcome import Tally, command, listing, require_clean
from tests.data.miniature import write_miniature

ROOT = Path(__file__).parents[2]
SEED = 14
_ROWS = (("head", "value"), ("trial", "record"), ("series", "samples"), ("times", "unix_ns"),
         ("log", "content"), ("trial", "state"), ("trial", "stage"), ("series", "unix_ns"),
         ("series", "times"), ("tally", "dimensions"), ("tally", "keys"), ("tally", "seconds"),
         ("tally", "key"), ("tally", "counts"), ("tally", "ticks"), ("snapshot", "columns"),
         ("snapshot", "rows"), ("snapshot", "at"))  # fmt: skip
_DEEP = "[" * 200_000
# Three digits, up to an hour; it says that its counts are 4 GiB, and has 20 bytes of them.
_HISTOGRAM = "HISTFAAAACJ4nJNpmSz8HwgYIIAZSjMCmW4GOxYw2H+ACDBhAQB+7ghv"
_LARGE = zlib.compress(bytes(UNPACKED_BYTES_MAX + 8))  # a thousandth of it


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Whole run files: a small plan's, and one of the first format."""
    path = write_miniature(tmp_path_factory.mktemp("run") / "run.sqlite")
    columns = (SnapshotColumn("table", "", "label"), SnapshotColumn("bytes", "B", "gauge"))
    rows = SnapshotRows("tables", "end", 5, columns, ({"table": "a", "bytes": 7},))
    with closing(sqlite3.connect(path)) as db, db:
        put_snapshots(db, 1, [rows])
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


_ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT"
_PLANTED: dict[str, tuple[str, tuple[object, ...]]] = {
    "brackets in words": ("UPDATE tally SET dimensions = ?", (_DEEP,)),
    "brackets in keys": ("UPDATE tally SET keys = ?", (zlib.compress(_DEEP.encode()),)),
    "brackets in columns": ("UPDATE snapshot SET columns = ?", (_DEEP,)),
    "brackets in rows": ("UPDATE snapshot SET rows = ?", (zlib.compress(_DEEP.encode()),)),
    "brackets in a head": ("UPDATE head SET value = ? WHERE key = 'info'", (_DEEP,)),
    "brackets in a trial": ("UPDATE trial SET record = ?", (_DEEP,)),
    "a long histogram": (
        "UPDATE trial SET record = json_set(record, '$.result.kinds[0].response', ?)",
        (_HISTOGRAM,),
    ),
    "many samples": ("UPDATE series SET samples = ?", (_LARGE,)),
    "many times": ("UPDATE times SET unix_ns = ?", (_LARGE,)),
    "many counts": ("UPDATE tally SET counts = ?", (_LARGE,)),
    "many keys": ("UPDATE tally SET keys = ?", (_LARGE,)),
    "many rows": ("UPDATE snapshot SET rows = ?", (_LARGE,)),
    "an endless view": (
        f"CREATE VIEW trial AS {_ENDLESS} x AS number, 1 AS round, '' AS stage, '' AS state,"
        " '{}' AS record FROM n", (),
    ),
    "an endless view in other letters": (f"CREATE VIEW Head AS {_ENDLESS} x AS key FROM n", ()),
    "an endless trigger": (
        f"CREATE TRIGGER t BEFORE INSERT ON head BEGIN INSERT INTO log {_ENDLESS} x, '', '' FROM n;"
        " END", (),
    ),
    "a column that is computed": (
        "ALTER TABLE log ADD COLUMN long TEXT AS (hex(zeroblob(400000000)))", (),
    ),
}  # fmt: skip
"""What a small file can hold that takes a reader without end: SQL, and its values."""


@pytest.mark.parametrize("what", _PLANTED)
@pytest.mark.parametrize("form", ["report", "resume", "history"])
def test_a_small_file_takes_neither_all_memory_nor_all_time(
    tmp_path: Path, originals: list[bytes], monkeypatch: pytest.MonkeyPatch, what: str, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("attacked.sqlite").write_bytes(originals[0])
    statement, values = _PLANTED[what]
    with closing(sqlite3.connect("attacked.sqlite")) as db, db:
        if view := re.match("CREATE VIEW ([A-Za-z]+)", statement):
            db.execute(f"ALTER TABLE {view[1]} RENAME TO other")
        db.execute(statement, values)
    before = listing(tmp_path)

    words = {"report": ("attacked.sqlite", "-f", "md", "--out", "-"), "history": (".",)}
    ended = command(monkeypatch, form, *words.get(form, ("attacked.sqlite",)))

    how = require_clean(ended, *(["attacked.sqlite"] if ended.code and form != "resume" else []))
    assert form != "report" or how == "refused"
    assert listing(tmp_path) == before


def test_brackets_in_a_file_of_the_first_format_are_refused(
    tmp_path: Path, originals: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("attacked.sqlite").write_bytes(originals[1])
    with closing(sqlite3.connect("attacked.sqlite")) as db, db:
        db.execute("UPDATE head SET value = ? WHERE key = 'info'", (_DEEP,))

    ended = command(monkeypatch, "report", "attacked.sqlite", "--out", "-")

    assert require_clean(ended, "attacked.sqlite") == "refused"
