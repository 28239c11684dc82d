"""A replica of a plan file that answers reads: whether it goes with the rest of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.plan.schema.client import StageClient
from pgdyno.plan.schema.complaint import Complaint
from pgdyno.plan.schema.plan_file import PlanDocument
from pgdyno.plan.schema.workload_table import TpccTable


def replica_complaints(
    document: PlanDocument, clients: Sequence[StageClient]
) -> Iterator[Complaint]:
    """What is wrong with who answers reads, before any server is asked."""
    tables = {f"stage {stage.name}": client.table for stage, client in
              zip(document.stage, clients, strict=False)}  # fmt: skip
    asking = {
        where: table
        for where, table in tables.items()
        if isinstance(table, TpccTable) and table.replica_connections
    }
    target = document.target
    key = "replica" if target.kind == "running" else "replicas"
    named = bool(getattr(target, key))
    if named and target.servers:
        text = "is of one server, and target.servers names several; allowed: one of both"
        yield Complaint("target.replica", text)
    guarded = key == "replicas" and any(stage.guard for stage in document.stage)
    if named and tables and not asking and not guarded:
        text = "is asked nothing: no stage has workload.replica_connections above 0"
        yield Complaint(f"target.{key}", text)
    if asking and document.protocol.telemetry == "none":
        text = 'is "none", but how far the replica is behind has to be known; allowed with'
        yield Complaint("protocol.telemetry", f"{text} replica_connections: default, full")
    missing = None if named else key
    for where, table in asking.items():
        yield from (
            Complaint(f"{where}: workload.{one}", text) for one, text in _unable(table, missing)
        )


def _unable(table: TpccTable, missing: str | None) -> Iterator[tuple[str, str]]:
    """What a stage asks for that a replica cannot do, as (key, what is wrong).

    Args:
        table: Of its workload.
        missing: The key of the target that would give one; None: there is one.
    """
    count = table.replica_connections
    if missing is not None:
        yield "replica_connections", f"is {count}, and target.{missing} is missing"
    if table.isolation == "serializable":
        text = "is serializable, which no standby does; allowed with replica_connections: others"
        yield "isolation", text
    if table.face == "procedure":
        text = (
            "is procedure, whose functions are made when the load begins, and come to the replica"
        )
        yield "face", f"{text} later; allowed with replica_connections: statement, pipeline"
    if table.rules != "text":
        text = f"is {table.rules}; allowed with replica_connections: text"
        yield "rules", text
    if table.threads is not None and table.threads > count:
        text = f"are {table.threads}, and replica_connections are {count}: some would ask nobody"
        yield "threads", f"{text}; allowed: as many or fewer"
