"""Rules of the linter, told as data: `data/lint`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal

from pydantic import Field

from pgdyno.catalog.tables import Table, read_tables


class Condition(Table):
    """What must be so of one setting; keys as described in `data/lint/server.toml`."""

    any_of: tuple[str, ...] = Field(default=(), alias="is")
    none_of: tuple[str, ...] = Field(default=(), alias="not")
    above: str | None = None
    below: str | None = None
    matches: str | None = None
    named: bool = False  # the file itself must name it: its default does not count


class Rule(Table):
    """A rule of the linter."""

    severity: Literal["dangerous", "contradictory", "ineffective", "note"]
    text: str
    hint: str = ""
    until: int | None = None  # major version of PostgreSQL up to which it holds
    when: dict[str, Condition]


@cache
def rules() -> Mapping[str, Rule]:
    """All rules by name."""
    found: dict[str, Rule] = {}
    for table in read_tables("lint").values():
        for name, content in table.items():
            assert name not in found, f"rule {name} stands in two files"
            found[name] = Rule.model_validate(content)
    return MappingProxyType(found)
