"""What happens at the end happens in any case, and hides nothing of what came before."""

from __future__ import annotations

from typing import cast
from unittest.mock import Mock

import psycopg
import pytest

from pgdyno.model.errors import LostError, PgdynoError, TargetError
from pgdyno.target.interface import Target, ending, explained


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


def with_words(words: str | None) -> Target:
    return cast(Target, Mock(spec=Target, last_words=lambda: words))


def test_what_fails_in_a_server_of_ours_is_told_with_the_end_of_its_log() -> None:
    with (
        pytest.raises(
            TargetError, match="request failed; its log ends with: PANIC: no space"
        ) as told,
        explained(with_words("PANIC: no space")),
    ):
        raise psycopg.errors.InternalError_("checkpoint request failed")
    assert isinstance(told.value.__cause__, psycopg.Error)


def test_the_log_of_another_ones_server_is_not_ours_to_tell_and_other_errors_need_none() -> None:
    with pytest.raises(psycopg.Error), explained(with_words(None)):
        raise psycopg.errors.InternalError_("checkpoint request failed")
    with pytest.raises(TargetError, match=r"^no such folder$"), explained(with_words("a word")):
        raise TargetError("no such folder")
