"""A long log: read in pieces, kept within a bound, never held as a whole."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgdyno.sample.server_log import read_log
from pgdyno.target.server_log import LINE_BYTES, LogTail, last_words, log_lines, log_text

HEAD = "2026-11-21 22:10:00.100 UTC [11] LOG:  starting PostgreSQL 18.6\n"
NOISE = "2026-11-21 22:10:05.000 UTC [12] LOG:  statement: SELECT 1 -- and so on\n"
TAIL = "2026-11-21 22:10:33.000 UTC [11] PANIC:  no space left on device\n"
MIB = 1 << 20


@pytest.fixture
def log(tmp_path: Path) -> Iterator[int]:
    handle = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    yield handle
    os.close(handle)


def test_a_short_log_is_kept_whole(log: int) -> None:
    os.write(log, (HEAD + TAIL).encode())

    assert log_text(log) == HEAD + TAIL
    assert list(log_lines(log)) == [HEAD[:-1], TAIL[:-1]]
    assert last_words(log).endswith("PANIC:  no space left on device")


def test_of_a_long_log_begin_and_end_are_kept_and_the_rest_is_counted(log: int) -> None:
    os.write(log, (HEAD + NOISE * 1000 + TAIL).encode())
    size = os.fstat(log).st_size

    kept = log_text(log, 1000)

    assert kept.startswith(HEAD)
    assert kept.endswith(TAIL)
    assert f"[pgdyno: {size - 1000} of {size} bytes are left out here]" in kept
    assert len(kept) < 1100


def test_lines_end_with_a_newline_and_nothing_else(log: int) -> None:
    os.write(log, b"one\r two\x0b three\nfour\xff\n\nlast")

    assert list(log_lines(log)) == ["one\r two\x0b three", "four\ufffd", "", "last"]


def test_a_log_larger_than_memory_is_read(log: int) -> None:
    """200 MiB, most of them one line without an end; what is held of it is a tenth of that."""
    os.write(log, HEAD.encode())
    block = (NOISE * (MIB // len(NOISE))).encode()
    for _ in range(8):
        os.write(log, block)
    os.lseek(log, 192 * MIB, os.SEEK_CUR)  # a hole: one line of zeros
    os.write(log, b"\n" + TAIL.encode())
    tracemalloc.start()
    try:
        told = read_log(log_lines(log))
        kept = log_text(log)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert told.bad == {"PANIC: no space left on device": 1}
    assert kept.startswith(HEAD)
    assert kept.endswith(TAIL)
    assert peak < 24 * MIB
    assert max(map(len, log_lines(log))) <= LINE_BYTES


def test_a_tail_tells_what_comes_from_now_on(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w+b", buffering=0) as file:
        file.write(b"before\n")
        tail = LogTail(file.fileno())
        assert tail.new_lines() == []
        file.write(b"one\ntw")
        assert tail.new_lines() == ["one"]
        file.write(b"o\n\xff\n")
        assert tail.new_lines() == ["two", "\ufffd"]
        file.seek(0)
        file.truncate()
        file.write(b"new\n")
        assert tail.new_lines() == ["new"], "it was begun anew"
        assert tail.unread_bytes == 0


def test_a_tail_stays_in_the_present_whatever_comes(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w+b", buffering=0) as file:
        tail = LogTail(file.fileno())
        file.write(b"x" * (3 << 20) + b"\nlast\n")
        lines = tail.new_lines()
        assert lines[-1] == "last"
        assert max(map(len, lines)) <= LINE_BYTES
        assert tail.unread_bytes == (3 << 20) + 6 - (256 << 10)
        file.write(b"y" * (LINE_BYTES * 3))
        assert tail.new_lines() == []
        file.write(b"\n")
        assert tail.new_lines() == ["y" * LINE_BYTES]
