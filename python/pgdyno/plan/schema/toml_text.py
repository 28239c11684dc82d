"""A plan that was built in Python as TOML text, so that a run file alone can repeat it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from pgdyno.model.errors import PlanError

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def toml_text(document: Mapping[str, object]) -> str:
    """TOML of a mapping of texts, numbers, truth values, and lists and mappings of these.

    Raises:
        PlanError: Naming a value that TOML cannot hold.
    """
    lines: list[str] = []
    _table(lines, (), document)
    return "\n".join(lines).strip() + "\n"


def value_text(value: object, where: str = "value") -> str:
    """One value as TOML, mappings inline.

    Raises:
        PlanError: TOML cannot hold it.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        pairs = (f"{_key(str(key))} = {value_text(one, f'{where}.{key}')}"
                 for key, one in value.items())  # fmt: skip
        return f"{{ {', '.join(pairs)} }}" if value else "{}"
    if isinstance(value, Sequence):
        return f"[{', '.join(value_text(one, where) for one in value)}]"
    raise PlanError(
        f"{where} is a {type(value).__name__}",
        "A plan holds texts, numbers, true or false, and lists and mappings of these.",
    )


def _table(lines: list[str], path: tuple[str, ...], table: Mapping[str, object]) -> None:
    inner = {key: value for key, value in table.items() if _is_table(value) or _is_tables(value)}
    for key, value in table.items():
        if key not in inner:
            dotted = ".".join((*path, str(key)))
            lines.append(f"{_key(str(key))} = {value_text(value, dotted)}")
    for key, value in inner.items():
        head = ".".join(map(_key, (*path, str(key))))
        if isinstance(value, Mapping):
            lines += ["", f"[{head}]"]
            _table(lines, (*path, str(key)), value)
            continue
        assert isinstance(value, Sequence)
        for one in value:
            lines += ["", f"[[{head}]]"]
            _table(lines, (*path, str(key)), one)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else value_text(name)


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_tables(value: object) -> bool:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    return bool(value) and all(isinstance(one, Mapping) for one in value)
