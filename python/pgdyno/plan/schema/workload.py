"""From a checked `[workload]` and the files it names to the record of what is driven."""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.model.workload import (
    Arrivals,
    Data,
    Invariant,
    Mix,
    Partitions,
    Pgbench,
    Script,
    SourceFile,
    Step,
    Tpcc,
    Workload,
)
from pgdyno.plan.schema.workload_table import (
    KINDS,
    AnyWorkload,
    MixFileTable,
    OwnWorkload,
    PgbenchTable,
    StepTable,
    TpccTable,
    WorkloadTable,
    path_and_weight,
)


def workload_of(table: WorkloadTable, sources: Mapping[str, str]) -> Workload:
    """The workload, with nothing left open but the number of threads.

    Args:
        table: As checked.
        sources: Path of each file that it names -> its content.
    """
    tpcc = pgbench = mix = script = None
    if isinstance(table, TpccTable):
        tpcc = _tpcc(table)
    elif isinstance(table, PgbenchTable):
        pgbench = Pgbench(table.scale, table.foreign_keys)
    elif isinstance(table, MixFileTable):
        mix = Mix(SourceFile(table.file, sources[table.file]), _data(table, sources))
    else:
        files = [path_and_weight(one) for one in table.file]
        script = Script(
            tuple(SourceFile(path, sources[path], weight) for path, weight in files),
            _data(table, sources),
            dict(table.variables),
            dict(table.witness),
            tuple(Invariant(one.title, one.sql) for one in table.invariants),
        )
    return Workload(
        kind=table.kind,
        seed=table.seed,
        engine=table.engine,
        face=table.face,
        isolation=table.isolation,
        connections=table.connections,
        terminals=table.terminals or table.connections,
        threads=table.threads,
        arrivals=_arrivals(table),
        steps=tuple(_step(one) for one in table.steps),
        databases=table.databases,
        requests_max=table.requests_max,
        replica_connections=table.replica_connections if isinstance(table, TpccTable) else 0,
        tpcc=tpcc,
        pgbench=pgbench,
        mix=mix,
        script=script,
    )


def _arrivals(table: AnyWorkload) -> Arrivals:
    if table.arrivals is None:
        return Arrivals()
    return Arrivals("open", float(table.arrivals.rate), table.arrivals.spacing)


def _step(table: StepTable) -> Step:
    start = table.from_ if table.factor is None else table.factor
    end = table.to if table.factor is None else table.factor
    assert start is not None
    assert end is not None
    return Step(float(table.seconds), float(start), float(end))


def _tpcc(table: TpccTable) -> Tpcc:
    cut = table.partitions
    return Tpcc(
        warehouses=table.warehouses,
        schema=table.schema_,
        rules=table.rules,
        foreign_keys=table.foreign_keys,
        partitions=Partitions(cut.by, cut.count) if cut else None,
        order=table.order,
        mix={kind: float(getattr(table.mix, kind)) for kind in KINDS},
        delivery=table.delivery,
        home=table.home,
        keying_multiplier=float(table.keying_multiplier),
        think_multiplier=float(table.think_multiplier),
    )


def _data(table: OwnWorkload, sources: Mapping[str, str]) -> Data:
    setup = SourceFile(table.setup, sources[table.setup]) if table.setup else None
    return Data(table.data, table.scale, setup)
