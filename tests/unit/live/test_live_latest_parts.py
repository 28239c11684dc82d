"""The latest parts: what viewers are sent, and that nothing piles up for a slow one."""

from __future__ import annotations

import json
import threading

from pgdyno.live.latest_parts import LatestParts
from tests.data.hostile import WORDS


def test_a_viewer_gets_every_part_once_and_then_what_is_newer() -> None:
    latest = LatestParts()
    latest.put("head", {"a": 1})
    latest.put("progress", 1)

    version, parts, is_last = latest.newer(0, 0)
    assert (dict(parts), is_last) == ({"head": b'{"a":1}', "progress": b"1"}, False)
    assert latest.newer(version, 0)[1] == []

    latest.put("progress", 2)
    assert latest.newer(version, 0)[1] == [("progress", b"2")]


def test_a_slow_viewer_gets_the_newest_only() -> None:
    latest = LatestParts()
    for number in range(1000):
        latest.put("progress", number)

    assert latest.newer(0, 0)[1] == [("progress", b"999")]


def test_what_is_equal_is_not_sent_again() -> None:
    latest = LatestParts()
    latest.put("found", {"x": [1, 2]})
    version, _, _ = latest.newer(0, 0)
    latest.put("found", {"x": (1, 2)})

    assert latest.newer(version, 0)[0] == version


def test_no_text_ends_a_line_of_the_stream_or_hides() -> None:
    latest = LatestParts()
    latest.put("notes", [*WORDS.values(), "\udcff"])

    ((_, text),) = latest.newer(0, 0)[1]
    assert text.isascii()
    assert b"\n" not in text
    assert b"\r" not in text
    shown = json.loads(text)
    assert len(shown) == len(WORDS) + 1
    assert not any("\u202e" in one or "\x1b" in one for one in shown)


def test_who_waits_is_woken_by_news_and_by_the_end() -> None:
    latest = LatestParts()
    heard: list[tuple[int, int, bool]] = []

    def view() -> None:
        version, is_last = 0, False
        with latest:
            while not is_last:
                version, parts, is_last = latest.newer(version, 60)
                heard.append((version, len(parts), is_last))

    viewer = threading.Thread(target=view)
    viewer.start()
    latest.put("progress", 1)
    latest.put("end", 2)
    latest.close(60)
    viewer.join(60)

    assert heard[-1][2]
    assert sum(count for _, count, _ in heard) == 2
    assert (latest.viewers, latest.viewers_max) == (0, 1)


def test_a_part_is_made_when_somebody_looks_and_once() -> None:
    latest, made = LatestParts(), [0]

    def make() -> int:
        made[0] += 1
        return made[0]

    for _ in range(3):
        latest.put_later("now", make)
    assert made == [0]
    version, parts, _ = latest.newer(0, 0.0)
    assert (parts, made) == ([("now", b"1")], [1])
    assert latest.newer(0, 0.0)[1] == parts, "who comes later sees the same"
    latest.put_later("now", make)
    assert latest.newer(version, 0.0)[1] == [("now", b"2")]
    latest.put("now", None)
    assert latest.newer(version, 0.0)[1] == [("now", b"null")]
    assert made == [2]
