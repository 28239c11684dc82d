"""Carries out a plan: the only place that knows the order of the steps, and reads like the picture.

    fixture -> for each trial: restore -> apply -> prewarm -> drive || sample -> check -> store

Each step takes the record of the step before and returns its own; steps do not import each other.
A trial that fails is recorded and the plan goes on; Ctrl-C keeps what is finished.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import psycopg

from pgdyno.drive.driver import Driven, drive, workload_spec
from pgdyno.drive.pace import Pace, pace_of
from pgdyno.drive.pgbench import drive_pgbench
from pgdyno.drive.spec import load_spec
from pgdyno.load.consistency import check, require
from pgdyno.load.loader import How, describe, load
from pgdyno.load.setup import run_setup
from pgdyno.model.connection import Connection
from pgdyno.model.errors import (
    DriveError,
    Interrupted,
    LostError,
    PlanError,
    StoreError,
)
from pgdyno.model.foreign import told
from pgdyno.model.plan import Plan, Stage, Trial, Workload
from pgdyno.model.plan import Protocol as ProtocolPlan
from pgdyno.model.run import (
    Condition,
    Fixture,
    Series,
    TrialRecord,
    TrialResult,
    TrialState,
)
from pgdyno.model.workload import database_names
from pgdyno.plan.fixture import fixture_ident, fixture_shape
from pgdyno.sample.checkpoints import Begins
from pgdyno.sample.diskstats import disk_sampler
from pgdyno.sample.interrupts import ipi_sampler
from pgdyno.sample.pgstat import server_stats_sampler
from pgdyno.sample.procstat import host_sampler, self_sampler, server_sampler
from pgdyno.sample.recorder import Recorder, delta
from pgdyno.sample.serverlog import Told, read_log
from pgdyno.shell import OsUser
from pgdyno.stage.durability import read_durability
from pgdyno.stage.place import place_of
from pgdyno.stage.prewarm import prewarm
from pgdyno.stage.rig import pgbench_program
from pgdyno.stage.target import Ready, Target, ending
from pgdyno.stats.client_limit import host_idle_share
from pgdyno.store.runfile import RunFile
from pgdyno.validity import judge

_TOLD = ("deviations", "round_trips", "mix", "conditions")  # of a description, to be told


class Audience(Protocol):
    """Who is told how the plan goes: the live view, or a log."""

    def phase(self, trial: Trial | None, name: str) -> None:
        """A phase begins; `trial` is None while the fixture is made."""

    def loading(self, state: dict[str, Any]) -> None:
        """The loader's progress."""

    def driving(self, state: dict[str, Any]) -> None:
        """The driver's progress, twice a second."""

    def trial_done(self, record: TrialRecord) -> None:
        """A trial has ended, well or badly."""


@dataclass(slots=True)
class _Clocked:
    """Seconds that each phase of a trial took."""

    audience: Audience
    trial: Trial | None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self.audience.phase(self.trial, name)
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began


def conduct(
    plan: Plan,
    target: Target,
    run: RunFile,
    audience: Audience,
    todo: Sequence[Trial] | None = None,
) -> None:
    """Carry out the trials of a plan, or those of `todo`, and store what was measured.

    Args:
        plan: The resolved plan.
        target: The server under test.
        run: The run file; it knows the plan and its trials already.
        audience: Told how it goes.
        todo: Trials to be carried out; None for all.

    Raises:
        LostError: The target is not this run's any more; trials that ended are stored.
        PgdynoError: The fixture cannot be made. A trial's failure is stored, not raised.
        KeyboardInterrupt: Ctrl-C; finished trials are in the run file.
    """
    described = describe_stages(plan)
    fixtures = make_fixtures(plan, target, audience)
    for fixture in fixtures.values():
        run.put_fixture(fixture)
    for trial in plan.trials if todo is None else todo:
        planned = run.trial(trial.number)
        record = replace(planned, state=TrialState.RUNNING, started_ns=time.time_ns())
        run.put_trial(record)
        series: list[Series] = []
        try:
            with ending(target.stop):
                result, series, log, text = measure(
                    plan, trial, target, fixtures[trial.stage], described[trial.stage], audience
                )
                state, reason = judge(result, log, plan.protocol.survive)
                record = replace(record, state=state, reason=reason, result=result)
                if text is not None:
                    run.put_log("server", text, trial.number)
        except (Interrupted, StoreError):
            raise  # where the run file itself cannot be written, nothing can be kept of a trial
        except LostError as error:
            # What was measured to its end stays; nothing that follows can be.
            if record.result is None:
                record = replace(record, state=TrialState.FAILED, reason=error.told)
            run.put_trial(replace(record, ended_ns=time.time_ns()), series)
            audience.trial_done(record)
            raise
        except Exception as error:
            if (failure := told(error)) is None:
                raise
            record = replace(record, state=TrialState.FAILED, reason=failure.told, result=None)
        run.put_trial(replace(record, ended_ns=time.time_ns()), series)
        audience.trial_done(record)


def describe_stages(plan: Plan) -> dict[str, dict[str, Any]]:
    """What each stage drives, as the core describes it.

    Raises:
        PlanError: The core refuses a stage's workload.
    """
    found = {}
    for stage in plan.stages:
        try:
            found[stage.name] = describe(workload_spec(stage.workload, None))
        except DriveError as error:
            hint = f"{error.hint} Nothing was touched." if error.hint else "Nothing was touched."
            raise PlanError(f"{_where(plan, stage, error)}: {error.fact}", hint) from error
    return found


def _where(plan: Plan, stage: Stage, error: DriveError) -> str:
    """The stage, and its files unless the error names one."""
    files = [file.path for file in stage.workload.files]
    told = "" if any(Path(file).name in error.fact for file in files) else ", ".join(files)
    return f"{plan.source}: stage {stage.name}{f': {told}' if told else ''}"


def differences(plan: Plan, described: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What of its description each stage has otherwise than the plan as a whole."""
    base = describe(workload_spec(plan.workload, None))
    return {
        stage.name: {"face": stage.workload.face}
        | {
            key: described[stage.name][key]
            for key in _TOLD
            if key in described[stage.name] and described[stage.name][key] != base.get(key)
        }
        for stage in plan.stages
    }


def make_fixtures(plan: Plan, target: Target, audience: Audience) -> dict[str, Fixture]:
    """The loaded database of each stage; stages share one unless their builds store otherwise.

    Raises:
        PgdynoError: Loading failed, or what was loaded is not consistent.
    """
    of_build: dict[str | None, Fixture] = {}
    made: dict[str, Fixture] = {}
    for stage in plan.stages:
        if (build := _build_of(stage)) not in of_build:
            fixture = make_fixture(plan, target, audience, build)
            # What was loaded for a build before this one is not reused from an earlier run.
            of_build[build] = made.setdefault(fixture.ident, fixture)
    return {stage.name: of_build[_build_of(stage)] for stage in plan.stages}


def _build_of(stage: Stage) -> str | None:
    return stage.build.ident if stage.build else None


def make_fixture(
    plan: Plan, target: Target, audience: Audience, build: str | None = None
) -> Fixture:
    """Find the loaded database that a build can run on, or load it, check it and keep it.

    Raises:
        PgdynoError: Loading failed, or what was loaded is not consistent.
    """
    spec = load_spec(plan.workload)
    described = describe(spec) if spec else None
    version = described["version"] if described else None
    shape = fixture_shape(plan.target, plan.workload, target.facts_of(build), version)
    ident = fixture_ident(shape)
    if found := target.find_fixture(ident):
        return found
    clocked = _Clocked(audience, None)
    with ending(target.drop_half_fixture):
        with clocked.phase("prepare"):
            connection = target.begin_fixture(ident, build)
        loaded: dict[str, Any] = {}
        if spec is not None:
            with clocked.phase("load"):
                how = How(server_memory_bytes=place_of(connection).memory_bytes)
                loaded = load(connection, spec, how, progress=audience.loading)
        with clocked.phase("check"):
            conditions = check(connection, described["conditions"]) if described else ()
            require(conditions)
        if (setup := plan.workload.data.setup) is not None:
            with clocked.phase("setup"):
                run_setup(connection, setup)
        with clocked.phase("keep"):
            fixture = Fixture(ident, shape, 0, loaded, conditions, "", reused=False)
            return target.keep_fixture(fixture, plan.workload.databases)


def measure(
    plan: Plan,
    trial: Trial,
    target: Target,
    fixture: Fixture,
    described: dict[str, Any],
    audience: Audience,
) -> tuple[TrialResult, list[Series], Told | None, str | None]:
    """One trial from the fixture's copy to the checked database; the server still runs after it.

    Returns:
        The result, its series, what the server's log tells, and what is kept of the log.

    Raises:
        PgdynoError: A step failed; there are no numbers.
    """
    clocked = _Clocked(audience, trial)
    stage = plan.stage(trial.stage)
    with clocked.phase("restore"):
        target.restore(fixture.ident, stage.workload.databases, stage.folder)
    with clocked.phase("start"):
        ready = target.apply(stage.settings, _build_of(stage))
    databases = [
        ready.connection.to(name)
        for name in database_names(ready.connection.database, stage.workload.databases)
    ]
    durability = read_durability(databases, stage.workload)
    with clocked.phase("prewarm"):
        for database in databases if plan.protocol.prewarm else ():
            prewarm(database)
    with clocked.phase("checkpoint"):
        _checkpoint(ready)
    with clocked.phase("drive"):
        driven, series, failures = _drive_and_sample(plan.protocol, stage, trial.round, ready,
                                                     fixture, audience)  # fmt: skip
    if plan.protocol.crash_recovery:
        with clocked.phase("recover"):
            target.crash()
    conditions: tuple[Condition, ...] = ()
    if trial.round <= (plan.protocol.checked_rounds or plan.protocol.rounds):
        with clocked.phase("check"):
            conditions = _check_all(databases, described["conditions"])
    log = read_log(lines) if (lines := target.log_lines()) is not None else None
    result = _result(stage.workload, driven, series, ready, conditions, log)
    notes = tuple(f"sampler {name} stopped: {why}" for name, why in failures.items())
    seconds = {**clocked.seconds, "window": driven.window_s}
    if plan.protocol.crash_recovery and log is not None:
        result = replace(result, recovery=log.recovery)
    result = replace(result, phases_s=seconds, notes=notes, durability=durability)
    return result, series, log, target.log_text()


def _check_all(
    databases: Sequence[Connection], conditions: Sequence[dict[str, Any]]
) -> tuple[Condition, ...]:
    """The conditions on each database; those of one number are told as one."""
    first, *others = (check(database, conditions) for database in databases)
    merged = list(first)
    for database, more in zip(databases[1:], others, strict=True):
        for place, one in enumerate(more):
            sample = merged[place].sample or (one.sample and f"{database.database}: {one.sample}")
            merged[place] = replace(
                merged[place], sample=sample, violations=merged[place].violations + one.violations,
                seconds=merged[place].seconds + one.seconds,
            )  # fmt: skip
    return tuple(merged)


def _checkpoint(ready: Ready) -> None:
    with psycopg.connect(**ready.connection.arguments(), autocommit=True) as session:
        session.execute("CHECKPOINT")


def _drive_and_sample(
    protocol: ProtocolPlan,
    stage: Stage,
    round_number: int,
    ready: Ready,
    fixture: Fixture,
    audience: Audience,
) -> tuple[Driven, list[Series], dict[str, str]]:
    workload = stage.workload
    databases = database_names(ready.connection.database, workload.databases)
    with ExitStack() as stack:
        session, another = (
            stack.enter_context(psycopg.connect(**ready.connection.arguments(), autocommit=True))
            for _ in range(2)
        )
        begins = Begins(another)
        pace = pace_of(protocol, stage.checkpoints, round_number, begins.count, begins.spacing())
        samplers = [
            host_sampler(), self_sampler(),
            server_stats_sampler(session, session.info.server_version // 10_000, databases),
        ]  # fmt: skip
        if (ipis := ipi_sampler()) is not None:
            samplers.append(ipis)
        if ready.postmaster_pid is not None:
            samplers.append(server_sampler(ready.postmaster_pid))
            if ready.data_folder and (disk := disk_sampler(ready.data_folder)):
                samplers.append(disk)
        recorder = stack.enter_context(Recorder(samplers))
        driven = _drive(ready.connection, workload, protocol, fixture.loaded.get("c_load"),
                        audience.driving, ready.bindir, ready.user, pace)  # fmt: skip
    return driven, [*driven.series, *recorder.series()], recorder.failures


def _drive(
    connection: Connection,
    workload: Workload,
    protocol: ProtocolPlan,
    c_load: dict[str, int] | None,
    progress: Callable[[dict[str, Any]], None],
    bindir: Path | None,
    user: OsUser | None = None,
    pace: Pace | None = None,
) -> Driven:
    if workload.engine == "pgbench":
        program = pgbench_program(bindir)
        return drive_pgbench(program, connection, workload, protocol, progress, user)
    return drive(connection, workload, protocol, c_load, progress, pace=pace)


def drive_alone(
    connection: Connection,
    workload: Workload,
    protocol: ProtocolPlan,
    c_load: dict[str, int] | None,
    progress: Callable[[dict[str, Any]], None],
    bindir: Path | None = None,
) -> tuple[Driven, float | None]:
    """Drive a loaded database without a plan.

    Args:
        connection: The database.
        workload: What is driven, and by whom.
        protocol: Seconds of warm-up, window and drain.
        c_load: The constants that TPC-C's data were loaded with.
        progress: Told as it goes.
        bindir: Where pgbench is; None: the embedded one.

    Returns:
        What was measured, and the share of this host's CPU time that was idle in the window.
    """
    with Recorder([host_sampler()]) as recorder:
        driven = _drive(connection, workload, protocol, c_load, progress, bindir)
    return driven, host_idle_share(_deltas(recorder.series(), driven))


def _deltas(series: Sequence[Series], driven: Driven) -> dict[str, float]:
    """Growth of the counters over the window, of those whose samples cover it."""
    return {
        s.name: value
        for s in series
        if s.kind == "counter" and (value := delta(s, driven.window_ns)) is not None
    }


def _result(
    workload: Workload,
    driven: Driven,
    series: Sequence[Series],
    ready: Ready,
    conditions: tuple[Condition, ...],
    log: Told | None,
) -> TrialResult:
    return TrialResult(
        window_ns=driven.window_ns,
        window_s=driven.window_s,
        nopm=driven.nopm if workload.headline == "NOPM" else None,
        tpm_total=driven.tpm_total,
        kinds=driven.kinds,
        client=driven.client,
        deltas=_deltas(series, driven),
        settings=ready.settings,
        audit=driven.audit,
        conditions=conditions,
        events=log.events if log else (),
        errors=driven.errors if driven.error is None else (*driven.errors, _gave_up(driven)),
        reconnects=driven.reconnects,
        statements_per_transaction=driven.statements_per_transaction,
        round_trips_per_transaction=driven.round_trips_per_transaction,
        phases_s={},
        gaps=driven.gaps,
        parts=driven.parts,
        steps=driven.steps,
        late=driven.late,
        late_ns=driven.late_ns,
        stream_digest=driven.stream_digest,
        server=ready.server,
        engine=driven.engine,
        pgbench=driven.pgbench,
        followed=driven.followed,
        drained_s=driven.drained_s,
        given_up_s=driven.given_up_s,
        untold=driven.untold,
    )


def _gave_up(driven: Driven) -> dict[str, Any]:
    return {"sqlstate": driven.outcome, "count": 1, "example": driven.error}
