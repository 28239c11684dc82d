"""The generated reference is current, and complete."""

from __future__ import annotations

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
