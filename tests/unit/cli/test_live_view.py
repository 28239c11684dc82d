"""What the live view of a run prints, where it is no terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from pgdyno.cli.live_view import LiveView
from pgdyno.model.progress import LookTaken


@pytest.mark.parametrize(
    ("rounds", "decides", "when"),
    [(1, False, "in round 1"), (2, False, "in rounds 1 to 2"), (3, True, "after round 3")],
)
def test_a_ratio_names_the_rounds_that_it_is_of(rounds: int, decides: bool, when: str) -> None:
    """*in round 2: ×1.268* stood below that round's two trials, of which one was ×0.982."""
    stream = io.StringIO()

    LiveView(Console(file=stream, width=100))(LookTaken(rounds, ("b so far ×1.2",), 4, decides))

    assert stream.getvalue() == f"{when}: b so far ×1.2\n"
