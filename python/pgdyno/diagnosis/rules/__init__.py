"""The classes of limits, one file each: found by location, in the order of their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from pgdyno.diagnosis.rule import Rule
from pgdyno.model.by_location import modules_of


@cache
def rules() -> Mapping[str, Rule]:
    """All rules by the names of their files."""
    found = {module.__name__.rpartition(".")[2]: module.RULE for module in modules_of(__name__)}
    numbers = [rule.number for rule in found.values()]
    assert sorted(numbers) == list(range(1, len(numbers) + 1)), f"classes are numbered {numbers}"
    return MappingProxyType(dict(sorted(found.items(), key=lambda one: one[1].number)))
