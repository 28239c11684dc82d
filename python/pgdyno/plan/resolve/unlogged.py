"""Stages whose tables are unlogged: which, what that loses, and what does not go with it."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.model.durability import Durability, Loss
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Workload
from pgdyno.plan.resolve.lowest_rung import too_low
from pgdyno.plan.schema.plan_file import ProtocolTable

_KEY = "unlogged"


def unlogged_losses(stage: str, source: str) -> Durability:
    """What it gives up, whatever the server's settings are."""
    where = f"{source}: stage {stage}"
    loss = Loss(Rung.D6, "unlogged tables", "a crash of the server empties them", "tables", where)
    return Durability((loss,))


def unlogged_problems(
    workload: Workload, protocol: ProtocolTable, *, guarded: bool, replicated: bool
) -> Iterator[tuple[str, str, str | None]]:
    """What keeps the tables of a stage from being unlogged: key, text, hint.

    Args:
        workload: Of the stage.
        protocol: Of the plan.
        guarded: Whether the stage has a guard.
        replicated: Whether the target has a replica, whose tables are read into memory.
    """
    if workload.to_load is None:
        text = "true, and pgdyno loads no tables for the workload"
        yield _KEY, text, "Let its `setup` make them: CREATE UNLOGGED TABLE."
    if guarded:
        text = "true, and the stage has a guard: a standby gets no row of unlogged tables"
        yield _KEY, text, "Write unlogged = false, or guard = false."
    if replicated:
        text = "true, and the server has a replica: a standby gets no row of unlogged tables"
        yield _KEY, text, "Write unlogged = false, or name no replica."
    tpcc = workload.tpcc
    if tpcc is not None and tpcc.partitions is not None and tpcc.foreign_keys:
        text = "true, and foreign keys point to partitioned tables, which cannot be unlogged"
        yield _KEY, text, "Leave out partitions, or foreign_keys."
    if protocol.crash_recovery:
        text = "true, and protocol.crash_recovery = true: after a crash there are no rows to check"
        yield _KEY, text, "Let a drill tell what a crash takes: `pgdyno drill`."
    if protocol.lowest_rung < Rung.D6:
        yield _KEY, *too_low("true", Rung.D6, protocol.lowest_rung)
