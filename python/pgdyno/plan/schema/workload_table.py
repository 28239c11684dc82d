"""`[workload]` of a plan file as data types, one for each kind; strict as the rest of the plan.

A stage may change what is driven (`client = { … }`), never what the loaded data look like:
`SHAPES_DATA` tells the keys apart.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from pgdyno.catalog.contract import bounds, default, limits, most
from pgdyno.model.workload import (
    CONNECTIONS,
    TEXT_MIX,
    DataKind,
    Delivery,
    Engine,
    Face,
    Home,
    Isolation,
    Order,
    Rules,
    Schema,
    Spacing,
)

KINDS = tuple(TEXT_MIX)
INTEGER_MAX = 2**63 - 1
"""The largest integer of TOML, and of a run file; the core would take larger ones."""


CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
"""Characters that no line of text holds: they would end a path, or move a terminal's cursor."""


class Table(BaseModel):
    """A table of the plan file: strict, frozen, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _one_line(text: str) -> str:
    if not text.strip() or len(text.splitlines()) != 1:
        raise ValueError("must be one line of text, and not empty")
    if odd := CONTROL.search(text):
        raise ValueError(f"holds the control character U+{ord(odd[0]):04X}")
    return text


def _closed(value: object) -> object:
    if isinstance(value, str):
        if value == "closed":
            return None
        raise ValueError('is unknown; allowed: "closed", { rate = 1000, spacing = "poisson" }')
    return value


def _files(value: object) -> object:
    # One file, or several with weights: `"a.sql"`, `["a.sql@2", "b.sql"]`.
    return [value] if isinstance(value, str) else value


def _weighted(text: str) -> str:
    _one_line(text)
    path, at, weight = text.rpartition("@")
    low, high = limits("ScriptSpec", "scripts.weight")
    if at and (not path or not re.fullmatch(r"[0-9]{1,9}", weight) or int(weight) > (high or 0)):
        raise ValueError(f"must be a path, or path@weight with a weight of {low} to {high}")
    return text


def path_and_weight(text: str) -> tuple[str, float]:
    """`a.sql@3` as its two parts; the weight is 1 where none stands."""
    path, at, weight = text.rpartition("@")
    return (path, float(weight)) if at and weight.isdecimal() else (text, 1.0)


Line = Annotated[str, AfterValidator(_one_line)]
Scalar = bool | int | float | str
Weight = Annotated[float, bounds("TpccSpec", "mix.new_order")]
Factor = Annotated[float | None, bounds("DriveSpec", "steps.factor")]
_MIX: dict[str, float] = default("TpccSpec", "mix")


class MixTable(Table):
    """Weights of the five transactions; only their proportions count."""

    new_order: Weight = Field(_MIX["new_order"], description="New-Order.")
    payment: Weight = Field(_MIX["payment"], description="Payment.")
    order_status: Weight = Field(_MIX["order_status"], description="Order-Status.")
    delivery: Weight = Field(_MIX["delivery"], description="Delivery.")
    stock_level: Weight = Field(_MIX["stock_level"], description="Stock-Level.")


class PartitionsTable(Table):
    """How the large tables are partitioned, by warehouse."""

    by: Literal["hash", "range"] = Field(description="How warehouses are dealt out.")
    count: Annotated[int, bounds("TpccSpec", "partitions.count")] = Field(
        description="Partitions of each table, at most one for each warehouse."
    )


class ArrivalsTable(Table):
    """Requests that are due by a schedule, whether or not the server keeps up."""

    rate: Annotated[float, bounds("DriveSpec", "arrivals.per_s")] = Field(
        description="Requests a second, of all terminals together."
    )
    spacing: Spacing = Field("even", description="Even intervals, or those of a Poisson process.")


class StepTable(Table):
    """A part of the window with a load of its own; all parts together fill the window."""

    seconds: Annotated[float, bounds("DriveSpec", "steps.seconds")] = Field(
        description="How long it lasts."
    )
    factor: Factor = Field(
        None,
        description="Times the rate of open arrivals; of closed ones the share (0 to 1) of the "
        "terminals that are active.",
    )
    from_: Factor = Field(
        None, alias="from", description="Instead of `factor`: where a ramp begins."
    )
    to: Factor = Field(None, description="Where the ramp ends.")

    @model_validator(mode="after")
    def _factor_or_ramp(self) -> StepTable:
        if (self.factor is None) == (self.from_ is None) or (self.from_ is None) != (
            self.to is None
        ):
            raise ValueError("needs either factor, or from and to")
        return self


class AnyWorkload(Table):
    """Keys that every kind has."""

    seed: int = Field(
        default("TpccSpec", "seed"),
        ge=limits("TpccSpec", "seed")[0],
        le=INTEGER_MAX,
        description="Rows and requests are a function of it, equal for all stages.",
    )
    connections: Annotated[int, bounds("DriveSpec", "connections")] = Field(
        CONNECTIONS, description="Sessions of the server, for each database."
    )
    terminals: Annotated[int | None, bounds("DriveSpec", "terminals")] = Field(
        None,
        description="Simulated users for each database, at least as many as connections; absent: "
        "as many.",
    )
    threads: Annotated[int | None, bounds("DriveSpec", "threads")] = Field(
        None,
        description="Threads of the driver; absent: one for each 4 connections, at most the cores.",
    )
    engine: Engine = Field(
        "pgdyno",
        description="Who drives: our own driver, or the real `pgbench` of the server's programs; "
        "what it cannot do is refused.",
    )
    face: Face = Field(
        default("TpccSpec", "face"),
        description="How statements travel: `statement`: each in one round trip, prepared; "
        "`pipeline`: in as few round trips as the data allow; `procedure`: one call.",
    )
    isolation: Isolation = Field(
        default("TpccSpec", "isolation"), description="Isolation level of the transactions."
    )
    arrivals: Annotated[ArrivalsTable | None, BeforeValidator(_closed)] = Field(
        None,
        description='`"closed"` (the default): the next request comes after the answer; '
        '`{ rate = 1000, spacing = "poisson" }`: by a schedule, so that waiting is counted.',
    )
    steps: Annotated[
        tuple[StepTable, ...], Field(strict=False, max_length=most("DriveSpec", "steps"))
    ] = Field(
        (), description="Loads of the window one after another: `[{ seconds = 60, factor = 0.5 }]`."
    )
    requests_max: Annotated[int | None, bounds("DriveSpec", "requests_max")] = Field(
        None, description="Requests of each terminal, which then asks no more."
    )
    databases: int = Field(
        1,
        ge=1,
        le=most("DriveSpec", "parts"),
        description="Databases that are loaded alike and driven at once; a stage may drive fewer "
        "of them.",
    )


class TpccTable(AnyWorkload):
    """TPC-C-like; see the list of deviations."""

    kind: Literal["tpcc"] = Field("tpcc", description="The kind of workload; the default.")
    profile: Line | None = Field(
        None,
        description="A workload of the catalogue, e.g. `benchmarksql-5`; keys of the plan win.",
    )
    warehouses: Annotated[int, bounds("TpccSpec", "warehouses")] = Field(
        default("TpccSpec", "warehouses"), description="Scale; one warehouse is about 100 MB."
    )
    schema_: Schema = Field(
        default("TpccSpec", "schema"),
        alias="schema",
        description="Tables, names and indexes as TPC-C suggests, or as BenchmarkSQL 5 has them.",
    )
    rules: Rules = Field(
        default("TpccSpec", "rules"),
        description="Transactions by the text of TPC-C, or with BenchmarkSQL's own statements.",
    )
    foreign_keys: bool = Field(
        default("TpccSpec", "foreign_keys"), description="Add the foreign keys of clause 1.4."
    )
    partitions: PartitionsTable | None = Field(
        None, description='Partition the large tables: `{ by = "hash", count = 8 }`.'
    )
    order: Order = Field(
        default("TpccSpec", "order"),
        description="How loaded rows lie: by warehouse, or mixed as orders would arrive.",
    )
    delivery: Delivery = Field(
        default("TpccSpec", "delivery"),
        description="Deliveries are queued and performed in the background (clause 2.7.2), or "
        "while the terminal waits.",
    )
    home: Home = Field(
        default("TpccSpec", "home"),
        description="A terminal keeps to its warehouse (clause 2.4.1.1), or takes any each time.",
    )
    keying_multiplier: Annotated[float, bounds("TpccSpec", "keying_multiplier")] = Field(
        default("TpccSpec", "keying_multiplier"),
        description="Times the keying times of clause 5.2.5.2; 0: none.",
    )
    think_multiplier: Annotated[float, bounds("TpccSpec", "think_multiplier")] = Field(
        default("TpccSpec", "think_multiplier"),
        description="Times the think times of clause 5.2.5.4; 0: none.",
    )
    mix: MixTable = Field(MixTable(), description="Weights of the transactions.")
    replica_connections: int = Field(
        0,
        ge=0,
        le=limits("DriveSpec", "replica.connections")[1],
        description="Connections with the replica (`target.replica`, `target.replicas`), which "
        "then answers Order-Status and Stock-Level; 0: the server itself answers all.",
    )


class PgbenchTable(AnyWorkload):
    """pgbench's built-in workloads, on pgbench's tables."""

    kind: Literal["tpcb", "select-only", "simple-update"] = Field(description="Which of them.")
    scale: Annotated[int, bounds("PgbenchSpec", "scale")] = Field(
        default("PgbenchSpec", "scale"),
        description="Branches, 100,000 accounts each; about 15 MB.",
    )
    foreign_keys: bool = Field(
        default("PgbenchSpec", "foreign_keys"), description="Add the foreign keys of `pgbench -i`."
    )


class OwnWorkload(AnyWorkload):
    """Keys of the kinds that a user writes."""

    data: DataKind = Field(
        "none", description="Tables to be loaded for it, of `scale` branches or warehouses."
    )
    scale: Annotated[int, bounds("PgbenchSpec", "scale")] = Field(
        default("MixSpec", "scale"), description="Size of these tables."
    )
    setup: Line | None = Field(
        None, description="A file of SQL, run once after loading; its result is shared by stages."
    )


class MixFileTable(OwnWorkload):
    """A mix of SQL transactions in a TOML file of its own; a stage may name another one."""

    kind: Literal["mix"] = Field(description="The kind of workload.")
    file: Line = Field(description="The mix (TOML), its path relative to the plan.")
    face: Literal["statement", "pipeline"] = Field(
        "statement", description="Each statement in a round trip, or a whole transaction in one."
    )


class InvariantTable(Table):
    """What must hold after the load and after every trial."""

    title: Line = Field(description="What must hold, as a sentence for the report.")
    sql: Annotated[str, Field(min_length=1)] = Field(
        description="A query that returns the rows that violate it."
    )


class ScriptTable(OwnWorkload):
    """Script files as pgbench has them; a stage may name others."""

    kind: Literal["script"] = Field(description="The kind of workload.")
    file: Annotated[
        tuple[Annotated[str, AfterValidator(_weighted)], ...],
        BeforeValidator(_files),
        Field(strict=False, min_length=1),
    ] = Field(description="A script, or several: `path` or `path@weight`, relative to the plan.")
    variables: dict[str, Scalar] = Field(
        {}, description="Variables that are set before a script begins, as pgbench's `-D`."
    )
    witness: dict[str, str] = Field(
        {},
        description="By script, as `file` names it: a query of one column, the `:request_id` of"
        " each of its requests that is committed. A drill asks it what survived.",
    )
    invariants: Annotated[tuple[InvariantTable, ...], Field(strict=False)] = Field(
        (), description="What must hold after the load and after every trial, as in a mix."
    )
    face: Literal["statement"] = Field(
        "statement", description="A script says itself what it pipelines."
    )
    isolation: Literal["read committed"] = Field(
        "read committed", description="A script says itself how it isolates."
    )

    @field_validator("witness")
    @classmethod
    def _of_its_scripts(cls, witness: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        scripts = [path_and_weight(one)[0] for one in info.data.get("file", ())]
        if scripts and (strangers := [path for path in witness if path not in scripts]):
            raise ValueError(f"names {strangers[0]!r}; scripts are {', '.join(scripts)}")
        return witness


WorkloadTable = TpccTable | PgbenchTable | MixFileTable | ScriptTable

TABLES: dict[str, type[WorkloadTable]] = {
    "tpcc": TpccTable,
    "tpcb": PgbenchTable,
    "select-only": PgbenchTable,
    "simple-update": PgbenchTable,
    "mix": MixFileTable,
    "script": ScriptTable,
}
"""The table of each kind."""

SHAPES_DATA = frozenset({
    "kind", "seed", "profile", "warehouses", "schema", "foreign_keys", "partitions", "order",
    "scale", "data", "setup",
})  # fmt: skip
"""Keys that a stage may not change, because all stages share one fixture.

Of its `databases` a stage may drive fewer, but never more.
"""


def kind_of(raw: Any) -> str:  # noqa: ANN401  whatever stands in the file
    """The kind that a `[workload]` names: what pydantic chooses its table by."""
    if isinstance(raw, dict):
        kind = raw.get("kind", "tpcc")
        return kind if isinstance(kind, str) else ""
    return getattr(raw, "kind", "tpcc")


def keys_of(table: type[BaseModel]) -> list[str]:
    """The keys of a table as TOML has them: its own, then those that every kind has."""
    every = AnyWorkload.model_fields
    names = sorted(table.model_fields, key=lambda name: name in every)
    return [table.model_fields[name].alias or name for name in names]
