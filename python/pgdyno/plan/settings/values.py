"""Values of settings as PostgreSQL reads them: units, booleans, enums, ranges. Nothing is rounded.

Stricter than the server in one point: a size that is not a whole multiple of the setting's unit is
refused, where the server would round it and show something else than was asked for.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from pgdyno.catalog import known_settings
from pgdyno.model.settings import ServerKnob

_BYTES = {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_MICROSECONDS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*([A-Za-z]*)", re.ASCII)
_OCTAL = re.compile(r"0[0-7]+", re.ASCII)  # as the server reads it: modes of files
_ON = frozenset({"on", "true", "yes", "1", "t", "y"})
_OFF = frozenset({"off", "false", "no", "0", "f", "n"})
_WORDS = {  # as far as they must be written, and what they mean
    "true": (1, "on"), "false": (1, "off"), "yes": (1, "on"), "no": (1, "off"), "on": (2, "on"),
    "off": (2, "off"),
}  # fmt: skip
_LIBRARIES = {"lz4": "lz4", "zstd": "zstd"}
"""Values that only servers have which were built with a library."""
_HEX = re.compile(r"0x[0-9a-f]+", re.ASCII)


# Settings whose items the server quotes one by one (GUC_LIST_QUOTE).
_LISTS = frozenset({
    "local_preload_libraries", "search_path", "session_preload_libraries",
    "shared_preload_libraries", "temp_tablespaces", "unix_socket_directories",
})  # fmt: skip
_ITEM = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^\s,"][^,"]*?))\s*(?:,|$)')


class BadValue(ValueError):
    """A value that the setting cannot have."""

    def __init__(self, fact: str, allowed: str) -> None:
        super().__init__(f"{fact}; allowed: {allowed}")
        self.fact = fact
        self.allowed = allowed


@dataclass(frozen=True, slots=True)
class _Unit:
    size: int  # in the family's smallest unit
    family: dict[str, int]


@lru_cache(maxsize=4096)
def canonical(knob: ServerKnob, text: str) -> str:
    """A value in one spelling: numbers in the setting's own unit, `on` and `off`, enums as told.

    Raises:
        BadValue: The setting cannot have this value; nothing is clamped.
    """
    if knob.vartype in ("integer", "real"):
        number = number_of(knob, text)
        if not _in_range(knob, number):
            raise BadValue("out of range", allowed(knob))
        return str(int(number)) if knob.vartype == "integer" else repr(float(number))
    return _word(knob, text.strip()) if knob.vartype in ("bool", "enum") else _line(text)


def as_server_reads(knob: ServerKnob, text: str) -> str:
    """What the server makes of a text, also where `canonical` refuses it as not quite meant.

    Of words it takes the begin, of fractions the nearest whole number, and it reads hexadecimal.

    Returns:
        The text as it is where the two agree, or where the server refuses it, too.
    """
    with suppress(BadValue):
        canonical(knob, text)
        return text
    word = text.strip().lower()
    if knob.vartype == "bool":
        whole = [one for one in _WORDS if len(word) >= _WORDS[one][0] and one.startswith(word)]
        return _WORDS[whole[0]][1] if whole else text
    if knob.vartype != "integer":
        return text
    if _HEX.fullmatch(word):
        return str(int(word, 16))
    try:
        number = number_of(replace(knob, vartype="real"), text)
    except BadValue:
        return text
    unit, match = _unit(knob.unit), _NUMBER.fullmatch(text.strip())
    if unit is not None and match and match[2] and Fraction(match[1]).denominator != 1:
        sizes = [one for one in unit.family.values() if one < unit.family[match[2]]]
        step = Fraction(max(sizes, default=unit.size), unit.size)  # of the next smaller unit
        number = round(number / step) * step
    return str(round(number))


def is_off(text: str) -> bool:
    """Whether a switch that is written so is off, as the server reads it."""
    return text.lower() in _OFF


def number_of(knob: ServerKnob, text: str) -> Fraction:
    """A number in the setting's own unit; its range is not looked at.

    Raises:
        BadValue: It is not a number, its unit does not fit, or an integer setting would be rounded.
    """
    if knob.vartype == "integer" and _OCTAL.fullmatch(text.strip()):
        return Fraction(int(text, 8))
    match = _NUMBER.fullmatch(text.strip())
    if not match:
        raise BadValue("not a number", allowed(knob))
    digits, unit_text = match.groups()
    number = Fraction(digits)
    if unit_text:
        unit = _unit(knob.unit)
        if unit is None:
            raise BadValue("takes no unit", allowed(knob))
        if unit_text not in unit.family:
            raise BadValue(f"has the unit {unit_text}, which does not fit", ", ".join(unit.family))
        number = number * unit.family[unit_text] / unit.size
    if knob.vartype == "integer" and number.denominator != 1:
        whole = f"a whole number of {knob.unit}" if knob.unit else "a whole number"
        raise BadValue(f"is not {whole}", allowed(knob))
    return number


def base_units(knob: ServerKnob, text: str) -> int:
    """A size in bytes or a time in microseconds; a number without unit as it is."""
    unit = _unit(knob.unit)
    return math.floor(number_of(knob, text) * (unit.size if unit else 1))


def same_value(knob: ServerKnob, wanted: str, raw: str) -> bool:
    """Whether the server has what was asked for.

    Args:
        knob: The setting.
        wanted: As asked for, e.g. `16GB`.
        raw: As the server has it (`pg_settings.setting`), e.g. `16384`.
    """
    known = known_settings().get(knob.name)
    if known is not None and known.automatic is not None and wanted.strip() == known.automatic:
        return True  # the server was asked to choose
    try:
        if knob.vartype in ("integer", "real"):
            numbers = number_of(knob, wanted), number_of(knob, raw)
            return math.isclose(*map(float, numbers), rel_tol=1e-5)  # it prints six digits
        return canonical(knob, wanted) == canonical(knob, raw)
    except BadValue:
        return wanted == raw


def show(knob: ServerKnob, value: str) -> str:
    """A value in the setting's own unit as the server's SHOW prints it, e.g. `16384` as `128MB`."""
    unit = _unit(knob.unit)
    if unit is None or knob.vartype not in ("integer", "real"):
        return f"{float(value):g}" if knob.vartype == "real" else value
    number = Fraction(value)
    if number <= 0:  # -1, 0: they mean something else than a size
        return value
    name, size = next(
        (name, size)
        for name, size in sorted(unit.family.items(), key=lambda item: -item[1])
        if (number * unit.size / size).denominator == 1 or size == min(unit.family.values())
    )
    shown = number * unit.size / size
    return f"{int(shown)}{name}" if shown.denominator == 1 else f"{float(shown):g}{name}"


def default_text(knob: ServerKnob | None) -> str | None:
    """What holds where nothing is set, as SHOW prints it; None: that is not known."""
    if knob is None or knob.default is None:
        return None
    try:
        return show(knob, canonical(knob, knob.default)) or "''"
    except BadValue:
        return knob.default


def list_items(name: str, value: str) -> list[str]:
    """What SQL is given for a setting, literal by literal.

    A list is written item by item: in one literal it would be one item with commas in it.
    """
    if name not in _LISTS:
        return [value]
    items = []
    for quoted, plain in _ITEM.findall(value):
        # Names are folded where they are not quoted, files of libraries are not.
        folded = plain if name.endswith("_libraries") else plain.lower()
        items.append(quoted.replace('""', '"') or folded)
    return items or [""]


def allowed(knob: ServerKnob) -> str:
    """What a setting may be, for people."""
    if knob.vartype == "bool":
        return "on, off"
    if knob.vartype == "enum":
        return ", ".join(knob.enum_values) or "one word"
    if knob.vartype == "string":
        return "text of one line"
    low, high = (_bound(knob, bound) for bound in (knob.minimum, knob.maximum))
    unit = _unit(knob.unit)
    with_unit = f" ({', '.join(unit.family)}; plain numbers are {knob.unit})" if unit else ""
    return f"{low} to {high}{with_unit}"


def _bound(knob: ServerKnob, bound: float | None) -> str:
    if bound is None:
        return "any"
    if knob.vartype == "real":
        return f"{bound:g}"
    number = int(bound)
    unit = _unit(knob.unit)
    if unit is None or number <= 0:
        return str(number)
    # The highest ones are odd numbers of kB or ms; whole larger units are easier to read.
    shown = show(knob, str(number))
    if len(shown) <= 7:
        return shown
    name, size = [item for item in unit.family.items() if item[1] <= number * unit.size][-1]
    return f"about {number * unit.size / size:.0f}{name}"


def _unit(text: str | None) -> _Unit | None:
    """`8kB` as 8192 bytes, `min` as 60 s; None for none."""
    match = re.fullmatch(r"(\d*)([A-Za-z]+)", text or "")
    if not match:
        return None
    count, name = int(match.group(1) or 1), match.group(2)
    for family in (_BYTES, _MICROSECONDS):
        if name in family:
            return _Unit(count * family[name], family)
    return None


def _in_range(knob: ServerKnob, number: Fraction) -> bool:
    too_low = knob.minimum is not None and number < Fraction(knob.minimum)
    return not too_low and (knob.maximum is None or number <= Fraction(knob.maximum))


def _word(knob: ServerKnob, text: str) -> str:
    lower = text.lower()
    values = ("on", "off") if knob.vartype == "bool" else knob.enum_values
    spelt = next((value for value in values if value.lower() == lower), None)
    if spelt is None:
        booleans = (("on", _ON), ("off", _OFF))
        spelt = next((one for one, same in booleans if one in values and lower in same), None)
    if spelt is not None:
        known = known_settings().get(knob.name) if knob.vartype == "enum" else None
        return known.alias.get(spelt, spelt) if known is not None else spelt
    if not values and re.fullmatch(r"[\w .-]+", text):
        return lower  # the server has not told; it will refuse what it does not know
    if lower in _LIBRARIES:
        library = _LIBRARIES[lower]
        raise BadValue(
            f"is of servers built with {library}, and this one is not",
            f"{allowed(knob)}; or another server by --bindir, `pgdyno build --with {library}`"
            " makes one",
        )
    raise BadValue("not among its values", allowed(knob))


def _line(text: str) -> str:
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in text):
        raise BadValue("holds control characters", "text of one line")
    return text
