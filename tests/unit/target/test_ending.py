"""What happens at the end happens in any case, and hides nothing of what came before."""

from __future__ import annotations

import pytest

from pgdyno.model.errors import LostError, PgdynoError, TargetError
from pgdyno.target.interface import ending


def failing(error: Exception) -> None:
    raise error


def test_the_end_comes_once_whether_or_not_it_went_well() -> None:
    ends: list[str] = []
    with ending(lambda: ends.append("well")):
        pass
    with pytest.raises(KeyError), ending(lambda: ends.append("badly")):
        raise KeyError("a bug")
    assert ends == ["well", "badly"]


def test_an_error_of_the_end_is_a_note_of_the_first() -> None:
    end = TargetError("the server did not stop within 60 s")
    with (
        pytest.raises(PgdynoError, match="no space left") as caught,
        ending(lambda: failing(end)),
    ):
        raise PgdynoError("no space left")
    assert caught.value.__notes__ == ["afterwards: the server did not stop within 60 s"]


def test_an_error_of_the_end_alone_is_the_error() -> None:
    with (
        pytest.raises(TargetError, match="did not stop"),
        ending(lambda: failing(TargetError("the server did not stop"))),
    ):
        pass


def test_that_the_target_is_lost_explains_the_rest() -> None:
    end = LostError("the session is gone")
    with pytest.raises(LostError, match="session is gone"), ending(lambda: failing(end)):
        raise TargetError("connection refused")
    first = LostError("the session is gone", "Resume it.")
    with pytest.raises(LostError) as caught, ending(lambda: failing(end)):
        raise first
    assert caught.value is first
