"""When a disaster strikes a load: in its window, however long connecting takes."""

from __future__ import annotations

import threading
import time

from pgdyno.drills.load import _Window
from pgdyno.model.progress import DriveProgress, Event


def test_nothing_strikes_before_the_window_is_open() -> None:
    heard: list[Event] = []
    window, over = _Window(heard.append), threading.Event()
    connecting, opened = DriveProgress("connect", 2.0), DriveProgress("window", 1.9)
    window.hear(connecting)
    struck: list[bool] = []
    waiting = threading.Thread(target=lambda: struck.append(window.waited(1.9, over)))
    waiting.start()
    time.sleep(0.3)
    assert struck == [], "though more than its share of two seconds may have gone"

    window.hear(opened)
    waiting.join()

    assert struck == [True]
    assert heard == [connecting, opened]


def test_a_load_that_is_over_before_is_struck_no_more() -> None:
    window, over = _Window(lambda _: None), threading.Event()
    over.set()
    assert not window.waited(0.0, over), "it never opened"
    window.hear(DriveProgress("window", 3600.0))
    assert not window.waited(0.0, over), "it ended early"
