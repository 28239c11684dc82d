"""What a run was begun on, against what it would go on on: a difference may change its numbers.

Pure comparison of two manifests as `target.host_facts.manifest` writes them; nothing is asked here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pgdyno.model.errors import PlanError
from pgdyno.model.units import bytes_text

# From one moment to the next: of huge pages any server takes some, how many there are is compared.
_WAVERS = frozenset({"cpu_mhz", "huge_pages_free"})


def require_same(
    begun: Mapping[str, Any], now: Mapping[str, Any], *, absent: str = "unknown"
) -> None:
    """Refuse to resume a run elsewhere than where it was begun.

    Args:
        begun: The manifest of the run file: host, builds and versions, tables nested.
        now: The same of this moment.
        absent: What is said of a value that one of the two does not have.

    Raises:
        PlanError: They differ in what may change a number; both values of each are told.
    """
    first, second = _flat(begun), _flat(now)
    differing = [
        f"{name} was {_shown(name, first.get(name, absent))},"
        f" is {_shown(name, second.get(name, absent))}"
        for name in dict.fromkeys([*first, *second])
        if name not in _WAVERS and first.get(name) != second.get(name)
    ]
    if differing:
        raise PlanError(
            f"the run was begun under other conditions: {'; '.join(differing)}",
            hint="Trials from before and after such a change cannot be compared. Put it back as it"
            " was, or start a new run.",
        )


def _flat(table: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{above}{key}: ")
        else:
            found[f"{above}{key}"] = list(value) if isinstance(value, tuple) else value
    return found


def _shown(name: str, value: Any) -> str:  # noqa: ANN401  any JSON
    if value is None:
        return "unknown"
    if name.endswith("_bytes") and isinstance(value, int):
        return f"{bytes_text(value)} ({value} bytes)"
    return str(value)
