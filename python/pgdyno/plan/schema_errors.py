"""What pydantic says of a plan file, in our words: key, value, and what is allowed."""

from __future__ import annotations

import difflib
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pgdyno.plan.complaint import Complaint, shown
from pgdyno.plan.document import PlanDocument

Loc = tuple[int | str, ...]

_TYPES = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "string_type": "must be text in quotes",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "tuple_type": "must be an array",
    "finite_number": "must be a finite number",
}
_BOUNDS = {"greater_than_equal": ("ge", "at least"), "less_than_equal": ("le", "at most")}


def complaints_of(error: ValidationError, raw: dict[str, Any]) -> list[tuple[Loc, Complaint]]:
    """Each error with its place in the document."""
    return [
        (detail["loc"], Complaint(_where(detail["loc"], raw), _text(detail)))
        for detail in error.errors(include_url=False)
        if not (detail["type"] == "too_short" and raw.get("stage"))  # it leaves out wrong ones
    ]


def _where(loc: Loc, raw: dict[str, Any]) -> str:
    """`("stage", 1, "why")` as `stage tuned: why`."""
    if loc[:1] == ("stage",) and len(loc) > 1:
        stages, number = raw.get("stage"), loc[1]
        stage = stages[number] if isinstance(stages, list) and isinstance(number, int) else None
        name = stage.get("name") if isinstance(stage, dict) else None
        head = f"stage {name}" if isinstance(name, str) else f"stage number {int(number) + 1}"
        return f"{head}: {_dotted(loc[2:])}" if len(loc) > 2 else head
    return _dotted(loc)


def _dotted(loc: Loc) -> str:
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _text(detail: ErrorDetails) -> str:
    kind = detail["type"]
    if kind == "missing":
        return "is missing"
    if kind == "too_short":
        return "at least one is needed"
    if kind == "extra_forbidden":
        return _unknown_key(detail["loc"])
    return f"{shown(detail['input'])} {_fault(kind, detail)}"


def _fault(kind: str, detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    if kind in _TYPES:
        return _TYPES[kind]
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"is out of range; allowed: {words} {context[key]:g}"
    if kind in ("literal_error", "enum"):
        return f"is unknown; allowed: {_listed(str(context['expected']))}"
    return str(context["error"]) if kind == "value_error" else detail["msg"].lower()


def _listed(expected: str) -> str:
    return expected.replace(" or ", ", ").replace("'", "")


def _unknown_key(loc: Loc) -> str:
    keys = _keys(loc[:-1])
    close = difflib.get_close_matches(str(loc[-1]), keys, n=1)
    meant = f", did you mean {close[0]}" if close else ""
    return f"unknown key{meant}; allowed: {', '.join(keys)}"


def _keys(loc: Loc) -> list[str]:
    """The keys of the table at this place."""
    model: type[BaseModel] = PlanDocument
    for part in loc:
        if isinstance(part, int):
            continue
        names = {field.alias or name: field for name, field in model.model_fields.items()}
        model = next(one for one in _models(names[part].annotation))
    return [field.alias or name for name, field in model.model_fields.items()]


def _models(annotation: Any) -> list[type[BaseModel]]:  # noqa: ANN401  any type expression
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]
