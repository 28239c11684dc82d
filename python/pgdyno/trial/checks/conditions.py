"""The workload's conditions of consistency, on each database that was driven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgdyno.loader.consistency import check
from pgdyno.model.run import Condition
from pgdyno.target.interface import on_server, own_work_mem
from pgdyno.trial.after_window import Action, EndedWindow, Learned
from pgdyno.trial.servers import with_violations


def action(ended: EndedWindow) -> Action | None:
    """Check them in the rounds that the protocol names."""
    last = ended.protocol.checked_rounds or ended.protocol.rounds
    work_mem, conditions = own_work_mem(ended.target), ended.description.conditions

    def act() -> Learned:
        each = []
        names = ended.servers or [one.database for one in ended.databases]
        for name, one in zip(names, ended.databases, strict=True):
            with on_server(name if ended.servers else ""):
                each.append(check(one, conditions, work_mem=work_mem))
        found = _of_all(names, each, names_first=bool(ended.servers))
        violations = [sum(one.violations for one in those) for those in each]
        return lambda result, _: replace(
            result, conditions=found, servers=with_violations(result.servers, violations)
        )

    return Action("check", act) if ended.round_number <= last else None


def _of_all(
    names: Sequence[str], each: Sequence[Sequence[Condition]], *, names_first: bool
) -> tuple[Condition, ...]:
    """Those of one number are told as one.

    Args:
        names: Of the databases or servers; of databases the first goes without saying.
        each: What was found in each.
        names_first: Whether the first is named as well.
    """
    merged = list(each[0])
    if names_first:
        merged = [replace(one, sample=one.sample and f"{names[0]}: {one.sample}") for one in merged]
    for name, more in zip(names[1:], each[1:], strict=True):
        for index, one in enumerate(more):
            sample = merged[index].sample or (one.sample and f"{name}: {one.sample}")
            merged[index] = replace(
                merged[index], sample=sample, violations=merged[index].violations + one.violations,
                seconds=merged[index].seconds + one.seconds,
            )  # fmt: skip
    return tuple(merged)
