"""The recorder hears of the window's begin and end once, whatever the driver says in between."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pgdyno.model.progress import DriveProgress
from pgdyno.sample.recorder import Recorder
from pgdyno.trial.window import Watch


class Heard(Recorder):
    """Notes what it is told."""

    def __init__(self) -> None:
        super().__init__([])
        self.words: list[str] = []

    def window_begins(self) -> None:
        self.words.append("begin")

    def window_ends(self) -> None:
        self.words.append("end")


@pytest.mark.parametrize(
    ("phases", "words"),
    [
        (["connect", "warmup", "warmup", "window", "window", "drain", "done"], ["begin", "end"]),
        (["connect", "window"], ["begin", "end"]),  # no drain, and the last word was before its end
        (["connect", "warmup"], []),  # it broke before
    ],
)
def test_the_windows_ends_are_told_once(phases: Sequence[str], words: Sequence[str]) -> None:
    seen: list[str] = []
    heard = Heard()
    watch = Watch(lambda state: seen.append(state.phase), [heard])

    for phase in phases:
        watch.tell(DriveProgress(phase, 0.0))
    watch.ended()

    assert heard.words == words
    assert seen == phases
