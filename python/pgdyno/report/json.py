"""The report as JSON: `facts.Facts` field by field.

The shape is that of the records in `report.facts`, named by its first field, `schema`. Values are
in base units (names end in the unit), null means not measured, numbers are finite. Fields may be
added; a field that goes or changes its meaning raises the number in `schema`. `schema()` gives the
shape as JSON Schema.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.run import analyse
from pgdyno.model.text import ascii_json
from pgdyno.store import RunFile


def render(run: RunFile) -> str:
    """The facts of a run file, finished or not, as indented JSON.

    Raises:
        StoreError: The file cannot be read.
    """
    return render_facts(analyse(run))


def render_facts(facts: Facts) -> str:
    """The JSON of facts that are computed already."""
    text = json.dumps(asdict(facts), ensure_ascii=False, allow_nan=False, indent=1)
    return ascii_json(text) + "\n"


def schema() -> dict[str, Any]:
    """The shape as JSON Schema (draft 2020-12)."""
    return TypeAdapter(Facts).json_schema(mode="serialization")
