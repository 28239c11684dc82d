"""Knobs: what pgdyno must know of a setting beyond what the server tells of it.

Which values give up durability and what for, what guards them, what a reader of the report must
know of a value, and which settings pgdyno keeps to itself. Ranges and units are not told here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal

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


class Before(Table):
    """What was otherwise in the oldest version that the catalogue was compared with, 15."""

    type: str | None = None
    context: str | None = None
    min: float | None = None
    max: float | None = None


class Knob(Table):
    """One setting of the server; keys as described in `data/knobs/durability.toml`."""

    family: str
    type: Literal["bool", "integer", "real", "enum", "string"] | None = None  # None: in no version
    context: str | None = None  # as pg_settings has it
    min: float | None = None
    max: float | None = None
    before: Before | None = None
    why: str = ""
    sources: tuple[str, ...] = ()
    fall: tuple[Fall, ...] = ()
    note: tuple[Note, ...] = ()
    at_most: tuple[str, ...] = ()  # settings that this one must not exceed
    owned: str | None = None  # why a plan may not set it
    instead: str | None = None  # the key of the plan that says it
    risk: Literal["none", "recent commits", "corruption", "availability", "security"] = "none"
    advise: str | None = None
    search: str | None = None
    reports: tuple[str, ...] = ()  # what the field reports set


@cache
def knobs() -> Mapping[str, Knob]:
    """All knobs by name, from `data/knobs`; the family is the file's name."""
    result: dict[str, Knob] = {}
    for family, table in read_tables("knobs").items():
        for name, content in table.items():
            assert name not in result, f"knob {name} stands in {family} and {result[name].family}"
            result[name] = Knob.model_validate({"family": family, **content})
    return MappingProxyType(result)
