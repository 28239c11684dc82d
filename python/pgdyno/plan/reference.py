"""Writes `docs/reference/plan.md` from the plan's data types: `python -m pgdyno.plan.reference`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from pgdyno.catalog import (
    knobs,
    profile,
    profile_names,
    workload_profile,
    workload_profile_names,
)
from pgdyno.model.settings import Rung
from pgdyno.plan.schema.client import value_text
from pgdyno.plan.schema.fleet_table import FleetTable
from pgdyno.plan.schema.plan_file import (
    QUICK_KEYS,
    EarlierReportTable,
    ExpectsTable,
    FiguresTable,
    PlanDocument,
    PoolerTable,
    ProtocolTable,
    StageTable,
    TargetTable,
)
from pgdyno.plan.schema.workload_table import (
    SHAPES_DATA,
    AnyWorkload,
    ArrivalsTable,
    InvariantTable,
    MixFileTable,
    MixTable,
    PartitionsTable,
    PgbenchTable,
    ScriptTable,
    StepTable,
    TpccTable,
)

_HEAD = """\
# Plan files

<!-- Made from the data types by `python -m pgdyno.plan.reference`; do not edit. -->

A plan is a TOML file: a question, a workload, stages, and how they are measured. Everything is
strict: an unknown key, a wrong type or a value out of range is refused before anything is touched,
with the file, the key, the value and what is allowed. Nothing is rounded or clamped.

`pgdyno run PLAN.toml --dry-run` shows what a plan would do on this machine.
"""

_SET = """\
## `--set KEY=VALUE`

Gives a key another value, after `[quick]` if `--quick` is given. The key is a dotted TOML key; a
stage is found by its name: `--set stage.tuned.settings.max_wal_size=16GB`. The value is TOML; a
bare word that is no TOML, such as `16GB`, is text.

## `--aa`

Measures the first stage a second time in every round, under its name with `-twin` behind it. What
differs between the two is noise: the noise floor of the report.
"""


def reference() -> str:
    """The whole document."""
    parts = [_HEAD]
    for title, model in (
        ("Top level", PlanDocument),
        ("`[target]`", TargetTable),
        ("`[workload]`, every kind", AnyWorkload),
        ('`[workload]` with `kind = "tpcc"`', TpccTable),
        ('`[workload]` with `kind = "tpcb"`, `"select-only"`, `"simple-update"`', PgbenchTable),
        ('`[workload]` with `kind = "mix"`', MixFileTable),
        ('`[workload]` with `kind = "script"`', ScriptTable),
        ("`invariants` of a script", InvariantTable),
        ("`[workload.mix]` of TPC-C", MixTable),
        ("`partitions` of TPC-C", PartitionsTable),
        ("`arrivals`", ArrivalsTable),
        ("`steps`", StepTable),
        ("`[protocol]`", ProtocolTable),
        ("`[fleet]`", FleetTable),
        ("`[[stage]]`", StageTable),
        ("`[earlier]`", EarlierReportTable),
        ("`pooler` of a stage", PoolerTable),
        ("`earlier` of a stage", FiguresTable),
        ("`expects` of a stage", ExpectsTable),
    ):
        parts.append(f"## {title}\n\n{model.__doc__}\n\n{_table(model)}")
    parts += [_client(), _quick(), _SET, _profiles(), _workload_profiles(), _ladder(), _owned()]
    return "\n".join(parts)


def _table(model: type[BaseModel]) -> str:
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    inherited = AnyWorkload.model_fields if model is not AnyWorkload else {}
    for name, field in model.model_fields.items():
        if name in inherited and inherited[name].description == field.description:
            continue
        cells = (f"`{field.alias or name}`", _type(field), _default(field), field.description or "")
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def _type(field: FieldInfo) -> str:
    parts = [_type_name(field.annotation)]
    least, above, most = (_bound(field, key) for key in ("ge", "gt", "le"))
    if least and most:
        parts.append(f"{least} to {most}")
    else:
        named = (("at least", least), ("above", above), ("at most", most))
        parts.append(" and ".join(f"{words} {bound}" for words, bound in named if bound))
    return ", ".join(part for part in parts if part)


def _bound(field: FieldInfo, key: str) -> str:
    """A bound of its values; empty: there is none."""
    found = (getattr(item, key, None) for item in field.metadata)
    value = next((one for one in found if one is not None), None)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else f"{value:,}"


def _type_name(annotation: Any) -> str:  # noqa: ANN401  any type expression
    origin = get_origin(annotation)
    if origin is Literal or annotation is Rung:
        values = get_args(annotation) if origin is Literal else tuple(Rung)
        return ", ".join(f'`"{value}"`' for value in values)
    if origin is dict:
        return "table"
    options = [one for one in get_args(annotation) if one is not type(None)]
    if origin is tuple:
        inner = _type_name(options[0])
        return "tables" if inner == "table" else f"array of {inner}"
    if options:  # `X | None`, Annotated
        return _type_name(options[0])
    return {int: "whole number", float: "number", bool: "true or false", str: "text"}.get(
        annotation, "table"
    )


def _default(field: FieldInfo) -> str:
    value = field.default
    if value is PydanticUndefined:
        return "required"
    if value is None or value in ((), {}) or isinstance(value, BaseModel):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


def _client() -> str:
    keys = ", ".join(f"`{key}`" for key in sorted(SHAPES_DATA))
    return (
        "## `client` of a stage\n\nTakes the keys of `[workload]` but those that shape the data,"
        f" which all stages share:\n{keys}. It adds to the `client` of the stages before,"
        " as settings\ndo, or begins anew with `afresh = true`.\n"
    )


def _quick() -> str:
    keys = [f"`{table}.{key}`" for table, keys in QUICK_KEYS.items() for key in keys]
    return (
        "## `[quick]`\n\nWhat `--quick` changes, as nested tables (`[quick.protocol]`) or quoted"
        f' dotted keys\n(`"protocol.window_s" = 8`). Allowed: {", ".join(keys)}.\n'
    )


def _profiles() -> str:
    return "\n".join(_profile_parts())


def _profile_parts() -> Iterator[str]:
    yield "## Profiles\n"
    for name in profile_names():
        one = profile(name)
        yield f"### `{name}` (rung {one.rung})\n\n{one.why}\n"
        yield "| setting | value | why |\n|---|---|---|"
        for setting, content in one.setting.items():
            if content.value is not None:
                value = f"`{content.value}`"
            elif content.huge_pages:
                value = "`on` where enough huge pages are free, else `off`"
            else:
                limits = [("at least", content.at_least), ("at most", content.at_most)]
                bounds_text = "".join(f", {words} {limit}" for words, limit in limits if limit)
                value = f"{content.share_text(_amount(content.of))}{bounds_text}"
            yield f"| `{setting}` | {value} | {' '.join(content.why.split())} |"
        yield "\nLeft alone on purpose:\n"
        yield "| setting | why |\n|---|---|"
        for setting, why in one.left_alone.items():
            yield f"| `{setting}` | {why} |"
        yield ""


def _workload_profiles() -> str:
    rows = ["## Profiles of workloads\n"]
    for name in workload_profile_names():
        one = workload_profile(name)
        rows += [f"### `{name}` (`kind = \"{one.kind}\"`)\n\n{one.why}\n", "| key | value | why |",
                 "|---|---|---|"]  # fmt: skip
        rows += [
            f"| `{key}` | `{value_text(content.value)}` | {' '.join(content.why.split())} |"
            for key, content in one.key.items()
        ]
    return "\n".join(rows) + "\n"


def _amount(name: str | None) -> str:
    return {"memory": "memory", "free_disk": "free disk"}.get(name or "", f"`{name}`")


def _ladder() -> str:
    rows = ["## Rungs of durability\n", "| rung | settings | what may be lost |", "|---|---|---|"]
    falls = sorted(
        (fall.rung, name, fall) for name, knob in knobs().items() for fall in knob.fall
    )  # fmt: skip
    for rung, name, fall in falls:
        values = ", ".join(fall.values) or f"anything but {', '.join(fall.excepted)}"
        guard = f" (needs the guard {fall.needs_guard})" if fall.needs_guard else ""
        rows.append(f"| {rung} | `{name}` = {values} | {fall.loses}{guard} |")
    rows.append(
        "\nA stage stands on the lowest rung of all that it may lose. Beside its settings these"
        " are, read back in every trial, the settings of database, role and session, unlogged"
        " tables, missing standbys, and the storage: see [durability](../concepts/durability.md).\n"
    )
    return "\n".join(rows)


def _owned() -> str:
    rows = ["## Settings that a plan may not set\n", "| setting | why |", "|---|---|"]
    for name, knob in sorted(knobs().items()):
        if knob.owned is not None:
            instead = f" (use `{knob.instead}`)" if knob.instead else ""
            rows.append(f"| `{name}` | {knob.owned}{instead} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write(reference())
