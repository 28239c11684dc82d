"""Several servers of a plan file, as they are named: whether they go with the rest of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pgdyno.model.wording import plural
from pgdyno.plan.schema.client import StageClient
from pgdyno.plan.schema.complaint import Complaint, shown
from pgdyno.plan.schema.plan_file import PlanDocument, ProtocolTable
from pgdyno.plan.schema.workload_table import TpccTable, WorkloadTable


def servers_complaints(document: PlanDocument) -> Iterator[Complaint]:
    """What is wrong with the servers, before any is asked."""
    target, count = document.target, len(document.target.servers)
    if not count:
        if "share" in target.model_fields_set:
            text = "goes with target.servers, which is missing"
            yield Complaint("target.share", text)
        return
    if target.conninfo:
        text = "names one server, and target.servers names others; allowed: one of both"
        yield Complaint("target.conninfo", text)
    if count == 1:
        text = "names one server; allowed: two or more"
        yield Complaint("target.servers", text, "Name one by target.conninfo.")
    for named, times in Counter(target.servers).items():
        if times > 1:
            text = f"{shown(named)} stands there {plural(times, 'time')}; allowed: once"
            yield Complaint("target.servers", text)
    yield from _of_protocol(document.protocol)
    for key, text, hint in divided(document.workload, count, target.share):
        yield Complaint(f"workload.{key}", text, hint)


def stage_complaints(document: PlanDocument, clients: Sequence[StageClient]) -> Iterator[Complaint]:
    """What stages ask for that cannot be had from several servers."""
    target = document.target
    if not target.servers or len(clients) != len(document.stage):
        return  # of a stage that is wrong nothing more is said
    for stage, client in zip(document.stage, clients, strict=True):
        for key, text, hint in divided(client.table, len(target.servers), target.share):
            if key in stage.client:
                yield Complaint(f"stage {stage.name}: client.{key}", text, hint)


def _of_protocol(protocol: ProtocolTable) -> Iterator[Complaint]:
    if protocol.checkpoints != "ignore":
        text = (
            f"is {shown(protocol.checkpoints)}, but each of several servers has checkpoints of its"
            ' own; allowed with target.servers: "ignore"'
        )
        yield Complaint("protocol.checkpoints", text)
    if protocol.profile_s:
        text = f"is {protocol.profile_s:g}, but a profile is of one server; allowed with"
        yield Complaint("protocol.profile_s", f"{text} target.servers: 0")


def divided(
    table: WorkloadTable, servers: int, share: str
) -> Iterator[tuple[str, str, str | None]]:
    """What of a workload cannot be had from several servers, as (key, what is wrong, hint).

    Args:
        table: Of the plan, or of one of its stages.
        servers: How many.
        share: What each has, see `TargetTable`.
    """
    if table.engine == "pgbench":
        text = "is pgbench, which drives one server; allowed with target.servers: pgdyno"
        yield "engine", text, None
    if table.databases != 1:
        text = f"is {table.databases}, but each of target.servers has one; allowed: 1"
        yield "databases", text, None
    if share != "block":
        return
    if not isinstance(table, TpccTable):
        text = f"is {table.kind}, which has no warehouses; allowed with"
        text = f'{text} target.share = "block": tpcc'
        yield "kind", text, 'Use target.share = "alike".'
        return
    if table.partitions is not None:
        text = 'are given, and the warehouses divided by target.share = "block"'
        yield "partitions", f"{text}; allowed: one of both", None
    if table.home == "random":
        text = 'is random, but with target.share = "block" a terminal keeps to its server'
        yield "home", f"{text}; allowed: fixed", None
    terminals = table.terminals or table.connections
    for key, count in (("warehouses", table.warehouses), ("connections", table.connections),
                       ("terminals", terminals)):  # fmt: skip
        if count % servers:
            text = (
                f"is {count}, which {plural(servers, 'server')} cannot share evenly; allowed with"
                f' target.share = "block": multiples of {servers}'
            )
            yield key, text, None
