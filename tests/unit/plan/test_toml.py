"""TOML within bounds: what would end the parser, or take it minutes, is refused with its place."""

from __future__ import annotations

import datetime
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.plan.schema.toml import NESTING_MAX, BadToml, parse_toml, toml_value


def refused(text: str) -> str:
    with pytest.raises(BadToml) as caught:
        parse_toml(text)
    return str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        'conninfo = "host=db password=s3cr3t',
        "conninfo = host=db password=s3cr3t",
        'conninfo = "postgresql://somebody-with-a-long-name:s3cr3t-and-longer-than-shown@db/x',
    ],
)
def test_a_line_that_is_quoted_tells_no_password(line: str) -> None:
    with pytest.raises(BadToml) as caught:
        parse_toml(f'[target]\nkind = "running"\n{line}\n')

    assert "(hidd" in str(caught.value)  # a long line is shortened
    assert "s3cr3t" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a = 1\nx = " + "[" * 2000 + "]" * 2000, "line 2 has the most brackets"),
        ("x = " + "{ a = " * 500 + "1" + " }" * 500, "nested too deep, allowed are 16 levels"),
        ("a = 1\n" + ".".join("a" * 3000) + " = 1", "3000 parts, allowed are 64 (at line 2"),
        ("[" + " . ".join(["'a'"] * 70) + "]", "a key has 70 parts"),
        (".".join("a" * 20) + " = 1", "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a is nested too deep"),
        ("x = " + "9" * 5000, "a number has more digits than 4300"),
        ('name = "x"\nname = "y"\nz = 1', 'a value (at line 2, column 11): name = "y"'),
        ('name = "x"\nname = "y"', 'cannot overwrite a value (at end of document): name = "y"'),
        ("[protocol]\n\n[protocol]", "table protocol is declared twice (at line 3, column 10)"),
        ("[stage]\nname = 1\n[[stage]]\n", "[stage] stands above; begin each with [[stage]]"),
        ("name : 1\n", "expected '=' after a key"),
    ],
)  # fmt: skip
def test_a_refusal_tells_what_and_where(text: str, told: str) -> None:
    assert told in refused(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a = 1\nb = { wal_buffers = 64MB }", 'a value with a unit: wal_buffers = "64MB".'),
        ("synchronous_commit = off", 'synchronous_commit = "off".'),
        ('a = { b = "x = y", c = 64MB, d = 1 }', 'a value with a unit: c = "64MB".'),
        ("why = as it comes # so", 'why = "as it comes".'),
        ("skip = True", "Write skip = true, in small letters."),
        ('a = wal_buffers = "64MB"', 'a table in braces: a = { wal_buffers = "64MB" }.'),
        ('a = b = "1", c = 2', 'a table in braces: a = { b = "1", c = 2 }.'),
        ("a = wal_buffers = 64MB", 'a table in braces: a = { wal_buffers = "64MB" }.'),
        ('a = { b = c = "64MB" }', None),
        ('a = "1" = "2"', None),
        ("[a]\nb = 1\n[a]\nb = 2", "begin each with [[a]]; else write all keys below one [a]."),
        ("a = 1\na = 2\nb = 3", "It has a value above; keep one of the two."),
        ("[a]\n[[a]]\nb = 1", None),
        ("a = 5\nb = { c = 1", None),
        ("a = [1, 2", None),
        ("a = 1\n= 5", None),
        ("a" * 300 + " = 64MB", None),
        ("x = " + "[" * 2000 + "]" * 2000, None),
    ],
)  # fmt: skip
def test_a_word_without_quotes_is_named(text: str, hint: str | None) -> None:
    with pytest.raises(BadToml) as caught:
        parse_toml(text)
    said = caught.value.hint
    assert said is None if hint is None else said is not None and said.endswith(hint)


@pytest.mark.parametrize(
    "text",
    ["a" * (1 << 20), "'" * (1 << 20), "a " * (1 << 19), "a" + " " * (1 << 20),
     ".".join("a" * (1 << 19)) + "=1"],
    ids=["word", "quotes", "words", "spaces", "key"],
)  # fmt: skip
def test_a_mebibyte_of_one_thing_ends(text: str) -> None:
    refused(text)


def test_what_is_nested_as_deep_as_allowed_is_read() -> None:
    text = "x = " + "[" * (NESTING_MAX - 1) + "]" * (NESTING_MAX - 1)

    assert parse_toml(text) == tomllib.loads(text)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (datetime.date(2026, 1, 1), "2026-01-01"),
        ({"a": True, "b c": [1, "x"]}, '{ a = true, "b c" = [1, "x"] }'),
        ("a\x1b[31m\u202e\n", r'"a\u001B[31m\u202E\n"'),
        (None, "nothing"),
    ],
)
def test_values_are_shown_as_toml(value: object, shown: str) -> None:
    assert toml_value(value) == shown


def test_a_number_too_long_for_digits_is_shown_by_its_size() -> None:
    assert toml_value(16**5000 - 1) == "a number of 20000 bits"


_SCALARS = st.one_of(
    st.text(), st.booleans(), st.integers(-(2**62), 2**62), st.floats(allow_nan=False)
)


@given(st.dictionaries(st.text(), st.recursive(_SCALARS, st.lists, max_leaves=5)))
def test_what_is_shown_is_read_again(value: dict[str, Any]) -> None:
    assert parse_toml(f"x = {toml_value(value)}") == {"x": value}
