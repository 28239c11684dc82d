"""Hostile variants of valid inputs: each is a function of its generator, and so of its seed.

Two ways: of bytes, which spoil the form (flips, cuts, marks, nesting), and of a plan's values,
which keep it TOML and spoil what it says. Nothing here knows what must happen with them.
"""

from __future__ import annotations

import copy
import datetime
from collections.abc import Callable
from typing import Any

import numpy as np

from pgdyno.plan.schema.toml import toml_value

Generator = np.random.Generator

HOSTILE_TEXT = (
    "", " ", "\x00", "a\x00b", "a\x1b[31mred", "\u202egnp.exe", "two\nlines", "a\u2028b", "\ufeff",
    "ü" * 50, "x" * 5000, "../../../../../../etc/shadow", "/etc/passwd", "/dev/zero", "/dev/null",
    "/proc/self/environ", "/nope", "..", "%s%n{0}${HOME}$(id)`id`", "'; DROP TABLE customer; --",
    "<script>alert(1)</script>", "[bold red]x[/]", "[/nothing]", "--help", "-1", "1e400", "NaN",
    "host=a password=hunter2", "postgresql://u:hunter2@h/d", "postgresql://[::1", "on", "default",
)  # fmt: skip
HOSTILE = (
    *HOSTILE_TEXT, True, False, 0, -0.0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 10**300, 0.5, 1e308,
    5e-324, float("inf"), float("nan"), [], {}, [[]], [{}], [None], ["a", 1], {"a": {"b": {}}},
    {"": 1}, {"x.y\nz": 1}, datetime.date(2026, 1, 1), datetime.time(1, 2),
    datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
)  # fmt: skip
_KEYS = (
    "x",
    "Name",
    "work_mem",
    "кey",
    "",
    "a.b",
    "a\nb",
    "__class__",
    "kind",
    "stage",
    "settings",
)


# -- of bytes ------------------------------------------------------------------------------------


def _flip(data: bytes, rng: Generator) -> bytes:
    spoiled = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        if spoiled:
            spoiled[int(rng.integers(len(spoiled)))] ^= 1 << int(rng.integers(8))
    return bytes(spoiled)


def _cut(data: bytes, rng: Generator) -> bytes:
    return data[: int(rng.integers(len(data) + 1))]


def _without_middle(data: bytes, rng: Generator) -> bytes:
    first, last = sorted(int(n) for n in rng.integers(len(data) + 1, size=2))
    return data[:first] + data[last:]


def _inserted(data: bytes, rng: Generator) -> bytes:
    at = int(rng.integers(len(data) + 1))
    what = rng.choice(
        [b"\x00", b"\xff\xfe", b"\x1b[2J", b"\r", b'"', b"'''", b"]", b"[[", b"= ", b"\\",
         b"\xe2\x80\xae", b"1" * 400, b"9" * 5000, b"#", b"\n\n[x]\n", b" " * 3000]
    )  # fmt: skip
    return data[:at] + bytes(what) + data[at:]


def _lines_moved(data: bytes, rng: Generator) -> bytes:
    lines = data.split(b"\n")
    for _ in range(int(rng.integers(1, 4))):
        one, other = (int(n) for n in rng.integers(len(lines), size=2))
        lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _line_twice(data: bytes, rng: Generator) -> bytes:
    lines = data.split(b"\n")
    at = int(rng.integers(len(lines)))
    return b"\n".join([*lines[:at], lines[at], *lines[at:]])


def _line_lost(data: bytes, rng: Generator) -> bytes:
    lines = data.split(b"\n")
    del lines[int(rng.integers(len(lines)))]
    return b"\n".join(lines)


def _numbers_spoiled(data: bytes, rng: Generator) -> bytes:
    words = data.split(b" ")
    places = [n for n, word in enumerate(words) if any(48 <= byte < 58 for byte in word)]
    if places:
        hostile = [b"nan", b"-1", b"1e999", b"9" * 30, b"", b"0x", b"-", b"1.2.3", "٣".encode()]
        words[int(rng.choice(places))] = bytes(rng.choice(np.array(hostile, dtype=object)))
    return b" ".join(words)


def _other_text(data: bytes, rng: Generator) -> bytes:
    text = data.decode("utf-8", errors="replace")
    return [
        text.encode("utf-8-sig"), text.encode("utf-16"), text.replace("\n", "\r\n").encode(),
        text.replace("\n", "\r").encode(), text.upper().encode(), b"", b"\n" * 3000, data * 3,
        text.replace('"', "").encode(), text.replace("=", ":").encode(),
    ][int(rng.integers(10))]  # fmt: skip


OF_BYTES: tuple[Callable[[bytes, Generator], bytes], ...] = (
    _flip, _cut, _without_middle, _inserted, _lines_moved, _line_twice, _line_lost,
    _numbers_spoiled, _other_text,
)  # fmt: skip


def spoiled(data: bytes, rng: Generator) -> bytes:
    """Bytes with one to three mutations."""
    for _ in range(int(rng.integers(1, 4))):
        data = OF_BYTES[int(rng.integers(len(OF_BYTES)))](data, rng)
    return data


# -- of a plan's text ----------------------------------------------------------------------------


def huge_plan(plan: bytes, rng: Generator) -> bytes:
    """A plan with something of thousands."""
    many = int(rng.integers(100, 4000))
    extra = [
        f"x = {'[' * many}{']' * many}",
        f"x = {'{ a = ' * many}1{' }' * many}",
        f"{'.'.join('a' * many)} = 1",
        f"[{'.'.join('a' * many)}]",
        "\n".join(f'[[stage]]\nname = "s{n}"\nwhy = "w"' for n in range(many)),
        "[reference]\n" + "\n".join(f"k{n} = {n}" for n in range(many)),
        f"x = 0x{'f' * many}",
        f'x = "{"y" * many}"',
        "notes = [" + '"n", ' * many + "]",
        "\n".join(f"unknown_{n} = 1" for n in range(many)),
    ][int(rng.integers(10))]
    top = rng.integers(2) and not extra.startswith("[")
    return extra.encode() + b"\n" + plan if top else plan + b"\n" + extra.encode()


def single_table(plan: bytes, _rng: Generator) -> bytes:
    """A plan whose first `[[stage]]` is `[stage]`."""
    return plan.replace(b"[[stage]]", b"[stage]", 1)


# -- of a plan's values --------------------------------------------------------------------------


def _places(node: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    pairs = node.items() if isinstance(node, dict) else enumerate(node)
    found: list[tuple[Any, ...]] = []
    for key, value in pairs:
        found.append((*above, key))
        if isinstance(value, dict | list):
            found += _places(value, (*above, key))
    return found


def _parent(document: dict[str, Any], place: tuple[Any, ...]) -> Any:
    node: Any = document
    for key in place[:-1]:
        node = node[key]
    return node


def other_values(
    document: dict[str, Any], rng: Generator, times: int = 1
) -> tuple[dict[str, Any], list[str]]:
    """A plan with other values, keys or places; and the keys that were touched."""
    result = copy.deepcopy(document)
    touched: list[str] = []
    for _ in range(times):
        places = _places(result)
        if not places:
            break
        place = places[int(rng.integers(len(places)))]
        node, key = _parent(result, place), place[-1]
        touched.append(next(str(one) for one in reversed(place) if isinstance(one, str)))
        way = int(rng.integers(6))
        if way <= 2:
            node[key] = copy.deepcopy(HOSTILE[int(rng.integers(len(HOSTILE)))])
        elif way == 3:
            del node[key]
        elif way == 4:
            other = places[int(rng.integers(len(places)))]
            value = copy.deepcopy(_parent(result, other)[other[-1]])
            node[key] = value
        elif isinstance(node, dict):
            node[_KEYS[int(rng.integers(len(_KEYS)))]] = node.pop(key)
        else:
            node.append(copy.deepcopy(node[key]))
    return result, touched


def hostile_value(
    document: dict[str, Any], rng: Generator
) -> tuple[dict[str, Any], tuple[Any, ...], Any]:
    """A plan with one hostile value; its place, and the value."""
    result = copy.deepcopy(document)
    places = _places(result)
    place = places[int(rng.integers(len(places)))]
    value = copy.deepcopy(HOSTILE[int(rng.integers(len(HOSTILE)))])
    _parent(result, place)[place[-1]] = value
    return result, place, value


def as_toml(document: dict[str, Any]) -> bytes:
    """A plan of inline tables, a line for each key."""
    return "".join(f"{_key(key)} = {_inline(value)}\n" for key, value in document.items()).encode()


def _key(key: str) -> str:
    return toml_value(key)


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_inline(one)}" for k, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_inline(one) for one in value) + "]"
    return toml_value(value)
