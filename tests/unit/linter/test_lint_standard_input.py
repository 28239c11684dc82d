"""`lint -`: what is sent to standard input, read by the rules of a file."""

from __future__ import annotations

import io
import sys

import pytest

import pgdyno
from pgdyno.model.errors import PlanError
from pgdyno.plan.schema.files import TEXT_BYTES_MAX


def send(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_a_file_is_read_from_standard_input_and_named_so(monkeypatch: pytest.MonkeyPatch) -> None:
    send(monkeypatch, b"port = 5433\nfsync = off\n")
    linted = pgdyno.lint(["-"], kind="postgresql")
    (found,) = [one for one in linted.findings if one.at.name == "fsync"]
    assert found.at.where == "standard input:2"
    assert [one.path for one in linted.sources] == ["standard input"]


@pytest.mark.parametrize(
    ("data", "kind", "fact"),
    [
        (b"fsync = off\n", None, "standard input: it has no name that says what it is"),
        (b"a = \xff\n", "postgresql", "standard input is not UTF-8: byte 4 is wrong"),
        (b"\xff\xfea\0", "postgresql", "standard input is UTF-16, allowed is UTF-8"),
        (b"SQLite format 3\0", "plan", "standard input is a database and no text"),
        (b"#" * (TEXT_BYTES_MAX + 9), "sysctl", f"{TEXT_BYTES_MAX + 1} bytes or more, allowed are"),
        (b"stage = [", "plan", "standard input: not TOML"),
    ],
)
def test_what_cannot_be_used_is_refused_by_this_name(
    monkeypatch: pytest.MonkeyPatch, data: bytes, kind: str | None, fact: str
) -> None:
    send(monkeypatch, data)
    with pytest.raises(PlanError) as raised:
        pgdyno.lint(["-"], kind=kind)
    assert fact in raised.value.fact
    assert raised.value.fact.startswith("standard input")


def test_it_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    send(monkeypatch, b"fsync = off\n")
    with pytest.raises(PlanError, match="standard input is named 2 times, allowed is once"):
        pgdyno.lint(["-", "-"], kind="postgresql")


def test_who_closed_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(PlanError, match="standard input cannot be read: it is closed"):
        pgdyno.lint(["-"], kind="postgresql")
