"""The plan file as a data type: its keys, types, ranges and defaults, and nothing of a server.

The descriptions of the fields are the reference: `docs/reference/plan.md` is made from them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from pgdyno.catalog.contract import bounds, default, limits
from pgdyno.model.cycle import Checkpoints
from pgdyno.model.looks import LOOKS, Stop
from pgdyno.model.plan import ROUNDS_MAX, WINDOW_MIN_S, StageFlag, Telemetry
from pgdyno.model.record_json import JsonObject
from pgdyno.model.settings import Rung
from pgdyno.model.wording import listed
from pgdyno.model.workload import Share
from pgdyno.plan.schema.fleet_table import FleetTable
from pgdyno.plan.schema.workload_table import (
    TABLES,
    Line,
    MixFileTable,
    PgbenchTable,
    ScriptTable,
    Table,
    TpccTable,
    kind_of,
)

NAME_LETTERS_MAX = 48
NAME = re.compile(rf"[a-z0-9][a-z0-9._-]{{0,{NAME_LETTERS_MAX - 1}}}")
"""What stages, plans and builds may be called."""
STAGES_MAX = 1000
"""Of a plan; each is resolved, compared with the first and drawn."""
SETTINGS_MAX = 1000
"""Of a stage; a server has not half as many."""
SERVERS_MAX = 100
"""Of a plan; each has sessions, samplers and a fixture of its own."""
REPLICAS_MAX = 1
"""Of a private cluster; reads are not shared out over several."""
PROFILE_S_MAX = 60
"""Of a profile; a minute at 99 Hz tells functions of a thousandth apart."""
_LOOKS = listed([f"{most} ({', '.join(map(str, looks))})" for most, looks in LOOKS.items()], "or")


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise ValueError(
            "is not a name; allowed: up to 48 lower case letters, digits, '-', '_' and '.',"
            " beginning with a letter or digit"
        )
    return text


def _absolute(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError("must be an absolute path")
    return text


def _setting_text(value: object) -> str | bool:
    if isinstance(value, bool):
        return value  # whether the setting takes one is seen later
    if isinstance(value, int | float) and math.isfinite(value):
        return str(value)
    if isinstance(value, str):
        return value
    raise ValueError("must be text, a number, true or false")


def _flat(value: object) -> object:
    # `pg_stat_statements.track = "all"` is a nested table to TOML, one name to PostgreSQL; so is
    # `net.ipv4.tcp_rmem` to the kernel.
    if not isinstance(value, dict):
        return value
    result: dict[str, Any] = {}
    for name, content in value.items():
        if isinstance(content, dict):
            deeper = _flat(content)
            assert isinstance(deeper, dict)
            result |= {f"{name}.{key}": one for key, one in deeper.items()}
        else:
            result[name] = content
    return result


def _plain(value: object) -> object:
    # What a run file keeps as JSON, which has neither dates nor infinities.
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("holds a date, a time or a number that is not finite") from None
    return value


Name = Annotated[str, AfterValidator(_name)]
Lines = Annotated[tuple[Line, ...], Field(strict=False)]
SettingText = Annotated[str | bool, BeforeValidator(_setting_text)]
Settings = Annotated[dict[str, SettingText], BeforeValidator(_flat)]
Folder = Annotated[Line, AfterValidator(_absolute)]
RungName = Annotated[Rung, Field(strict=False)]


def _tag(raw: Any) -> str | None:  # noqa: ANN401  whatever stands in the file
    table = TABLES.get(kind_of(raw))
    return table.__name__ if table else None


AnyWorkloadTable = Annotated[
    Annotated[TpccTable, Tag("TpccTable")]
    | Annotated[PgbenchTable, Tag("PgbenchTable")]
    | Annotated[MixFileTable, Tag("MixFileTable")]
    | Annotated[ScriptTable, Tag("ScriptTable")],
    Discriminator(_tag),
]
"""The table of the workload's kind; `complaints_of` takes its tag out of the places of errors."""


class TargetTable(Table):
    """The server that is measured."""

    kind: Literal["embedded", "installed", "running"] = Field(
        "embedded",
        description="`embedded`: the PostgreSQL that comes with pgdyno, in a private cluster. "
        "`installed`: one of this machine, in a private cluster. `running`: a server that is "
        "there already; only what a session may set can be set there.",
    )
    bindir: Line | None = Field(
        None, description="`installed`: folder of `postgres` and `initdb`, versions 12 to 18."
    )
    conninfo: Line | None = Field(
        None,
        description="`running`: connection string or URI without password; the password comes "
        "from `PGPASSWORD` or `~/.pgpass`.",
    )
    servers: Lines = Field(
        (),
        max_length=SERVERS_MAX,
        description="`running`: connection strings of several servers instead of `conninfo`; each "
        "holds and is asked for a part of the workload. All are of one major version.",
    )
    share: Share = Field(
        "alike",
        description="What each of `servers` has. `alike`: all of the data, with `connections`, "
        "`terminals` and rate of its own, as tenants have. `block`: an even part of TPC-C's "
        "warehouses, connections, terminals and rate, as shards have; what is remote is drawn "
        "among the warehouses of the same server.",
    )
    replica: Line | None = Field(
        None,
        description="`running`: connection string of a streaming standby of `conninfo`'s server. "
        "It answers the Order-Status and Stock-Level of stages with `replica_connections`: their "
        "reads may be stale, by a lag that is sampled.",
    )
    replicas: int = Field(
        0,
        ge=0,
        le=REPLICAS_MAX,
        description="Streaming standbys of a private cluster that pgdyno makes for every trial, on "
        "the same machine. One answers reads as `replica` does, and is that of a guard.",
    )
    transport: Literal["socket", "tcp"] = Field(
        "socket", description="How clients reach a private cluster: Unix socket, or loopback TCP."
    )
    initdb: Lines = Field(
        (), description='Further arguments of `initdb`, e.g. `["--wal-segsize=64"]`.'
    )


class ProtocolTable(Table):
    """How a stage is measured. Every trial restores the data and starts the server afresh."""

    rounds: int = Field(
        3,
        ge=1,
        le=ROUNDS_MAX,
        description="Every round visits every stage once, in balanced order.",
    )
    stop: Stop = Field(
        "rounds",
        description="`rounds`: all rounds are measured. `decided`: a stage is measured no further "
        "once a look finds it better, worse or equivalent, or a verdict out of reach; `rounds` are "
        f"then the most, and say after which is looked: {_LOOKS}. Intervals and verdicts hold over "
        "all looks together.",
    )
    warmup_s: Annotated[float, bounds("DriveSpec", "warmup_s")] = Field(
        15.0,  # more than the driver's: the server of a trial has just been started
        description="Load before the window, seconds.",
    )
    window_s: float = Field(
        default("DriveSpec", "window_s"),
        ge=WINDOW_MIN_S,
        le=limits("DriveSpec", "window_s")[1],
        description="The measured part, seconds.",
    )
    drain_s: Annotated[float, bounds("DriveSpec", "drain_s")] = Field(
        default("DriveSpec", "drain_s"),
        description="Time for what is under way at the end, seconds.",
    )
    prewarm: bool = Field(True, description="Read tables and indexes into memory before the load.")
    checkpoint_before: bool = Field(
        True,
        description="A CHECKPOINT ends before the load begins, so that every trial begins with "
        "nothing left to write. `false`: for roles of a running server that may make none.",
    )
    telemetry: Telemetry = Field(
        "default",
        description="What is sampled while the load runs: of the host, of every process of the "
        "server, of its sessions and its statistics. `default`: what costs less than 1% of "
        "throughput. `full`: all that can be read, for finding a cause rather than for comparing. "
        "`none`: nothing, so that the report knows no more than the driver does.",
    )
    margin: float = Field(
        0.02,
        gt=0,
        le=0.5,
        description="Stages whose ratio lies from 1 / (1 + margin) to 1 + margin are equivalent.",
    )
    confidence: float = Field(0.95, ge=0.5, le=0.999, description="Confidence of the intervals.")
    survive: bool = Field(
        False,
        description="A trial that lost connections and got them back is valid: for failover "
        "drills. Its gaps are shown, and how many requests failed: they are in no percentile.",
    )
    reconnect_s: float = Field(
        60.0,
        ge=0,
        le=86_400,
        description="How many seconds a running server that went away in the middle of a run is "
        "waited for; then the run goes on, or ends so that it can be resumed.",
    )
    crash_recovery: bool = Field(
        False,
        description="Kill the server when the load ends, start it again, and time its recovery; "
        "consistency is checked after it. Private clusters only.",
    )
    checked_rounds: int | None = Field(
        None,
        ge=1,
        le=ROUNDS_MAX,
        description="In how many rounds, counted from the first, consistency is checked after "
        "each trial; without it, in all.",
    )
    checkpoints: Checkpoints = Field(
        "ignore",
        description="`ignore`: windows begin and end by the clock. `cycles`: they begin and end "
        "when a checkpoint begins, so that they hold whole cycles; two cycles pass before the "
        "window, and both last `warmup_s` and `window_s` at least. `anchors`: the first trials of "
        "a stage go on for 1.3 cycles, the others are short, and both are joined; for cycles of "
        "minutes, and as `cycles` in stages where they last 100 s or less. Stages that change "
        "checkpoints, full page images or the background writer get no verdict without either.",
    )
    cycles: int = Field(
        2,
        ge=1,
        le=100,
        description='Whole checkpoint cycles in a window, at least, with `checkpoints = "cycles"`.',
    )
    anchors: int = Field(
        2,
        ge=1,
        le=ROUNDS_MAX,
        description='Rounds whose trials are anchors, with `checkpoints = "anchors"`: the first '
        "ones; fewer than two allow no verdict.",
    )
    profile_s: int = Field(
        0,
        ge=0,
        le=PROFILE_S_MAX,
        description="After each window, drive the load for so many seconds more, and look by "
        "`perf` in which functions server, kernel and driver spend their time; 0: no profile. "
        "Nothing measured lies in that time. 10 is enough for most.",
    )
    lowest_rung: RungName = Field(
        Rung.D0,
        description="The lowest rung of durability, D0 to D6, that stages may stand on; lower "
        "ones are refused. D0 loses nothing, D2 the last commits, D6 the cluster.",
    )


class EarlierReportTable(Table):
    """An earlier report, whose figures the stages give; only ratios are compared."""

    source: Line = Field(description="What was published, when, on which version.")
    machine: Line = Field(description="What it ran on.")
    runs: int = Field(1, ge=1, le=1000, description="How many runs are behind each figure.")


Figure = Annotated[float | None, Field(gt=0, le=1e12)]


class FiguresTable(Table):
    """What an earlier report measured in a stage; each figure in a metric of its own."""

    nopm: Figure = Field(None, description="Committed New-Orders a minute.")
    tpm_total: Figure = Field(None, description="Transactions of all kinds a minute.")
    tps: Figure = Field(None, description="Committed transactions a second.")

    @model_validator(mode="before")
    @classmethod
    def _typed(cls, raw: Any) -> Any:  # noqa: ANN401  whatever stands in the file
        for key in raw if isinstance(raw, dict) else ():
            if key.lower() in ("tpmc", "tpm"):
                raise ValueError(
                    f"holds {key}, which says two things; allowed: nopm for New-Orders a minute,"
                    " tpm_total for all transactions. tpmC is for audited TPC results alone"
                )
        return raw


class ExpectsTable(Table):
    """What a stage is believed to reach, written down before it is measured."""

    ratio: float = Field(gt=0, description="Throughput, by that of the first stage of the plan.")
    low: float = Field(gt=0, description="The least that is believed.")
    high: float = Field(gt=0, description="The most that is believed.")
    limit: Line = Field("", description="The limit that it is against, a class of `diagnose`.")

    @model_validator(mode="after")
    def _in_order(self) -> ExpectsTable:
        if not self.low <= self.ratio <= self.high:
            raise ValueError(
                f"is {self.low:g}, {self.ratio:g}, {self.high:g}; allowed: low <= ratio <= high"
            )
        return self


class PoolerTable(Table):
    """PgBouncer between the driver and the server, or none."""

    mode: Literal["transaction", "session", "none"] = Field(
        "transaction",
        description="When a session of the server is given back: after each transaction, or when "
        "its client leaves. `none`: no pooler, where the stage before has one.",
    )
    sessions: Annotated[int, bounds("DriveSpec", "connections")] | None = Field(
        None, description="With the server, for each database, at most; needed with a pooler."
    )

    @model_validator(mode="after")
    def _is_whole(self) -> PoolerTable:
        if (self.mode == "none") != (self.sessions is None):
            needs = "no sessions" if self.mode == "none" else "sessions"
            raise ValueError(f"has mode {self.mode}, which needs {needs}")
        return self


class StageTable(Table):
    """A bundle of settings. It adds to the stage before it, unless it begins afresh."""

    name: Name = Field(description="Unique; `--set stage.NAME.settings.x=y` finds it by it.")
    why: Line = Field(description="What the stage is to show, for the report.")
    afresh: bool = Field(
        False, description="Begin with the server's defaults, not with the stage before."
    )
    skip: bool = Field(
        False,
        description="Leave the stage out; those after it build on the one before it. "
        "`--set stage.NAME.skip=false` brings it in, e.g. where there are builds for it.",
    )
    build: Line | None = Field(
        None,
        description="A build of `pgdyno build`, by its name or the first characters of its ident, "
        "instead of the target's own installation, from this stage on.",
    )
    folder: Folder | None = Field(
        None,
        description="An existing folder, e.g. on another disk, that holds the cluster of the "
        "trials from this stage on, instead of pgdyno's own. Private clusters only.",
    )
    each_folder: bool = Field(
        False,
        description="Repeat the stage for each folder of `--folder a,b`, in that folder, also "
        "where `skip` leaves it out. Without `--folder` the stage is one like others.",
    )
    profile: Line | None = Field(
        None, description="A profile of the catalogue, sized to this machine, e.g. `tuned`."
    )
    client: dict[str, Any] = Field(
        {},
        description="Keys of `[workload]` with other values from this stage on, e.g. "
        '`{ face = "pipeline" }`; only keys that do not shape the data.',
    )
    settings: Annotated[Settings, Field(max_length=SETTINGS_MAX)] = Field(
        {},
        description="PostgreSQL's settings, over those of the profile: text with a unit "
        '(`"16GB"`), numbers in the setting\'s own unit, `true` or `false`.',
    )
    host: Annotated[Settings, Field(max_length=SETTINGS_MAX)] = Field(
        {},
        description="Settings of this machine from this stage on, by their names of `pgdyno knobs`,"
        ' e.g. `{ "vm.swappiness" = 1 }`. They are journalled, made before the server of a trial '
        "starts and put back after it has stopped, and only with `--host`. Private clusters only.",
    )
    guard: bool | None = Field(
        None,
        description="Whether a standby of its own guards the stage, from this stage on: what a "
        "power cut tears without full page writes is repaired from it. Private clusters only.",
    )
    unlogged: bool | None = Field(
        None,
        description="Whether the workload's tables are unlogged, from this stage on: they write "
        "no WAL, no standby has their rows, and a crash of the server empties them. They are a "
        "fixture of their own.",
    )
    lying_disk: bool | None = Field(
        None,
        description="Whether the disk lies, from this stage on: the server's flushes end when the "
        "disk has the data in its volatile cache, and nothing asks it to keep them. A library that "
        "is preloaded into the server does that. Private clusters only; needs a C compiler.",
    )
    synchronous: bool | None = Field(
        None,
        description="Whether commits wait until the standby of the stage's guard has flushed "
        "them, from this stage on.",
    )
    pooler: PoolerTable | None = Field(
        None,
        description="PgBouncer in front of the server, from this stage on, as "
        '`{ mode = "transaction", sessions = 20 }`: the load goes through it. Private clusters '
        "only; needs the program `pgbouncer`.",
    )
    earlier: FiguresTable = Field(
        FiguresTable(), description="What the report of `[earlier]` measured in this stage."
    )
    expects: ExpectsTable | None = Field(
        None, description="What it is believed to reach, to be held against what it does."
    )


def from_there_on(tables: Sequence[StageTable], key: StageFlag) -> tuple[bool, ...]:
    """A key of each stage; one that builds on the stage before takes what that says."""
    found: list[bool] = []
    for table in tables:
        before = bool(found) and found[-1] and not table.afresh
        own: bool | None = getattr(table, key)
        found.append(before if own is None else own)
    return tuple(found)


class PlanDocument(Table):
    """A plan file."""

    name: Name = Field(description="Names the run file.")
    question: Line = Field(description="The question that the plan answers.")
    notes: Lines = Field((), description="What a reader of the report must know of the plan.")
    target: TargetTable = Field(TargetTable(), description="The server that is measured.")
    workload: AnyWorkloadTable = Field(TpccTable(), description="What is driven.")
    protocol: ProtocolTable = Field(ProtocolTable(), description="How a stage is measured.")
    fleet: FleetTable | None = Field(
        None, description="Hosts that the load comes from; without it, one process of this host."
    )
    quick: dict[str, Any] = Field(
        {},
        description="What `--quick` changes: sizes of `protocol` and `workload` only. Windows go "
        "by the clock then, unless it says `checkpoints`, `cycles` or `anchors` itself. Of a plan "
        "that stops when it is decided, the rounds are judged as its looks would judge them.",
    )
    stage: Annotated[
        tuple[StageTable, ...], Field(strict=False, min_length=1, max_length=STAGES_MAX)
    ] = Field(description="The stages, in the order in which they build on each other.")
    earlier: EarlierReportTable | None = Field(
        None, description="An earlier report whose figures stand beside, see `earlier` of stages."
    )
    reference: Annotated[JsonObject, BeforeValidator(_plain)] = Field(
        {}, description="Figures of others that the report shows beside; any keys."
    )


QUICK_KEYS = {
    "protocol": (
        "rounds", "stop", "warmup_s", "window_s", "drain_s", "prewarm", "checkpoint_before",
        "checked_rounds", "checkpoints", "cycles", "anchors", "profile_s",
    ),
    "workload": (
        "warehouses", "scale", "connections", "terminals", "threads", "requests_max", "steps",
    ),
}  # fmt: skip
"""What `[quick]` may change: sizes, never what is compared or how it is judged."""
