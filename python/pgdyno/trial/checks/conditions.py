"""The workload's conditions of consistency, on each database that was driven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgdyno.loader.consistency import check
from pgdyno.model.connection import Connection
from pgdyno.model.description import ConditionSql
from pgdyno.model.run import Condition
from pgdyno.target.interface import own_work_mem
from pgdyno.trial.step import After, Learned, Step


def step(after: After) -> Step | None:
    """Check them in the rounds that the protocol names."""
    last = after.protocol.checked_rounds or after.protocol.rounds
    work_mem = own_work_mem(after.target)

    def act() -> Learned:
        found = _of_all(after.databases, after.description.conditions, work_mem)
        return lambda result, _: replace(result, conditions=found)

    return Step("check", act) if after.round_number <= last else None


def _of_all(
    databases: Sequence[Connection], conditions: Sequence[ConditionSql], work_mem: str | None
) -> tuple[Condition, ...]:
    """Those of one number are told as one."""
    first, *others = (check(database, conditions, work_mem=work_mem) for database in databases)
    merged = list(first)
    for database, more in zip(databases[1:], others, strict=True):
        for index, one in enumerate(more):
            sample = merged[index].sample or (one.sample and f"{database.database}: {one.sample}")
            merged[index] = replace(
                merged[index], sample=sample, violations=merged[index].violations + one.violations,
                seconds=merged[index].seconds + one.seconds,
            )  # fmt: skip
    return tuple(merged)
