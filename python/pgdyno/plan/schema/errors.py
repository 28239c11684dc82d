"""What pydantic says of a plan file, in our words: key, value, and what is allowed."""

from __future__ import annotations

import difflib
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pgdyno.catalog.entries import entries
from pgdyno.plan.schema.complaint import COMPLAINTS_MAX, NO_TABLE, Complaint, shown
from pgdyno.plan.schema.plan_file import PlanDocument
from pgdyno.plan.schema.toml import toml_key
from pgdyno.plan.schema.workload_table import TABLES, keys_of, kind_of

Loc = tuple[int | str, ...]

_TYPES = {
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a smaller number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text in quotes",
    "dict_type": NO_TABLE,
    "model_type": NO_TABLE,
    "tuple_type": "must be an array",
    "finite_number": "must be a finite number",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
}


def complaints_of(error: ValidationError, raw: dict[str, Any]) -> list[tuple[Loc, Complaint]]:
    """Each error with its place in the document."""
    found = []
    for detail in error.errors(include_url=False)[:COMPLAINTS_MAX]:
        loc = loc_of(detail)
        if detail["type"] == "too_short" and loc == ("stage",) and raw.get("stage"):
            continue  # it leaves out wrong ones
        root: type[BaseModel] = PlanDocument
        inside = loc
        if detail["type"] == "extra_forbidden" and (there := _elsewhere(loc, raw)):
            text = f"unknown key, did you mean {there}"
            found.append((loc, Complaint(_where(loc, raw), text)))
            continue
        if loc[:1] == ("workload",) and len(loc) > 1:
            root, inside = TABLES[kind_of(raw.get("workload"))], loc[1:]
        found.append((loc, Complaint(_where(loc, raw), _text(detail, root, inside))))
    return found


def _elsewhere(loc: Loc, raw: dict[str, Any]) -> str | None:
    """Where a key belongs that stands one table too high, e.g. `protocol.rounds`."""
    key = str(loc[-1])
    if loc[:1] == ("stage",):
        return f"settings.{key}" if len(loc) == 3 and key in entries() else None
    if len(loc) > 1:
        return None
    tables = {name: _table_at(PlanDocument, (name,)) for name in ("protocol", "target")}
    if workload := TABLES.get(kind_of(raw.get("workload"))):
        tables["workload"] = workload
    return next((f"{name}.{key}" for name, one in tables.items() if key in keys_of(one)), None)


def faults_of(error: ValidationError, table: type[BaseModel]) -> list[tuple[str, str]]:
    """Each error of a table by itself, as (key, what is wrong)."""
    return [
        (_dotted(detail["loc"]), _text(detail, table, detail["loc"]))
        for detail in error.errors(include_url=False)
    ]


def loc_of(detail: ErrorDetails) -> Loc:
    """The place of an error, without the name of the workload's table that pydantic puts there."""
    loc = detail["loc"]
    return loc[:1] + loc[2:] if loc[:1] == ("workload",) else loc


def _where(loc: Loc, raw: dict[str, Any]) -> str:
    """`("stage", 1, "why")` as `stage tuned: why`."""
    if loc[:1] == ("stage",) and len(loc) > 1:
        stages, number = raw.get("stage"), loc[1]
        stage = stages[number] if isinstance(stages, list) and isinstance(number, int) else None
        name = stage.get("name") if isinstance(stage, dict) else None
        head = (
            f"stage {toml_key(name)}"
            if isinstance(name, str)
            else f"stage number {int(number) + 1}"
        )
        return f"{head}: {_dotted(loc[2:])}" if len(loc) > 2 else head
    return _dotted(loc)


def _dotted(loc: Loc) -> str:
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{toml_key(part)}"
    return text.removeprefix(".")


def _text(detail: ErrorDetails, root: type[BaseModel], loc: Loc) -> str:
    kind = detail["type"]
    if kind == "missing":
        return "is missing"
    if kind == "too_short":
        return "at least one is needed"
    if kind == "extra_forbidden":
        return unknown_key(str(loc[-1]), keys_of(_table_at(root, loc[:-1])))
    if kind == "too_long":
        context = detail["ctx"]
        return f"are {context['actual_length']}, allowed are at most {context['max_length']}"
    if kind == "tuple_type" and loc == ("stage",) and isinstance(detail["input"], dict):
        return "is one table, but must be an array of tables; begin each with [[stage]]"
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


def unknown_key(key: str, keys: list[str]) -> str:
    """That a table has no such key, with those that it has."""
    close = difflib.get_close_matches(key, keys, n=1)
    meant = f", did you mean {close[0]}" if close else ""
    return f"unknown key{meant}; allowed: {', '.join(keys)}"


def _table_at(root: type[BaseModel], loc: Loc) -> type[BaseModel]:
    """The type of the table at a place within another."""
    model = root
    for part in loc:
        if isinstance(part, int):
            continue
        names = {field.alias or name: field for name, field in model.model_fields.items()}
        model = next(one for one in _models(names[part].annotation))
    return model


def _models(annotation: Any) -> list[type[BaseModel]]:  # noqa: ANN401  any type expression
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]
