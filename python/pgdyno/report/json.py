"""The report as JSON: `facts.Facts` field by field.

The shape is that of the records in `analysis.facts`, named by its first field, `schema`. Values are
in base units (names end in the unit), null means not measured, numbers are finite. Fields may be
added; a field that goes or changes its meaning raises the number in `schema`. `schema()` gives the
shape as JSON Schema.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter

from pgdyno.analysis.facts import Facts
from pgdyno.model.text import json_document


def render(facts: Facts) -> str:
    """The facts of a run, finished or not, as indented JSON."""
    return json_document(asdict(facts))


def schema() -> dict[str, Any]:
    """The shape as JSON Schema (draft 2020-12)."""
    return TypeAdapter(Facts).json_schema(mode="serialization")
