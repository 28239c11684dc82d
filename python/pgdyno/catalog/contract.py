"""What the core publishes of itself: the shapes of what crosses, with bounds and defaults.

Bounds and defaults stand in the core alone; plans and options take them from here.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pydantic import Field

from pgdyno import core
from pgdyno.model.bounds import require_within
from pgdyno.model.errors import DriveError

_CORE_TAKES = "That is what the driver and the loader take."


def require_release() -> None:
    """Refuse to measure with a debug build of the core, or with one of other sources.

    Raises:
        DriveError: The core was built without optimisation, or speaks another contract.
    """
    if not core.is_release():
        raise DriveError(
            "the Rust core is a debug build",
            hint="Build it with `make build` (maturin develop --release); a debug build is slow.",
        )


@cache
def schema(name: str) -> dict[str, Any]:
    """JSON Schema of something that crosses, e.g. `DriveSpec`, `RunResult`.

    Raises:
        DriveError: The core speaks another version of the contract.
        KeyError: `shapes` has no such name.
    """
    found: dict[str, Any] = json.loads(core.schema(name))
    return found


def shapes() -> tuple[str, ...]:
    """Names of everything that crosses."""
    return tuple(core.shapes())


def limits(shape: str, key: str) -> tuple[float | None, float | None]:
    """The least and the greatest value that the core accepts; None: any.

    Args:
        shape: Name of a schema, e.g. `DriveSpec`.
        key: One of its keys; of a nested one with dots: `arrivals.per_s`.
    """
    found = _property(shape, key)
    return _plain(found.get("minimum")), _plain(found.get("maximum"))


def bounds(shape: str, key: str) -> Any:  # noqa: ANN401  as pydantic's `Field`
    """The same for `Annotated`, as pydantic checks it."""
    low, high = limits(shape, key)
    return Field(ge=low, le=high)


def require_accepted(shape: str, key: str, value: float | None, named: str) -> None:
    """Refuse a number that the core would not accept, before anything is asked or begun.

    Args:
        shape: Name of a schema, see `limits`.
        key: One of its keys.
        value: That was asked for; None: nothing was said.
        named: What it is, as whoever asked for it writes it.

    Raises:
        PlanError: It is outside of the core's limits.
    """
    if value is not None:
        require_within(named, value, *limits(shape, key), _CORE_TAKES)


def most(shape: str, key: str) -> int:
    """How many items the core accepts in a list.

    Raises:
        LookupError: As many as one likes.
    """
    count: int = _property(shape, key)["maxItems"]
    return count


def greatest(shape: str, key: str) -> int:
    """The greatest whole number that the core accepts.

    Raises:
        LookupError: Any.
    """
    number: int = _property(shape, key)["maximum"]
    return number


def default(shape: str, key: str) -> Any:  # noqa: ANN401  as the key's type
    """What the core takes where nothing is said."""
    return _property(shape, key)["default"]


def _plain(number: float | None) -> float | None:
    """Whole numbers without a point, as people write bounds."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _property(shape: str, key: str) -> dict[str, Any]:
    root = found = schema(shape)
    for name in key.split("."):
        found = _with_key(root, found, name)
    return found


def _with_key(root: dict[str, Any], schema: dict[str, Any], name: str) -> dict[str, Any]:
    """A key of a schema, or of the one of its alternatives that has it."""
    pending = [schema]
    while pending:
        one = pending.pop()
        if "$ref" in one:
            pending.append(root["$defs"][one["$ref"].rpartition("/")[2]])
        if name in one.get("properties", {}):
            found: dict[str, Any] = one["properties"][name]
            return found
        pending += [*one.get("anyOf", ()), *one.get("oneOf", ())]
        if "items" in one:
            pending.append(one["items"])
    raise LookupError(f"the core publishes no key {name} there")
