"""Miniature run files: three stages in a few rounds, made up from a seed, for tests of the report.

The figures are invented; nothing measured. Rounds interleave the stages as a real plan does, the
windows hold checkpoints, one trial is invalid and one line of the input audit is out of its band.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pgdyno.model.client import Client
from pgdyno.model.description import Description, Deviation
from pgdyno.model.durability import Durability, Loss
from pgdyno.model.event_detail import EventDetail
from pgdyno.model.fixture_shape import FixtureShape
from pgdyno.model.loading import LoadReport
from pgdyno.model.manifest import FileSystem, HostManifest, Installation
from pgdyno.model.plan import Estimate, Plan, Protocol, Stage, Target, Trial, Workload
from pgdyno.model.run import (
    AuditLine,
    Condition,
    Counts,
    Effective,
    Event,
    Fixture,
    KindResult,
    RunInfo,
    Series,
    StatementResult,
    TrialRecord,
    TrialResult,
    TrialState,
)
from pgdyno.model.settings import Origin, OriginKind, Rung, Setting
from pgdyno.model.workload import Tpcc
from pgdyno.store import RunFile
from tests.data.hdr import encode
from tests.data.met import sessions
from tests.data.times import times_of

SEED = 20261121
NOTHING_LOST = "no setting gives up durability"
START_NS = 1_795_300_000_000_000_000
WINDOW_S = 30
WARMUP_S = 10
SECOND_NS = 1_000_000_000
MIX = {"new_order": 45.0, "payment": 43.0, "order_status": 4.0, "delivery": 4.0, "stock_level": 4.0}
SLOWNESS = {"new_order": 1.0, "payment": 0.5, "order_status": 0.35, "delivery": 2.6}
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999, "max": 1.0}
SHARED_BUFFERS = Setting(
    "shared_buffers", "6GB", Origin(OriginKind.PROFILE, "25% of 23.5 GiB of memory")
)
MAX_WAL = Setting("max_wal_size", "16GB", Origin(OriginKind.PLAN, "plans/demo.toml: stage tuned"))
CACHE = Setting(
    "effective_cache_size", "16GB", Origin(OriginKind.PLAN, "plans/demo.toml: stage tuned")
)
ASYNC = Setting(
    "synchronous_commit", "off", Origin(OriginKind.PLAN, "plans/demo.toml: stage async-commit")
)
COUNTED = {  # by the host, in every second
    "psi.cpu.some_s": 0.31, "device.vda.reads": 120.0, "device.vda.writes": 900.0,
    "device.vda.read_s": 0.02, "device.vda.write_s": 1.4, "device.vda.busy_s": 0.62,
    "device.vda.weighted_s": 1.45, "device.vda.flushes": 410.0, "device.vda.flush_s": 0.31,
    "device.vda.read_bytes": 983_040.0, "device.vda.write_bytes": 12_582_912.0,
}  # fmt: skip
DEFAULTS = {"shared_buffers": "128MB", "effective_cache_size": "4GB", "synchronous_commit": "on"}
WORKLOAD = Workload("tpcc", 42, tpcc=Tpcc(10, mix=MIX))
CONDITIONS = tuple(f"condition {number} of clause 3.3.2" for number in range(1, 13))


@dataclass(frozen=True, slots=True)
class Character:
    """How a made-up stage behaves."""

    stage: Stage
    nopm: float
    noise: float  # standard deviation of the logarithm between rounds
    wal_bytes_per_tx: float
    checkpoint_at_s: tuple[float, ...]  # since the start of the window
    durability: Durability | None = None  # as read back; None: as planned


CHARACTERS = (
    Character(
        Stage("initdb", "PostgreSQL as it comes.", False, (), Rung.D0, NOTHING_LOST, WORKLOAD),
        27_000, 0.012, 7_400, (4.0, 19.0),
    ),
    Character(
        Stage(
            "tuned", "Memory and WAL sized to this machine.", False,
            (CACHE, SHARED_BUFFERS), Rung.D0, NOTHING_LOST, WORKLOAD,
        ),
        33_500, 0.015, 3_900, (12.0,),
    ),
    Character(
        Stage(
            "async-commit", "Commits do not wait for the disk.", False,
            (CACHE, SHARED_BUFFERS, ASYNC), Rung.D2, "synchronous_commit = off",
            WORKLOAD,
        ),
        38_200, 0.014, 3_800, (11.0,),
    ),
)  # fmt: skip


def write_miniature(
    path: Path,
    *,
    rounds: int = 3,
    invalid: tuple[int, ...] = (5,),
    failed: tuple[int, ...] = (),
    planned: tuple[int, ...] = (),
    characters: tuple[Character, ...] = CHARACTERS,
    aa: bool = False,
    days: int = 0,
    one_disk: bool = False,
) -> Path:
    """Write a run file.

    Args:
        path: A file that does not exist yet.
        rounds: Trials of each stage.
        invalid: Numbers of trials, from 1, whose consistency check fails after the window.
        failed: Numbers of trials without numbers.
        planned: Numbers of trials that were not reached.
        characters: The stages and how they behave.
        aa: Whether the plan says that it measures stages twice.
        days: After the run that all tests know; a run of its own.
        one_disk: Whether pgdyno's folder and those of stages are known to lie on one file system.
    """
    rng = np.random.default_rng(SEED + days)
    plan = a_plan(characters, rounds, aa=aa)
    by_name = {character.stage.name: character for character in characters}
    records = [
        TrialRecord(t.number, t.round, t.stage, t.ident, TrialState.PLANNED) for t in plan.trials
    ]
    begin_ns = START_NS + days * 86_400 * SECOND_NS
    info = _info(plan)
    if days:
        info = replace(info, ident=f"{info.ident}-{days}", started_ns=begin_ns)
    if one_disk:
        there = FileSystem("ext4", "/dev/vda1", disks=("vda",))
        folders = {one.folder: there for one in plan.stages if one.folder}
        info = replace(info, host=replace(info.host, file_system=there, folders=folders))
    with RunFile.create(path, info, records) as run:
        run.put_fixture(_fixture())
        for trial in plan.trials:
            if trial.number in planned:
                continue
            started = begin_ns + trial.number * 75 * SECOND_NS
            if trial.number in failed:
                reason = "server went away: 57P02 after 12 s"
                run.put_trial(_record(trial, TrialState.FAILED, reason, started, None))
                continue
            broken = trial.number in invalid
            result, series = _measure(rng, by_name[trial.stage], started, broken)
            why = (
                "consistency condition 3 of clause 3.3.2 is violated by 2 rows" if broken else None
            )
            state = TrialState.INVALID if broken else TrialState.FINISHED
            begin_s = result.window_ns[0] // SECOND_NS - 1
            met = sessions(begin_s, WINDOW_S + 2, rng=np.random.default_rng(trial.number))
            run.put_trial(_record(trial, state, why, started, result), series, [met])
    return path


def a_result(character: Character = CHARACTERS[0]) -> TrialResult:
    """The result of one trial of a stage."""
    return _measure(np.random.default_rng(SEED), character, START_NS, False)[0]


def _record(
    trial: Trial, state: TrialState, reason: str | None, started: int, result: TrialResult | None
) -> TrialRecord:
    ended = started + 70 * SECOND_NS
    return TrialRecord(
        trial.number, trial.round, trial.stage, trial.ident, state, reason, started, ended, result
    )


def a_plan(
    characters: tuple[Character, ...], rounds: int, *, balanced: bool = True, aa: bool = False
) -> Plan:
    """A resolved plan; balanced: every round begins with another stage."""
    names = [character.stage.name for character in characters]
    order = [
        (round_ + 1, names[(round_ * balanced + place) % len(names)])
        for round_ in range(rounds)
        for place in range(len(names))
    ]
    trials = tuple(
        Trial(number, round_, name, f"{number:016x}")
        for number, (round_, name) in enumerate(order, start=1)
    )
    return Plan(
        name="demo",
        question="How much faster is PostgreSQL here when it is tuned, and at what risk?",
        source="plans/demo.toml",
        text="",
        target=Target("embedded"),
        workload=WORKLOAD,
        protocol=Protocol(rounds, WARMUP_S, WINDOW_S, 2.0, True, 0.02, 0.95, Rung.D2),
        stages=tuple(character.stage for character in characters),
        trials=trials,
        estimate=Estimate(360.0, 200.0, 4 << 30, 7 << 30),
        aa=aa,
        notes=("the window is shorter than checkpoint_timeout",),
    )


def _info(plan: Plan) -> RunInfo:
    return RunInfo(
        ident="20261121-224500-demo",
        started_ns=START_NS,
        pgdyno="0.1.0",
        command="pgdyno run plans/demo.toml",
        plan=plan,
        host=HostManifest(
            cpu_model="AMD EPYC (2 CPUs)",
            cpus=2,
            memory_bytes=25_233_000_000,
            kernel="Linux 6.18.44",
            file_system=FileSystem("ext4"),
            clock_source="kvm-clock",
        ),
        build=Installation("PostgreSQL 18.6", origin="embedded", configure="'--with-lz4'"),
        workload=Description(
            name="tpcc",
            version=2,
            kinds=tuple(MIX),
            deviations=(
                Deviation(
                    "keying and think times are multiplied by 0",
                    "a small database can load a large server",
                    "5.2.5",
                ),
                Deviation("no ACID tests, no price, no audit", "it is not a TPC result", "3, 7, 9"),
            ),
        ),
    )


def _fixture() -> Fixture:
    shape = FixtureShape("tpcc", 42, warehouses=10, postgres_major=18, block_size=8192)
    good = tuple(Condition(n, title, 0, None, 0.05) for n, title in enumerate(CONDITIONS, 1))
    report = LoadReport(1, {}, 9.4, (), 5_000_000, 800_000_000)
    return Fixture("f1x7ure0", shape, 1_130_000_000, report, good, "copy", False)


def _measure(
    rng: np.random.Generator, character: Character, started_ns: int, broken: bool
) -> tuple[TrialResult, list[Series]]:
    level = character.nopm * float(np.exp(rng.normal(0.0, character.noise)))
    begin_ns = started_ns + 25 * SECOND_NS
    forced = Event("checkpoint", begin_ns - 13 * SECOND_NS, begin_ns - 12 * SECOND_NS)
    events = (
        forced,
        *(
            Event(
                "checkpoint",
                begin_ns + int(at * SECOND_NS),
                begin_ns + int((at + 5.5) * SECOND_NS),
                EventDetail(cause="wal", buffers=41_000),
            )
            for at in character.checkpoint_at_s
        ),
    )
    series = _rates(rng, level, begin_ns, events)
    seconds = slice(WARMUP_S, WARMUP_S + WINDOW_S)
    counts = {
        item.name.removeprefix("driver.committed."): int(item.values[seconds].sum())
        for item in series
        if item.name.startswith("driver.committed.")
    }
    rolled_back = next(item for item in series if item.name == "driver.rolled_back")
    rollbacks = int(rolled_back.values[seconds].sum())
    transactions = sum(counts.values()) + rollbacks
    result = TrialResult(
        window_ns=(begin_ns, begin_ns + WINDOW_S * SECOND_NS),
        window_s=float(WINDOW_S),
        nopm=counts["new_order"] * 60 / WINDOW_S,
        tpm_total=transactions * 60 / WINDOW_S,
        kinds=tuple(
            _kind(rng, kind, count, rollbacks if kind == "new_order" else 0, level)
            for kind, count in counts.items()
        ),
        client=Client(5.1, 3.3, float(WINDOW_S), 2, 0.14, 120_000, 900, 0.8, 2, 31_000_000),
        deltas=_deltas(character, transactions),
        settings=_effective(character.stage),
        audit=_audit(rng, counts["new_order"]),
        conditions=_conditions(broken),
        events=events,
        errors=(),
        reconnects=0,
        statements_per_transaction=26.4,
        round_trips_per_transaction=26.4,
        phases_s={
            "restore": 4.2, "start": 1.1, "prewarm": 2.0, "checkpoint": 1.4,
            "drive": WARMUP_S + WINDOW_S + 0.3, "check": 3.9, "window": WINDOW_S,
        },
        durability=character.durability or _durability(character.stage),
    )  # fmt: skip
    return result, [*series, *times_of(series, _p50_ns(level))]


def _durability(stage: Stage) -> Durability:
    if stage.rung is Rung.D0:
        return Durability()
    loses = "a crash may lose the last commits, never consistency"
    return Durability((Loss(stage.rung, stage.rung_reason, loses, "server", "pg_settings"),))


def _rates(
    rng: np.random.Generator, level: float, begin_ns: int, events: tuple[Event, ...]
) -> list[Series]:
    """Transactions of each second from warm-up to drain: noise, a ramp, a dip in checkpoints."""
    seconds = np.arange(-WARMUP_S, WINDOW_S + 1)
    unix_ns = (begin_ns + seconds * SECOND_NS).astype(np.int64)
    shape = np.minimum(1.0, 0.55 + 0.06 * (seconds + WARMUP_S))
    for event in events:
        assert event.end_ns is not None
        shape = np.where((unix_ns > event.start_ns) & (unix_ns < event.end_ns), 0.8, shape)
    shape[-1] = 0.05  # the second after the window: only what was under way
    per_second = level / 60 / MIX["new_order"]
    rates = {f"driver.committed.{kind}": per_second * weight for kind, weight in MIX.items()}
    rates["driver.rolled_back"] = level / 60 / 100
    counted = np.arange(unix_ns.size)
    return [
        *(
            Series(name, "1/s", "rate", unix_ns, rng.poisson(rate * shape).astype(np.float64))
            for name, rate in rates.items()
        ),
        *(
            Series(name, "1", "counter", unix_ns, counted.astype(np.float64) * by)
            for name, by in COUNTED.items()
        ),
    ]


def _p50_ns(level: float) -> float:
    return 6.1e6 * (27_000 / level)


def _kind(
    rng: np.random.Generator, kind: str, count: int, rolled_back: int, level: float
) -> KindResult:
    p50_ns = _p50_ns(level) * SLOWNESS.get(kind, 0.9)
    samples = np.exp(rng.normal(np.log(p50_ns), 0.45, size=min(count, 4_000)))
    values = samples.astype(np.int64)
    numbers = {name: int(np.quantile(values, share)) for name, share in PERCENTILES.items()}
    numbers["mean"] = int(values.mean())
    window = Counts(due=count + rolled_back, succeeded=count, rolled_back=rolled_back)
    histogram = encode(values)
    statements = (StatementResult(f"{kind}_first", count, histogram, dict(numbers)),)
    return KindResult(
        kind, window, window, histogram, histogram, numbers, dict(numbers), statements=statements
    )


def _deltas(character: Character, transactions: int) -> dict[str, float]:
    return {
        "wal.bytes": character.wal_bytes_per_tx * transactions,
        "wal.fpi": character.wal_bytes_per_tx / 9_000 * transactions,
        "server.cpu_s": 1.05e-3 * transactions,
        "disk.read_bytes": 310.0 * transactions,
        "disk.reads": 0.02 * transactions,
        "disk.write_bytes": 2.3 * character.wal_bytes_per_tx * transactions,
        "disk.writes": 0.9 * transactions,
        "cpu.user_s": 0.62 * 2 * WINDOW_S,
        "cpu.system_s": 0.30 * 2 * WINDOW_S,
        "cpu.idle_s": 0.08 * 2 * WINDOW_S,
        **{name: by * WINDOW_S for name, by in COUNTED.items()},
    }


def _effective(stage: Stage) -> tuple[Effective, ...]:
    chosen = {setting.name: setting for setting in stage.settings}
    lines = [
        Effective(
            name, chosen[name].value, str(chosen[name].origin.kind), chosen[name].origin.detail
        )
        if name in chosen
        else Effective(name, value, "initdb", "")
        for name, value in DEFAULTS.items()
    ]
    wal_buffers = "16MB" if "shared_buffers" in chosen else "4MB"
    lines.append(Effective("wal_buffers", wal_buffers, "initdb", ""))
    return tuple(sorted(lines, key=lambda line: line.name))


def _audit(rng: np.random.Generator, new_orders: int) -> tuple[AuditLine, ...]:
    def near(value: float, spread: float) -> float:
        return float(value + rng.normal(0.0, spread))

    shares = (
        (
            "remote order lines",
            "clause 9.2.2.5.3",
            near(0.01, 2e-4),
            new_orders * 10,
            0.0095,
            0.0105,
        ),
        (
            "rolled back New-Orders",
            "clause 9.2.2.5.1",
            near(0.0123, 2e-4),
            new_orders,
            0.009,
            0.011,
        ),
    )
    return (
        *(AuditLine(*share, "1") for share in shares),
        AuditLine("mean of lines per order", "clause 9.2.2.5.2", near(10.0, 0.02), new_orders,
                  9.5, 10.5, "lines"),
        AuditLine("skipped districts", "clause 2.7.4.2", 1.0, 900, 0.0, 90.0, "districts"),
    )  # fmt: skip


def _conditions(broken: bool) -> tuple[Condition, ...]:
    return tuple(
        Condition(number, title, 2, "(1, 4, 3001)", 0.3)
        if broken and number == 3
        else Condition(number, title, 0, None, 0.3)
        for number, title in enumerate(CONDITIONS, 1)
    )
