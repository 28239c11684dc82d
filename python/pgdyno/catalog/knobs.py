"""Knobs: what pgdyno must know of a setting beyond what the server tells of it.

Which values give up durability and what for, what guards them, what a reader of the report must
know of a value, and which settings pgdyno keeps to itself. Ranges and units are not told here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from pydantic import Field, model_validator

from pgdyno.catalog.tables import Table, read_tables
from pgdyno.model.settings import Rung


class Choice(Table):
    """Some of the values of a setting: those listed, or all but those listed."""

    values: tuple[str, ...] = ()
    excepted: tuple[str, ...] = Field(default=(), alias="except")

    @model_validator(mode="after")
    def _one_of_both(self) -> Choice:
        if bool(self.values) == bool(self.excepted):
            raise ValueError("either values or except")
        return self

    def holds(self, value: str) -> bool:
        """Whether this value, in the server's own words, is one of them."""
        return value in self.values if self.values else value not in self.excepted


class Fall(Choice):
    """Values that stand on a lower rung of the durability ladder."""

    rung: Rung
    loses: str
    needs_guard: str | None = None


class Note(Choice):
    """Values of which a reader of the report must know something."""

    text: str


class Knob(Table):
    """One setting of the catalogue."""

    family: str
    why: str = ""
    sources: tuple[str, ...] = ()
    fall: tuple[Fall, ...] = ()
    note: tuple[Note, ...] = ()
    at_most: tuple[str, ...] = ()  # settings that this one must not exceed
    owned: str | None = None  # why a plan may not set it
    instead: str | None = None  # the key of the plan that says it


@cache
def knobs() -> Mapping[str, Knob]:
    """All knobs by name, from `data/knobs`; the family is the file's name."""
    result: dict[str, Knob] = {}
    for family, table in read_tables("knobs").items():
        for name, content in table.items():
            assert name not in result, f"knob {name} stands in {family} and {result[name].family}"
            result[name] = Knob.model_validate({"family": family, **content})
    return MappingProxyType(result)
