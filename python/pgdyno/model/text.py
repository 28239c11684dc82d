"""Texts of others, made harmless to look at: names, paths, words of servers and programs.

A terminal obeys control characters, and a reader is led astray by those that turn the direction of
writing or take no room. All of them are shown by their numbers instead. What a page or a document
means by its characters (`<`, `|`, `*`) is for the format that prints them, not for here.
"""

from __future__ import annotations

import json
import re
import shlex
import textwrap
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

_ROOM_MIN = 20  # columns beside an indent, else a line is left as it is
_PLAIN = re.compile(r"[\n\x20-\x7e]*")
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # controls, formats, bytes that are no UTF-8, separators
_JSON_UNSEEN = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]|[^\x00-\x7f]")


def visible(text: str) -> str:
    r"""The text with what is not seen shown by its number, e.g. `\x1b`, `\u202e`; lines stay."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(one if one == "\n" else _shown(one) for one in text)


def visible_within(value: Any) -> Any:  # noqa: ANN401  whatever JSON holds
    """The same of all texts within what JSON holds, but for the names of its members."""
    if isinstance(value, dict):
        return {key: visible_within(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [visible_within(one) for one in value]
    return visible(value) if isinstance(value, str) else value


def one_line(text: str) -> str:
    r"""The same for what has no lines, as a name or a path: `\n` too is shown."""
    return visible(text).replace("\n", "\\n")


def further_in(text: str, columns: int) -> str:
    """The text with indented lines broken before a column; their rest stands further in."""
    lines = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip(" "))]
        if not indent or len(line) <= columns or columns - len(indent) < _ROOM_MIN:
            lines.append(line)
            continue
        lines += textwrap.wrap(
            line, columns, subsequent_indent=f"{indent}  ", expand_tabs=False,
            replace_whitespace=False, break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
    return "\n".join(lines)


def ascii_json(text: str) -> str:
    r"""JSON of the same meaning, in which what is not seen is written as `\u....`."""
    return _JSON_UNSEEN.sub(lambda found: _in_json(found[0]), text)


def json_document(document: object) -> str:
    """Plain records as indented JSON that any terminal shows; without NaN, ended by a line end."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    return ascii_json(text) + "\n"


def shell_line(words: Sequence[str]) -> str:
    r"""Words as they are typed in a shell; what is not seen as bash has it: `$'\x1b'`."""
    return " ".join(map(_typed, words))


def path_typed(path: Path | str) -> str:
    """A path as it is typed after a command: of no name is it an option, or two words."""
    typed = str(path)
    return shell_line([f"./{typed}" if typed.startswith("-") else typed])


def _typed(word: str) -> str:
    if one_line(word) == word:
        return shlex.quote(word)
    typed = "".join(
        f"\\{one}" if one in "\\'" else one if _shown(one) == one else _bytes(one) for one in word
    )
    return f"$'{typed}'"


def _bytes(one: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in one.encode(errors="surrogateescape"))


@cache
def _shown(one: str) -> str:
    if unicodedata.category(one) not in _UNSEEN:
        return one
    if one == "\t":
        return "\\t"
    number = ord(one)
    if 0xDC80 <= number <= 0xDCFF:  # a byte that is no UTF-8, as Python's file names have it
        return f"\\x{number - 0xDC00:02x}"
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


@cache
def _in_json(one: str) -> str:
    if unicodedata.category(one) not in _UNSEEN:
        return one
    number = ord(one)
    if number < 0x10000:
        return f"\\u{number:04x}"
    high, low = divmod(number - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
