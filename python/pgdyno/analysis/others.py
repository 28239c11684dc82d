"""Results of other tools as a report shows them: checked together, and what is not as ours was.

A careful reader asks of each: which database, how large, how long, how many, and what a crash would
have taken. What nobody told is said to be so, in the column of those who did not tell it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pgdyno.imports.traps import checked
from pgdyno.model.imported import CONDITIONS, Condition, Imported
from pgdyno.model.plan import Plan, Stage
from pgdyno.model.wording import plural
from pgdyno.model.workload import Workload

NOT_TOLD = "not told"
_ALWAYS = ("database", "warehouses", "scale", "clients", "duration_s")
"""Of the load: told of ours, and to be asked for where it is not told of others."""
_IF_TOLD = (
    "rampup_s", "transaction_type", "new_order_percent", "payment_percent", "other_percent",
    "keying_and_thinking", "isolation", "rate_limit_tps", "statement_form",
)  # fmt: skip
_MEASURED = "measured"
_LAST_S = 253_402_300_800  # year 10000
_OTHER_KINDS = ("order_status", "delivery", "stock_level")


@dataclass(frozen=True, slots=True)
class Unlike:
    """Something that is not the same of ours and of others."""

    what: str
    ours: str
    theirs: tuple[str, ...]  # of each group of results


@dataclass(frozen=True, slots=True)
class OtherConditions:
    """What differs between the stages of a run and the results of others beside them."""

    groups: tuple[tuple[int, ...], ...]  # places of results, from 0, that share all but the day
    lines: tuple[Unlike, ...]


def beside_each_other(kept: Sequence[Imported]) -> tuple[Imported, ...]:
    """Results that a run file keeps, each once, with what the checks say of all of them together.

    They may have been imported one after the other: no check has then seen them beside each other.
    What was imported again, with other words about it, is the same result.

    Args:
        kept: In the order in which they were imported.
    """
    once: dict[tuple[str, str, int, Condition | None], Imported] = {}
    for one in kept:
        job = one.conditions.get("run")  # jobs of a store all have its first line
        once[one.source.sha256, one.form, one.source.first_line, job] = one
    return checked(list(once.values()))


def other_conditions(
    plan: Plan,
    rungs: Sequence[str],
    versions: Sequence[str],
    started_ns: int,
    others: Sequence[Imported],
) -> OtherConditions | None:
    """What differs; None: there is nothing of others.

    Args:
        plan: Of the run.
        rungs: Of its stages.
        versions: Of PostgreSQL, of its stages.
        started_ns: When the run began, since the epoch.
        others: Results of other tools.
    """  # fmt: skip
    if not others:
        return None
    ours = {
        _MEASURED: _day(started_ns / 1e9),
        "runs": plural(plan.protocol.rounds, "round"),
        "what a crash may take": _joined(rungs),
        "settings of the server": "in this report",
        **_ours(plan, versions),
    }
    columns = [_theirs(one) for one in others]
    groups: dict[tuple[str, ...], list[int]] = {}
    seldom = {CONDITIONS[key] for key in _IF_TOLD}
    names = [
        name
        for name in ours
        for same in [{ours[name], NOT_TOLD} if name in seldom else {ours[name]}]
        if any(column[name] not in same for column in columns)
    ]
    for place, column in enumerate(columns):
        alike = tuple(column[name] for name in names if name != _MEASURED)
        groups.setdefault(alike, []).append(place)
    lines = [
        Unlike(name, ours[name], tuple(_of_group(name, places, columns) for places in
                                       groups.values()))
        for name in names
    ]  # fmt: skip
    return OtherConditions(tuple(map(tuple, groups.values())), tuple(lines))


def _of_group(name: str, places: Sequence[int], columns: Sequence[Mapping[str, str]]) -> str:
    """What results of a group share; of their days, which alone they may not, first and last."""
    texts = sorted({columns[place][name] for place in places})
    return texts[0] if len(texts) == 1 else f"{texts[0]} to {texts[-1]}"


def _ours(plan: Plan, versions: Sequence[str]) -> dict[str, str]:
    """What is known of the load of our stages, by the names that others have it by."""
    texts: dict[str, list[str]] = {}
    for stage in plan.stages:
        for key, value in told_of(plan, stage).items():
            texts.setdefault(key, []).append(_shown(value))
    known = {key: _joined(values) for key, values in texts.items()}
    known["database"] = _joined([postgres(one) for one in versions])
    return {CONDITIONS[key]: known[key] for key in (*_ALWAYS, *_IF_TOLD) if key in known}


def told_of(plan: Plan, stage: Stage) -> dict[str, Condition]:
    """What is known of a stage's load, as it is of a result of another tool.

    Args:
        plan: The stage's.
        stage: One of its stages.
    """
    return {
        **_conditions(stage.workload), "duration_s": plan.protocol.window_s,
        "rampup_s": plan.protocol.warmup_s,
    }  # fmt: skip


def _conditions(load: Workload) -> dict[str, Condition]:
    """Each of several databases has data and connections of its own."""
    found: dict[str, Condition] = {
        "clients": load.connections * load.databases, "isolation": load.isolation,
    }  # fmt: skip
    if load.pgbench is not None:
        found |= {"scale": load.pgbench.scale, "transaction_type": load.kind}
    if load.tpcc is not None:
        mix = load.tpcc.mix
        every = sum(mix.values()) or 1.0
        share = {kind: 100 * weight / every for kind, weight in mix.items()}
        pauses = (load.tpcc.keying_multiplier, load.tpcc.think_multiplier)
        found |= {
            "warehouses": load.tpcc.warehouses * load.databases,
            "new_order_percent": share.get("new_order", 0.0),
            "payment_percent": share.get("payment", 0.0),
            "other_percent": min(share.get(kind, 0.0) for kind in _OTHER_KINDS),
            "keying_and_thinking": (
                f"{pauses[0]:g} and {pauses[1]:g} of the text's" if any(pauses) else "none"
            ),
        }
    return found


def _theirs(one: Imported) -> dict[str, str]:
    """The same of a result; what it does not tell is said to be so, unless few ever tell it."""
    repeats = "repeats" in one.conditions
    found = {
        _MEASURED: NOT_TOLD if one.span is None else _day(one.span.begin_s),
        "runs": "one of several" if repeats else "1",
        "what a crash may take": NOT_TOLD, "settings of the server": NOT_TOLD,
    }  # fmt: skip
    for key in (*_ALWAYS, *_IF_TOLD):
        value = one.conditions.get(key)
        found[CONDITIONS[key]] = NOT_TOLD if value is None else _shown(value)
    return found


def postgres(version: str) -> str:
    """PostgreSQL by its version, as results of other tools name their database."""
    return version if version.startswith("PostgreSQL") else f"PostgreSQL {version}"


def _shown(value: Condition) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value - round(value)) < 0.05 else f"{value:,.1f}"


def _joined(texts: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(texts))


def _day(unix_s: float) -> str:
    """The date; that of a file may be none that a calendar has."""
    if not 0 <= unix_s < _LAST_S:
        return NOT_TOLD
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d}"
