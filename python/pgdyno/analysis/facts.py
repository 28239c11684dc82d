"""What a report says, as frozen records: the shape of `pgdyno report --format json`.

Base units throughout: ns, bytes, seconds, shares of one; scaled when printed. A value that was not
measured is null, never zero. A field that is renamed or changes its meaning raises `SCHEMA`.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Self

from pgdyno.analysis.answer_facts import Answer, TailFacts
from pgdyno.analysis.cycle_facts import CycleFacts
from pgdyno.analysis.diagnosis_facts import StageDiagnosis
from pgdyno.analysis.disk_facts import StorageInUse
from pgdyno.analysis.drill_facts import MeasuredLoss
from pgdyno.analysis.earlier_facts import EarlierReportFacts
from pgdyno.analysis.host_facts import FleetFacts
from pgdyno.analysis.others import OtherConditions
from pgdyno.analysis.process_line_facts import ProcessLine
from pgdyno.analysis.profile_facts import ProfileFacts
from pgdyno.analysis.replaced import ReplacedFacts
from pgdyno.analysis.replica_facts import ReplicaRow
from pgdyno.analysis.resource_facts import ProcessRow, ResourceRow
from pgdyno.analysis.server_facts import ServersFacts
from pgdyno.analysis.session_facts import StageSessions
from pgdyno.analysis.setting_facts import ServerSetting, SettingChange
from pgdyno.analysis.signal_facts import ResponseMap, Signal
from pgdyno.analysis.snapshot_facts import Plans, StatementRow, TableRow
from pgdyno.analysis.telemetry_facts import TelemetryFacts
from pgdyno.analysis.timeline_facts import Phases, Timeline
from pgdyno.analysis.view_facts import ServerViews
from pgdyno.analysis.wal_facts import StageWal
from pgdyno.imports.simultaneous import Together
from pgdyno.model.imported import Imported
from pgdyno.model.run import PgbenchSummary

SCHEMA = "pgdyno.report/3"
LABELS = {"NOPM": "TPC-C-like, not a TPC result", "tps": "Not a TPC result"}


@dataclass(frozen=True, slots=True)
class Spread:
    """One number of a stage: what each finished round gave, and their median."""

    median: float
    rounds: tuple[float, ...]  # in the order of `StageFacts.rounds`

    @classmethod
    def of(cls, rounds: tuple[float, ...]) -> Self | None:
        """The spread of these values; nothing where there is none."""
        return cls(float(median(rounds)), rounds) if rounds else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A stage against another, in throughput, from paired rounds."""

    base: str
    ratio: float | None
    low: float | None
    high: float | None
    confidence: float
    rounds: int  # pairs behind it
    verdict: str  # better | worse | equivalent | undecided | not judged
    reason: str  # of the verdict, one clause
    p_adjusted: float | None  # None: looks judge, by critical values
    rounds_needed: int | None  # undecided: estimated rounds in all until it is decided
    method: str
    warnings: tuple[str, ...]
    failures: str | None = None  # trials of either that failed, as evidence; None: none did
    look: int | None = None  # after how many rounds a look said this; None: there was none


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a check says of one window, or of all windows of a stage.

    A stage has the judgement of its most doubtful round, and how many rounds share that verdict.
    """

    verdict: str  # clear | finding | unknown; steadiness: steady | drifting | unknown
    fact: str
    advice: str | None
    rounds: int = 1
    of_rounds: int = 1


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Latency of one kind of transaction, rounds merged, from the due time to the answer.

    Of all requests that somebody waited for within the windows, those without an answer included.
    """

    kind: str
    n: int  # requests
    p50_ns: int
    p90_ns: int
    p95_ns: int
    p99_ns: int
    p999_ns: int
    max_ns: int
    exact_below_ns: int | None = None  # from here on they are lower bounds; None: all are exact


@dataclass(frozen=True, slots=True)
class StatementFacts:
    """Round trips of a statement, or of several in one, as the driver saw them; rounds merged."""

    kind: str  # of transaction
    name: str
    n: int
    p50_ns: int
    p95_ns: int
    p99_ns: int
    max_ns: int
    exact_below_ns: int | None = None  # as `Percentiles` has it


@dataclass(frozen=True, slots=True)
class ProtocolPrice:
    """Shares of a transaction's cost that the stage with the fewest round trips does without."""

    base: str  # that stage
    shares: dict[str, Spread]  # measure -> share of one; paired by round


@dataclass(frozen=True, slots=True)
class ProtocolCost:
    """What a transaction costs through the face of a stage: means over the mix."""

    stage: str
    face: str
    round_trips: float
    statements: float
    costs: dict[str, Spread]  # service_us, client_cpu_us, server_cpu_us
    price: ProtocolPrice | None  # None: the leanest itself, or all stages have one face


@dataclass(frozen=True, slots=True)
class Requirement:
    """Something that the TPC-C text asks of a run, and what each stage measured."""

    clause: str
    what: str
    unit: str  # NOPM | 1 | share | s
    low: float | None
    high: float | None
    measured: dict[str, float | None]  # by stage; None: not measured

    def meets(self, stage: str) -> bool | None:
        """Whether a stage meets it; None if it was not measured there."""
        if (value := self.measured.get(stage)) is None:
            return None
        high = self.high is None or value <= self.high
        return high and (self.low is None or value >= self.low)


@dataclass(frozen=True, slots=True)
class LossFacts:
    """One thing by which a stage gives up durability."""

    rung: str
    what: str
    loses: str  # a clause
    layer: str  # server, database, role, session, workload, tables, process, file system, device
    source: str  # where it was read


@dataclass(frozen=True, slots=True)
class StageFacts:
    """Everything said of one stage."""

    name: str
    why: str
    twin_of: str | None
    afresh: bool
    rung: str  # the lowest of all losses; "D?" where none was found but not all could be read
    rung_reason: str  # what puts it there, and what is not known
    rung_planned: str  # by what was known before
    losses: tuple[LossFacts, ...]  # lowest rung first; as read back, if any trial did
    not_known: tuple[str, ...]  # layers that could not be read, and why
    read_back: bool  # else the plan's word is all there is
    rounds: tuple[int, ...]  # finished ones
    rounds_planned: int
    throughput: Spread | None  # in the metric of `Facts.headline`; what stages are compared by
    nopm: Spread | None  # committed New-Orders a minute; None: the workload has none
    tpm_total: Spread | None  # all kinds a minute, rollbacks included
    benchmarksql_orders: Spread | None  # as BenchmarkSQL 5 would print it; None: other tables
    benchmarksql_total: Spread | None
    to_first: Comparison | None
    to_previous: Comparison | None
    latency: tuple[Percentiles, ...]
    statements: tuple[StatementFacts, ...]
    per_transaction: dict[str, Spread]  # names and units: `report.efficiency`
    checkpoints: tuple[int | None, ...]  # completed in the window of each round
    checkpoint_cycle: Judgement | None  # does the window hold whole checkpoint cycles?
    client_share: Spread | None  # of the CPU time that the host had in the window
    client_limit: Judgement | None  # was the load generator the limit?
    ceiling_share: Spread | None  # of what the driver reaches here; None: not calibrated
    steadiness: Judgement | None
    window_end: Judgement | None  # have all requests of the window an answer?
    changes: tuple[SettingChange, ...]
    build: str | None  # version, compiler and flags; None: the target's own installation
    folder: str | None  # of the cluster's data; None: pgdyno's own
    pooler: str | None  # between driver and server; None: none
    tails: tuple[TailFacts, ...] = ()  # against the first stage of its load; where known
    credit: tuple[str, ...] = ()  # whose the difference is where the client changed: first, before
    predicted: str | None = None  # what was believed beforehand, and what came; None: nothing was
    measured: tuple[MeasuredLoss, ...] = ()  # by disaster, of a drill that was named

    def percentiles(self, kind: str) -> Percentiles | None:
        """Latency of a kind, if it occurred."""
        return next((line for line in self.latency if line.kind == kind), None)


@dataclass(frozen=True, slots=True)
class TrialFacts:
    """One trial, finished or not."""

    number: int
    round: int
    stage: str
    state: str
    reason: str | None
    throughput: float | None  # in the metric of `Facts.headline`
    nopm: float | None
    tpm_total: float | None
    checkpoints: int | None  # completed in the window; None: not recorded
    checkpoint_cycle: Judgement | None
    client_limit: Judgement | None
    ceiling_share: float | None  # of what the driver reaches against the null server
    steadiness: Judgement | None
    window_end: Judgement | None
    started_ns: int | None
    ended_ns: int | None
    engine: str | None  # who drove
    pgbench: PgbenchSummary | None  # what it printed itself
    retries: int | None
    failed: int | None
    reconnects: int | None
    notes: tuple[str, ...]
    timeline: Timeline | None
    latency_shares: tuple[float, ...] = ()  # of the first kind, see `analysis.latency_shares`
    attempt: int = 1  # which measurement of its round


@dataclass(frozen=True, slots=True)
class AuditFacts:
    """A property of the inputs over all finished trials, beside the widest band that a trial had.

    Shares, means and statistics are averaged by observations; counts and their bands are added.
    """

    name: str
    source: str
    measured: float
    n: int
    low: float
    high: float
    unit: str
    ok: bool  # the merged value lies in the band
    added: bool  # the band is that of all trials together; else of one
    trials: int
    trials_outside: int  # of their own band


@dataclass(frozen=True, slots=True)
class ConditionFacts:
    """A consistency condition over all checks of the run, the one after loading included."""

    number: int
    title: str
    checks: int
    violations: tuple[str, ...]  # "trial 5: 2 rows, e.g. (1, 4, 3001)"


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that differs between trials besides their stage's own settings."""

    what: str
    values: tuple[str, ...]  # "4MB in trials 1, 6, 8"
    explanation: str | None


@dataclass(frozen=True, slots=True)
class MistakeFacts:
    """A class of mistake that reports make, and whether it is in this one."""

    ident: str  # E1 to E15
    rule: str  # what is checked
    verdict: str  # clear | noted (true of many honest runs) | finding | unknown
    fact: str | None  # what was found, or why that is not known
    simply: str = ""  # what a finding comes to, without a term of the field; see `Mistake`


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """What identical stages (`--aa`) show: the spread that an effect must stand out from."""

    sd: float | None  # of one paired log ratio
    sd_low: float | None
    sd_high: float | None
    sentence: str
    warnings: tuple[str, ...]
    needed: tuple[tuple[float, int | None], ...] = ()  # effects and rounds; None: more than 1,000


@dataclass(frozen=True, slots=True)
class StepFacts:
    """One step or ramp of a stage's window, its finished rounds together."""

    stage: str
    number: int  # from 1
    seconds: float
    factor: tuple[float, float]  # of the rate or of the active terminals: at begin and end
    ended_per_s: Spread  # transactions of all kinds
    failed: int
    skipped: int
    percentiles_ns: tuple[int, ...] | None  # main kind: p50, p95, p99, maximum
    exact_below_ns: int | None = None  # as `Percentiles` has it


@dataclass(frozen=True, slots=True)
class PartFacts:
    """One of the databases that a stage drove at once."""

    stage: str
    name: str
    throughput: Spread  # in the metric of `Facts.headline`
    percentiles_ns: tuple[int, ...] | None  # main kind: p50, p95, p99, maximum
    exact_below_ns: int | None = None  # as `Percentiles` has it


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in a trial during which connections were gone."""

    trial: int
    stage: str
    round: int
    start_s: float  # since the window began
    seconds: float | None  # None: until the end
    connections: int


@dataclass(frozen=True, slots=True)
class RecoveryFacts:
    """What a stage's server took to come back after it was killed under load."""

    stage: str
    ready_s: Spread  # from its start to its readiness
    redo_s: Spread  # of these: replaying WAL
    replayed_bytes: Spread  # of WAL
    guarded: bool  # what a power cut tears is repaired from a standby before it comes back
    # Whether no other stage has as much throughput and was back as soon, by medians, with more of
    # either; None: there is no other one.
    on_front: bool | None


@dataclass(frozen=True, slots=True)
class Deviation:
    """Where the workload differs from the TPC-C text."""

    what: str
    why: str
    clause: str
    stages: tuple[str, ...] = ()  # none: all


@dataclass(frozen=True, slots=True)
class Facts:
    """The whole report."""

    schema: str
    label: str
    ident: str
    pgdyno: str
    command: str
    plan: str
    question: str
    headline: str  # the metric that stages are compared by: NOPM, or tps
    answer: Answer
    started_ns: int
    trials_planned: int
    trials_finished: int
    quick: bool
    notes: tuple[str, ...]
    stages: tuple[StageFacts, ...]
    trials: tuple[TrialFacts, ...]
    replaced: tuple[ReplacedFacts, ...]  # none where no round was measured again
    steps: tuple[StepFacts, ...]  # none where windows were not divided
    parts: tuple[PartFacts, ...]  # none where one database was driven
    outages: tuple[Outage, ...]
    earlier: EarlierReportFacts | None  # None: the plan names no earlier report
    imported: tuple[Imported, ...]  # results of other tools: in no verdict, no interval
    imported_together: tuple[Together, ...]  # of these, clients of one run
    imported_conditions: OtherConditions | None  # what they do not share with the stages
    recovery: tuple[RecoveryFacts, ...]  # none where servers were not killed
    cycles: tuple[CycleFacts, ...]  # of each stage
    sessions: tuple[StageSessions, ...]  # of stages whose sessions were sampled
    resources: tuple[ResourceRow, ...]  # utilisation, saturation, errors
    processes: tuple[ProcessRow, ...]  # of the server, by role
    signals: tuple[Signal, ...]  # host and server over time
    response_maps: tuple[ResponseMap, ...]  # of stages whose driver kept times over time
    process_lines: tuple[ProcessLine, ...]  # CPUs of the server's processes over time
    wal: tuple[StageWal, ...]  # of stages whose windows' WAL was read
    statements: tuple[StatementRow, ...]  # none where the server did not count them
    tables: tuple[TableRow, ...]
    plans: Plans | None  # of the workload's statements; None: not looked at
    views: ServerViews  # what the server's own views told
    protocol: tuple[ProtocolCost, ...]
    compliance: tuple[Requirement, ...]  # none if the workload is not TPC-C
    margin: float  # ratios from 1 / (1 + margin) to 1 + margin are too close to matter
    confidence: float
    looks: tuple[int, ...]  # rounds judged as looks judge; none where all rounds are one sample
    warnings: tuple[str, ...]  # of the comparison as a whole: interference, gaps
    noise_floor: NoiseFloor | None
    placement: Judgement  # of sessions on CPUs, and whether throughput goes with it
    audit: tuple[AuditFacts, ...]
    conditions: tuple[ConditionFacts, ...]
    checked_rounds: int | None  # whose trials were checked; None: all
    same: dict[str, str]  # what all trials share
    differences: tuple[Difference, ...]
    mistakes: tuple[MistakeFacts, ...]
    phases: Phases
    deviations: tuple[Deviation, ...]
    reference: dict[str, str]  # figures of others, as the plan gives them
    host: dict[str, str]
    build: dict[str, str]  # the target's own installation; empty: no stage runs on it
    builds: dict[str, dict[str, str]]  # those that stages name, by what they are called
    server: dict[str, str]  # what one that is not ours says of itself; else empty
    configuration: tuple[ServerSetting, ...]  # that such a one had already; else empty
    versions: tuple[str, ...]  # of PostgreSQL, in the order of the stages
    fixture: dict[str, str]
    further_fixtures: tuple[dict[str, str], ...]  # of builds that store otherwise
    diagnosis: tuple[StageDiagnosis, ...]  # of each stage; none: nobody asked
    profiles: ProfileFacts | None  # None: none was taken
    fleet: FleetFacts | None  # None: the load came from one process
    servers: ServersFacts | None  # None: one server had all of the workload
    replica: tuple[ReplicaRow, ...]  # of stages whose reads one answered
    telemetry: TelemetryFacts | None  # None: not told
    storage: StorageInUse | None  # None: the data of all stages lie on one

    @property
    def first(self) -> StageFacts:
        """The stage that all others are compared with, those of other loads excepted."""
        return self.stages[0]

    @property
    def base(self) -> str:
        """What ratios are to, as a heading says it."""
        loads = sum(stage.to_first is None for stage in self.stages)
        return self.first.name if loads == 1 else "the first of its load"

    def base_of(self, stage: StageFacts) -> StageFacts:
        """The stage that this one is compared with; itself if it is the first of its load."""
        name = stage.to_first.base if stage.to_first else stage.name
        return next((one for one in self.stages if one.name == name), self.first)

    def diagnosed(self, stage: str) -> StageDiagnosis:
        """What limits a stage; one that was not asked after is a bug."""
        return next(one for one in self.diagnosis if one.stage == stage)

    @property
    def main_kind(self) -> str:
        """The kind of transaction whose latency stands first: New-Order, or the first there is."""
        kinds = [line.kind for stage in self.stages for line in stage.latency]
        return kinds[0] if kinds else "new_order"

    @property
    def not_finished(self) -> tuple[TrialFacts, ...]:
        """Trials whose numbers are not used."""
        return tuple(trial for trial in self.trials if trial.state != "finished")
