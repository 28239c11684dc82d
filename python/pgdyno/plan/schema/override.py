"""`--set a.b=c` and `[quick]`: other values for keys of a plan, before it is checked."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pgdyno.model.scrub import without_passwords
from pgdyno.model.settings import Origin, OriginKind
from pgdyno.plan.schema.complaint import NO_TABLE, Complaint, shown
from pgdyno.plan.schema.plan_file import QUICK_KEYS
from pgdyno.plan.schema.toml import BadToml, parse_toml, toml_key

Path = tuple[str, ...]

CHECKPOINTS: Path = ("protocol", "checkpoints")
_FOLLOWING = {CHECKPOINTS, ("protocol", "cycles"), ("protocol", "anchors")}
_BARE = re.compile(r"[A-Za-z0-9_./:%+-]+(?: [A-Za-z0-9_./:%+-]+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Override:
    """One `--set`."""

    text: str
    path: Path
    value: Any

    @property
    def option(self) -> str:
        """How it was typed, without passwords."""
        return _option(self.text)


def parse_override(text: str) -> Override | Complaint:
    """Read `a.b=c`: the key as in TOML; the value as TOML, or a bare word such as `16GB`."""
    where = _option(text)
    key, equals, value_text = text.partition("=")
    if not equals:
        return Complaint(where, "no '=' in it", "Write --set KEY=VALUE.")
    try:
        path = _path(parse_toml(f"{key.strip()} = 0"))
    except BadToml:
        return Complaint(where, "its key is not a dotted TOML key")
    if path[0] == "quick":
        return Complaint(where, "quick cannot be set", "Set the key itself.")
    try:
        value = parse_toml(f"value = {value_text}")["value"]
    except BadToml:
        if not _BARE.fullmatch(value_text.strip()):
            return Complaint(where, "its value is not TOML", "Text needs quotes: 'a.b=\"c d\"'.")
        value = value_text.strip()
    return Override(text, path, value)


def _option(text: str) -> str:
    return f"--set {without_passwords(text)}"


def apply_overrides(
    raw: dict[str, Any], overrides: Sequence[Override]
) -> tuple[dict[str, Any], list[Complaint]]:
    """A copy of the document with other values; stages are found by their names."""
    result = copy.deepcopy(raw)
    complaints = []
    for override in overrides:
        problem = _put(result, override.path, override.value)
        if problem:
            complaints.append(Complaint(override.option, problem))
    return result, complaints


def quick_values(raw: dict[str, Any]) -> tuple[dict[Path, Any], list[Complaint]]:
    """What `[quick]` changes, by path; nested tables and quoted dotted keys mean the same."""
    table = raw.get("quick", {})
    if not isinstance(table, dict):
        return {}, [Complaint("quick", f"{shown(table)} is not a table")]
    values: dict[Path, Any] = {}
    complaints = []
    for path, value in _leaves(table, ()):
        allowed = QUICK_KEYS.get(path[0], ()) if len(path) == 2 else ()
        if path[-1] in allowed:
            values[path] = value
            continue
        where = f"quick.{'.'.join(map(toml_key, path))}"
        if len(path) == 1 and path[0] in QUICK_KEYS:
            complaints.append(Complaint(where, f"{shown(value)} {NO_TABLE}"))
            continue
        keys = [f"{name}.{key}" for name, keys in QUICK_KEYS.items() for key in keys]
        complaints.append(Complaint(where, f"--quick cannot change it; allowed: {', '.join(keys)}"))
    if values and not _FOLLOWING & values.keys() and follows_checkpoints(raw):
        # Whole cycles last as long as the server takes: whoever wants them in the short version
        # says so there.
        values[CHECKPOINTS] = "ignore"
    return values, complaints


def follows_checkpoints(raw: dict[str, Any]) -> bool:
    """Whether the windows of a document end with checkpoints, as it is written."""
    protocol = raw.get("protocol")
    return isinstance(protocol, dict) and protocol.get("checkpoints") in ("cycles", "anchors")


def with_quick(raw: dict[str, Any], values: dict[Path, Any]) -> dict[str, Any]:
    """A copy of the document as `--quick` has it."""
    result = copy.deepcopy(raw)
    for path, value in values.items():
        _put(result, path, value)
    return result


def stage_origin(
    stage: str, table: str, key: str, source: str, by_set: frozenset[tuple[str, str]]
) -> Origin:
    """Who chose a value in a table of a stage.

    Args:
        stage: Its name.
        table: E.g. `settings`.
        key: In that table.
        source: The plan file.
        by_set: Stage and key of what --set chose in such tables.
    """
    if (stage, key) in by_set:
        return Origin(OriginKind.OVERRIDE, f"--set stage.{stage}.{table}.{key}")
    return Origin(OriginKind.PLAN, f"{source}: stage {stage}")


def _put(node: dict[str, Any], path: Path, value: object) -> str | None:
    """Put a value at its path, making tables on the way; returns what is wrong."""
    for depth, key in enumerate(path[:-1]):
        following = node.setdefault(key, {}) if key != "stage" else node.get(key, [])
        if depth == 0 and key == "stage":
            names = [stage.get("name") for stage in following if isinstance(stage, dict)]
            if path[1] not in names:
                return f"no stage is called {path[1]}; there are {', '.join(map(str, names))}"
            if len(path) == 2:
                return f"stage {path[1]} is a table; name one of its keys"
            return _put(following[names.index(path[1])], path[2:], value)
        if not isinstance(following, dict):
            return f"{'.'.join(path[: depth + 1])} is not a table"
        node = following
    if path == ("stage",):
        return "stages cannot be replaced as a whole"
    node[path[-1]] = value
    return None


def _path(nested: dict[str, Any]) -> Path:
    path: list[str] = []
    node: Any = nested
    while isinstance(node, dict):
        key, node = next(iter(node.items()))
        path.append(key)
    return tuple(path)


def _leaves(node: dict[str, Any], above: Path) -> list[tuple[Path, Any]]:
    result = []
    for key, value in node.items():
        path = (*above, *key.split("."))
        result += _leaves(value, path) if isinstance(value, dict) else [(path, value)]
    return result
