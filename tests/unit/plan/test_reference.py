"""The generated reference is current, and complete."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import BaseModel

from pgdyno.plan.reference import reference
from pgdyno.plan.schema import plan_file

FILE = Path(__file__).parents[3] / "docs" / "reference" / "plan.md"


def test_the_reference_is_current() -> None:
    again = "python -m pgdyno.plan.reference > docs/reference/plan.md"
    assert FILE.read_text() == reference(), f"make it again: {again}"


def test_every_key_is_described() -> None:
    models = [
        model
        for model in vars(plan_file).values()
        if isinstance(model, type) and issubclass(model, BaseModel)
    ]
    assert len(models) > 6
    for model in models:
        for name, field in model.model_fields.items():
            assert field.description, f"{model.__name__}.{name}"
            assert f"`{field.alias or name}`" in reference()


def test_every_bound_of_a_number_is_told() -> None:
    rows = [line.split(" | ") for line in reference().splitlines() if line.startswith("| `")]
    types = {row[0].strip("|` "): row[1] for row in rows if len(row) == 4}

    assert types["margin"] == "number, above 0 and at most 0.5"
    assert types["seed"] == "whole number, 0 to 9,223,372,036,854,775,807"
    assert types["tps"] == "number, above 0 and at most 1,000,000,000,000"
    assert types["machine"] == "text"
    assert types["runs"] == "whole number, 1 to 1,000"
    assert not [told for told in types.values() if "  " in told or told.endswith(", ")]


def test_every_table_of_a_stage_is_called_as_its_key() -> None:
    titles = re.findall(r"^## `(\w+)` of a stage$", reference(), re.MULTILINE)
    assert titles
    assert set(titles) <= set(plan_file.StageTable.model_fields)
