"""TOML to plain values, within bounds: the one parser for plans, `--set`, mixes and lint.

What the library cannot bear is refused before or after it: keys of thousands of parts take it
quadratic time, deep nesting ends its recursion, and everything that walks the values after it.
"""

from __future__ import annotations

import datetime
import re
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

from pgdyno.model.scrub import without_passwords
from pgdyno.model.wording import plural, small

PARTS_MAX = 64
"""Of a dotted key."""
NESTING_MAX = 16
"""Of tables and arrays in each other; a plan needs five."""

_SHOWN_LETTERS = 60
_AT = re.compile(r" \(at line (\d+), column \d+\)$")
_TWICE = re.compile(r"Cannot declare \((.*?),?\) twice")
# Possessive, and from the start of a word only: else a long word takes quadratic time by itself.
_RUN = re.compile(r"""(?<![\w"'-])[\w"'-]++(?:[ \t]*+\.[ \t]*+[\w"'-]++)++""")
_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_TABLES = re.compile(r"\[\[ *([^]]+?) *\]\]")
_LINE_LETTERS = 200  # of a line that is looked at for a word without quotes
_QUOTED = re.compile(r"""\"(?:[^"\\]|\\.)*+\"|'[^']*+'""")
_UNQUOTED = re.compile(r"""([\w.-]++)[ \t]*+=[ \t]*+(?!["'\[{])([^,}\]#"']++)""")
_NAMED = re.compile(r"""([\w.-]++)[ \t]*+=[ \t]*+(([\w.-]++)[ \t]*+=[ \t]*+(.++))""")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


class BadToml(ValueError):
    """A text that is not TOML, or beyond what a plan may have; in lower case, with its line."""

    hint: str | None = None
    """How to write it, where that is seen: a sentence."""


def parse_toml(text: str) -> dict[str, Any]:
    """The values of a TOML text.

    Raises:
        BadToml: It is none; or a key has more than 64 parts, or values are nested deeper than 16.
    """
    parts, line = _longest_key(text)
    if parts > PARTS_MAX:
        raise BadToml(
            f"a key has {plural(parts, 'part')}, allowed are {PARTS_MAX} (at line {line})"
        )
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        bad = BadToml(_with_line(str(error), text))
        hint = _how_to_write(str(error), text)
        bad.hint = None if hint is None else without_passwords(hint)
        raise bad from error
    except RecursionError as error:
        lines = text.split("\n")
        line = max(range(len(lines)), key=lambda n: lines[n].count("[") + lines[n].count("{"))
        allowed = f"allowed are {plural(NESTING_MAX, 'level')}"
        text = f"nested too deep, {allowed}; line {line + 1} has the most brackets"
        raise BadToml(text) from error
    except ValueError as error:
        raise BadToml(f"a number has more digits than {sys.get_int_max_str_digits()}") from error
    if key := _too_deep(found):
        raise BadToml(f"{key} is nested too deep, allowed are {plural(NESTING_MAX, 'level')}")
    return found


def _longest_key(text: str) -> tuple[int, int]:
    """Parts of the longest dotted word of a text, and its line; it may stand in a comment."""
    parts, at = max(
        ((match[0].count(".") + 1, match.start()) for match in _RUN.finditer(text)),
        default=(0, 0),
    )
    return parts, text.count("\n", 0, at) + 1


def _with_line(message: str, text: str) -> str:
    """What the library says, with the line that it means."""
    if table := _table_twice(message):
        message = _TWICE.sub(lambda _: f"table {table} is declared twice", message)
    found, lines = _AT.search(message), text.split("\n")
    message = small(message)
    if found is None and "end of document" not in message:
        return message
    # It may stand beyond the last line that says something.
    number = int(found[1]) if found else len(lines)
    shown = next((line.strip() for line in reversed(lines[:number]) if line.strip()), "")
    shown = without_passwords(shown)  # before it is shortened: an address ends its password by @
    if "overwrite" in message and (again := _TABLES.match(shown)):
        return f"[{again[1]}] stands above; begin each with [[{again[1]}]] (at line {number})"
    shown = shown if len(shown) <= _SHOWN_LETTERS else shown[: _SHOWN_LETTERS - 3] + "..."
    return f"{message}: {shown}" if shown else message


def _table_twice(message: str) -> str | None:
    """The table that is declared twice, if that is what the library says."""
    if (twice := _TWICE.match(message)) is None:
        return None
    parts = re.findall(r"""(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")""", twice[1])
    return ".".join(one or other for one, other in parts)


def _how_to_write(message: str, text: str) -> str | None:
    """How to write what is wrong; None: it is not seen."""
    if table := _table_twice(message):
        return (
            f"Where there are several, begin each with [[{table}]]; else write all keys below one"
            f" [{table}]."
        )
    found, lines = _AT.search(message), text.split("\n")
    line = lines[int(found[1]) - 1] if found and int(found[1]) <= len(lines) else ""
    if len(line) > _LINE_LETTERS:
        return None
    if "overwrite" in message:
        return "It has a value above; keep one of the two." if "[" not in line[:1] else None
    return _without_braces(line.strip()) or _without_quotes(line)


def _without_braces(line: str) -> str | None:
    """How to write a table that stands on a line without its braces."""
    if (found := _NAMED.fullmatch(line)) is None:
        return None
    key, inner, name, value = found[1], found[2], found[3], found[4].strip()
    for written in (inner, f'{name} = "{value}"'):
        table = f"{key} = {{ {written.strip()} }}"
        try:
            tomllib.loads(table)
        except tomllib.TOMLDecodeError:
            continue
        return f"Text stands in quotes, a table in braces: {table}."
    return None


def _without_quotes(line: str) -> str | None:
    """How to write the first word without quotes on a line.

    The library tells of the brace that it misses behind it, which sends people the wrong way.
    """
    for key, value in _UNQUOTED.findall(_QUOTED.sub('""', line)):
        word = value.strip()
        if "=" in word:
            return None  # no word, and whatever it is, quotes do not mend it
        try:
            tomllib.loads(f"x = {word}")
        except tomllib.TOMLDecodeError:
            if word.lower() in ("true", "false"):
                return f"Write {key} = {word.lower()}, in small letters."
            return f'Text stands in quotes, and so does a value with a unit: {key} = "{word}".'
    return None


def _too_deep(value: dict[str, Any]) -> str | None:
    """The key of a value that lies too deep; without recursion, which that would end."""
    left: list[tuple[str, object, int]] = [("", value, 0)]
    while left:
        key, node, depth = left.pop()
        if depth > NESTING_MAX:
            return f"{key[:_SHOWN_LETTERS]}..." if len(key) > _SHOWN_LETTERS else key
        for name, inner in _inside(node):
            left.append((f"{key}{name}".removeprefix("."), inner, depth + 1))
    return None


def _inside(node: object) -> Iterator[tuple[str, object]]:
    if isinstance(node, dict):
        yield from ((f".{key}", one) for key, one in node.items())
    elif isinstance(node, list):
        yield from ((f"[{number}]", one) for number, one in enumerate(node))


def toml_key(key: str) -> str:
    """A key for people: as TOML writes it, or a dotted name as PostgreSQL does."""
    return key if _BARE.fullmatch(key.replace(".", "_")) else toml_value(key)


def toml_value(value: object) -> str:
    """A value as TOML writes it, on one line; of an odd one what it is."""
    if isinstance(value, dict):
        inner = ", ".join(
            f"{key if _BARE.fullmatch(key) else toml_value(key)} = {toml_value(one)}"
            for key, one in value.items()
        )
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(one) for one in value) + "]"
    if isinstance(value, str):
        return '"' + "".join(map(_escaped, value)) + '"'
    return _scalar(value)


def _escaped(letter: str) -> str:
    """A letter as it stands in quotes: what is not to be seen by its number."""
    if letter in _ESCAPES or letter.isprintable():
        return _ESCAPES.get(letter, letter)
    return f"\\u{ord(letter):04X}" if ord(letter) < 1 << 16 else f"\\U{ord(letter):08X}"


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    try:
        return "nothing" if value is None else str(value)
    except ValueError:  # more digits than Python writes
        return f"a number of {plural(value.bit_length() if isinstance(value, int) else 0, 'bit')}"
