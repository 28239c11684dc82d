"""The board: what viewers are sent, and that nothing piles up for a slow one."""

from __future__ import annotations

import json
import threading

from pgdyno.live.board import Board
from tests.data.hostile import WORDS


def test_a_viewer_gets_every_part_once_and_then_what_is_newer() -> None:
    board = Board()
    board.put("head", {"a": 1})
    board.put("progress", 1)

    version, parts, is_last = board.newer(0, 0)
    assert (dict(parts), is_last) == ({"head": b'{"a":1}', "progress": b"1"}, False)
    assert board.newer(version, 0)[1] == []

    board.put("progress", 2)
    assert board.newer(version, 0)[1] == [("progress", b"2")]


def test_a_slow_viewer_gets_the_newest_only() -> None:
    board = Board()
    for number in range(1000):
        board.put("progress", number)

    assert board.newer(0, 0)[1] == [("progress", b"999")]


def test_what_is_equal_is_not_sent_again() -> None:
    board = Board()
    board.put("found", {"x": [1, 2]})
    version, _, _ = board.newer(0, 0)
    board.put("found", {"x": (1, 2)})

    assert board.newer(version, 0)[0] == version


def test_no_text_ends_a_line_of_the_stream_or_hides() -> None:
    board = Board()
    board.put("notes", [*WORDS.values(), "\udcff"])

    ((_, text),) = board.newer(0, 0)[1]
    assert text.isascii()
    assert b"\n" not in text
    assert b"\r" not in text
    shown = json.loads(text)
    assert len(shown) == len(WORDS) + 1
    assert not any("\u202e" in one or "\x1b" in one for one in shown)


def test_who_waits_is_woken_by_news_and_by_the_end() -> None:
    board = Board()
    heard: list[tuple[int, int, bool]] = []

    def view() -> None:
        version, is_last = 0, False
        with board:
            while not is_last:
                version, parts, is_last = board.newer(version, 60)
                heard.append((version, len(parts), is_last))

    viewer = threading.Thread(target=view)
    viewer.start()
    board.put("progress", 1)
    board.put("end", 2)
    board.close(60)
    viewer.join(60)

    assert heard[-1][2]
    assert sum(count for _, count, _ in heard) == 2
    assert (board.viewers, board.viewers_max) == (0, 1)
