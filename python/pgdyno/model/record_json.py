"""Records to JSON and back; strict both ways."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pydantic import JsonValue, TypeAdapter

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
JsonObject: TypeAlias = dict[str, JsonValue]
"""What is, or becomes, an object of JSON."""


def to_json(record: DataclassInstance) -> str:
    """JSON of a dataclass record."""
    return json.dumps(asdict(record), ensure_ascii=False, separators=(",", ":"))


def from_json(kind: type[T], text: str) -> T:
    """The record of this kind that `to_json` wrote; validates types on the way."""
    return _adapter(kind).validate_json(text)


def from_plain(kind: type[T], value: object) -> T:
    """The same from what JSON holds: mappings, lists, numbers and texts."""
    return _adapter(kind).validate_python(value)


def json_value(text: str | bytes) -> Any:  # noqa: ANN401  whatever stands there
    """What a text of JSON holds that another program wrote, or a file of which anybody may have.

    Raises:
        ValueError: It is no JSON, or nested deeper than it can be read.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def json_object(text: str) -> JsonObject:
    """The same, if that is an object.

    Raises:
        ValueError: As `json_value`; or it is another value.
    """
    found = json_value(text)
    if not isinstance(found, dict):
        raise ValueError(f"{type(found).__name__}, and no object")
    return found


_adapters: dict[object, TypeAdapter[Any]] = {}  # making one takes longer than using it


def _adapter(kind: type[T]) -> TypeAdapter[T]:
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]
