"""A follow-up plan of one stage of an earlier run: that stage, and what is tried on it.

What the stage had is written out, so that another free disk or another version of pgdyno cannot
change what the next stages build on.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pgdyno.catalog import profile
from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan, Stage
from pgdyno.model.proposal import Prediction
from pgdyno.model.settings import Rung
from pgdyno.model.text import one_line
from pgdyno.plan.schema.complaint import Complaint
from pgdyno.plan.schema.override import (
    apply_overrides,
    parse_override,
    quick_values,
    with_quick,
)

_SUFFIX = "-next"
ROUNDS = 8
"""At most, of a plan that stops when it is decided."""


@dataclass(frozen=True, slots=True)
class TriedStage:
    """A stage that is measured beside the one that it builds on; see the plan's reference."""

    name: str
    why: str
    settings: Mapping[str, str] = field(default_factory=dict)  # of the server
    client: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    host: Mapping[str, str] = field(default_factory=dict)  # of the machine
    profile: str | None = None
    expects: Prediction | None = None

    def table(self) -> dict[str, Any]:
        """Its keys, as a plan has them."""
        return {key: value for key, value in asdict(self).items() if value is not None}


def follow_up(plan: Plan, base: Stage, tried: Sequence[TriedStage], lowest: Rung) -> dict[str, Any]:
    """The document of a plan that measures a stage, and others that build on it.

    Args:
        plan: Of the earlier run.
        base: One of its stages.
        tried: The stages to come; each builds on the base alone.
        lowest: The lowest rung that any of them may stand on.

    Raises:
        PlanError: The stage stands in no table of the plan.
    """
    document = _as_run(plan)
    tables = [dict(one) for one in document.pop("stage")]
    for key in ("quick", "earlier", "reference", "notes"):
        document.pop(key, None)
    protocol = dict(document.get("protocol", {}))
    protocol["lowest_rung"] = max(lowest, base.rung).value
    if not tried:
        protocol["stop"] = "rounds"
    elif protocol.get("checkpoints") != "anchors" and plan.protocol.stop != "decided":
        protocol |= {"stop": "decided", "rounds": ROUNDS}
        protocol.pop("confidence", None)
    client, build = _client_and_build(tables, base)
    settings = {one.name: one.value for one in base.settings}
    shared: dict[str, Any] = {"build": build} if build else {}
    shared |= {"folder": base.folder} if base.folder else {}
    shared |= {key: True for key, said in base.flags.items() if said}
    shared |= {"pooler": asdict(base.pooler)} if base.pooler else {}
    host = {one.name: one.value for one in base.host}
    first = {"name": base.name, "why": base.why, "settings": settings, "client": client,
             "host": host, **shared}  # fmt: skip
    others = [
        {
            **one.table(), "afresh": True, **shared,
            "settings": {**_below(settings, one.profile), **one.settings},
            "client": {**client, **one.client}, "host": {**host, **one.host},
        }
        for one in tried
    ]  # fmt: skip
    names = " or ".join(one.name for one in tried)
    question = f"Is {names} better than {base.name}?" if names else f"What is {base.name}?"
    return {
        **document, "name": f"{plan.name.removesuffix(_SUFFIX)}{_SUFFIX}", "question": question,
        "protocol": protocol, "stage": [_without_empty(one) for one in (first, *others)],
    }  # fmt: skip


def folder_of(plan: Plan) -> Path:
    """Where the files lie that the plan names."""
    path = Path(plan.source)
    return path.parent if path.is_file() else Path.cwd()


def _as_run(plan: Plan) -> dict[str, Any]:
    """The plan's document, with what `--quick` and `--set` made of it."""
    document = tomllib.loads(plan.text)
    if plan.quick:
        document = with_quick(document, quick_values(document)[0])
    parsed = [parse_override(one) for one in plan.overrides]
    changed, _ = apply_overrides(
        document, [one for one in parsed if not isinstance(one, Complaint)]
    )
    return changed


def _client_and_build(
    tables: Sequence[Mapping[str, Any]], base: Stage
) -> tuple[dict[str, Any], str | None]:
    """What stages chose for the client up to this one, and the build that it runs on."""
    client: dict[str, Any] = {}
    build: str | None = None
    wanted = base.twin_of or base.name
    for one in tables:
        if one.get("skip"):
            continue
        if one.get("afresh"):
            client, build = {}, None
        client |= one.get("client", {})
        build = one.get("build", build)
        if one["name"] == wanted:
            return client, build
    raise PlanError(
        f"stage {one_line(base.name)} is one of several that a stage of the plan was repeated as",
        "Write it into a plan of its own, and run that.",
    )


def _below(settings: Mapping[str, str], name: str | None) -> dict[str, str]:
    """What a stage keeps of its base's settings: not those that its profile has a value for."""
    replaced = profile(name).setting if name else {}
    return {key: value for key, value in settings.items() if key not in replaced}


def _without_empty(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value != {}}
