"""Numbers with their nouns, as sentences say them."""

from __future__ import annotations

import pytest

from pgdyno.model.wording import often


@pytest.mark.parametrize(
    ("times", "said"), [(0, "0 times"), (1, "once"), (2, "2 times"), (27_654, "27,654 times")]
)
def test_how_often_is_said_once_and_with_separators(times: int, said: str) -> None:
    assert often(times) == said
