"""What is driven: the fields that every workload has, and the parameters of each kind.

Names and meaning as in `crates/workload`; `workload.spec` makes the core's JSON.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Literal, Self

WorkloadKind = Literal["tpcc", "tpcb", "select-only", "simple-update", "mix", "script"]
Face = Literal["statement", "pipeline", "procedure"]
Isolation = Literal["read committed", "repeatable read", "serializable"]
Engine = Literal["pgdyno", "pgbench"]
DataKind = Literal["none", "tpcb", "tpcc"]
Spacing = Literal["even", "poisson"]
Rules = Literal["text", "benchmarksql-5"]
Order = Literal["warehouse", "arrival"]
Delivery = Literal["deferred", "inline"]
Home = Literal["fixed", "random"]
Share = Literal["alike", "block"]
"""Of several servers: each has all of the workload's data for itself, or a block of them."""
Schema = Literal["spec", "bmsql"]
"""Names and types of TPC-C's tables: as its text suggests, or as BenchmarkSQL 5 has them."""

CONNECTIONS = 8
"""Of a workload that says nothing of them."""

READS = ("order_status", "stock_level")
"""Kinds of TPC-C that change nothing: a replica may answer them."""

TEXT_MIX = {
    "new_order": 45.0, "payment": 43.0, "order_status": 4.0, "delivery": 4.0, "stock_level": 4.0,
}  # fmt: skip
"""Weights of TPC-C's transactions: clause 5.2.3."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When requests are due: after the answer (closed), or by a schedule of their own (open)."""

    kind: Literal["closed", "open"] = "closed"
    per_s: float | None = None  # open: requests a second, all terminals together
    spacing: Spacing = "even"


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the window with a factor of its own, or one that grows or falls evenly.

    It is a factor of the rate if arrivals are open, else of the terminals that are active.
    """

    seconds: float
    start: float  # factor at its begin
    end: float  # factor at its end


@dataclass(frozen=True, slots=True)
class Partitions:
    """How the large tables are partitioned by warehouse."""

    by: Literal["hash", "range"]
    count: int


@dataclass(frozen=True, slots=True)
class Blocks:
    """Into how many blocks of the same size the warehouses are divided, one for each server."""

    count: int
    held: int | None = None  # which of them a database holds, from 0; None: all, as they are driven


@dataclass(frozen=True, slots=True)
class Tpcc:
    """Parameters of TPC-C."""

    warehouses: int
    schema: Schema = "spec"
    rules: Rules = "text"
    foreign_keys: bool = False
    partitions: Partitions | None = None
    order: Order = "warehouse"
    mix: dict[str, float] = field(default_factory=lambda: dict(TEXT_MIX))  # kind -> weight
    delivery: Delivery = "deferred"
    home: Home = "fixed"
    keying_multiplier: float = 0.0
    think_multiplier: float = 0.0
    blocks: Blocks | None = None  # None: one server has all warehouses


@dataclass(frozen=True, slots=True)
class Pgbench:
    """Parameters of pgbench's built-in workloads: tpcb, select-only, simple-update."""

    scale: int  # branches; 100,000 accounts each
    foreign_keys: bool = False


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that a plan names, with its content, so that the run file alone can repeat it."""

    path: str  # as given
    text: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Data:
    """What a mix or a script finds in the database."""

    kind: DataKind = "none"
    scale: int = 1  # branches or warehouses
    setup: SourceFile | None = None  # SQL that is run once, after loading


@dataclass(frozen=True, slots=True)
class Mix:
    """A mix of SQL transactions, written in TOML."""

    file: SourceFile
    data: Data


@dataclass(frozen=True, slots=True)
class Invariant:
    """What must hold after the load and after every trial."""

    title: str
    sql: str  # returns the rows that violate it


@dataclass(frozen=True, slots=True)
class Script:
    """Script files as pgbench has them, chosen by weight."""

    files: tuple[SourceFile, ...]
    data: Data
    variables: dict[str, int | float | str | bool] = field(default_factory=dict)  # set beforehand
    witnesses: dict[str, str] = field(default_factory=dict)
    """By path of a file: returns the `:request_id` of each of its requests that is committed."""
    invariants: tuple[Invariant, ...] = ()


def database_names(first: str, count: int) -> list[str]:
    """The databases that are driven at once: `bench`, `bench_2`, `bench_3`."""
    return [first, *(f"{first}_{number}" for number in range(2, count + 1))]


@dataclass(frozen=True, slots=True)
class Workload:
    """What is driven, with nothing left open but the number of the driver's threads."""

    kind: WorkloadKind
    seed: int
    _: KW_ONLY
    engine: Engine = "pgdyno"  # who drives: ours, or the real pgbench
    face: Face = "statement"
    isolation: Isolation = "read committed"
    connections: int = CONNECTIONS
    terminals: int = CONNECTIONS
    threads: int | None = None  # None: one for four connections, at most the cores
    arrivals: Arrivals = Arrivals()
    steps: tuple[Step, ...] = ()
    databases: int = 1  # loaded alike and driven at once, each by its own terminals
    requests_max: int | None = None  # of each terminal, which then asks no more
    replica_connections: int = 0  # with a replica that answers `READS`; 0: none does
    tpcc: Tpcc | None = None
    pgbench: Pgbench | None = None
    mix: Mix | None = None
    script: Script | None = None

    @property
    def data(self) -> Data:
        """Of which kind the loaded tables are, and how large."""
        if self.tpcc is not None:
            return Data("tpcc", self.tpcc.warehouses)
        if self.pgbench is not None:
            return Data("tpcb", self.pgbench.scale)
        own = self.mix or self.script
        assert own is not None, f"a workload {self.kind} without its parameters"
        return own.data

    @property
    def to_load(self) -> Workload | None:
        """The workload whose rows this one finds in the database; None: none of ours."""
        if self.mix is None and self.script is None:
            return self
        if self.data.kind == "tpcc":
            return Workload("tpcc", self.seed, tpcc=Tpcc(self.data.scale))
        if self.data.kind == "tpcb":
            return Workload("tpcb", self.seed, pgbench=Pgbench(self.data.scale))
        return None

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """The files that a plan named; their texts are stored in the run file."""
        if self.mix is not None:
            named: tuple[SourceFile, ...] = (self.mix.file,)
        else:
            named = self.script.files if self.script is not None else ()
        setup = self.data.setup
        return (*named, setup) if setup is not None else named

    @property
    def sessions(self) -> int:
        """Connections of all databases together."""
        return self.connections * self.databases

    @property
    def asked_per_s(self) -> float | None:
        """Requests that are due a second in all parts together, at most; None: none are due."""
        if self.arrivals.per_s is None:
            return None
        most = max((max(one.start, one.end) for one in self.steps), default=1.0)
        return self.arrivals.per_s * self.databases * most

    @property
    def blocks(self) -> int:
        """How many servers have a block of the data each; 1: they are not divided."""
        divided = self.tpcc.blocks if self.tpcc is not None else None
        return divided.count if divided is not None else 1

    @property
    def parts(self) -> int:
        """What is driven at once, each by terminals of its own: databases, or blocks."""
        return self.databases * self.blocks

    def of_part(self, whole: int) -> int:
        """What one part has of so many connections or terminals; see `over`."""
        return whole // self.blocks

    def over(self, servers: int, share: Share) -> Self:
        """The same over several servers.

        Args:
            servers: How many.
            share: `alike`: each has the data, connections and terminals of this workload for
                itself. `block`: each has a part of them, which they must divide evenly.
        """
        if servers == 1:
            return self
        if share == "alike":
            return replace(self, databases=servers)
        assert self.tpcc is not None, "only warehouses are divided into blocks"
        return replace(self, tpcc=replace(self.tpcc, blocks=Blocks(servers)))

    def held_by(self, server: int) -> Self:
        """What is loaded on one of its servers, from 0."""
        if self.tpcc is None or self.tpcc.blocks is None:
            return replace(self, databases=1)
        blocks = replace(self.tpcc.blocks, held=server)
        return replace(self, tpcc=replace(self.tpcc, blocks=blocks))

    @property
    def load(self) -> str:
        """What is asked of the server, whoever asks: other loads' throughputs do not compare."""
        mix = tuple(sorted(self.tpcc.mix.items())) if self.tpcc is not None else ()
        return repr((self.kind, mix, self.mix, self.script))

    @property
    def headline(self) -> str:
        """The metric by which stages are compared: `NOPM`, or `tps`."""
        return "NOPM" if self.kind == "tpcc" else "tps"
