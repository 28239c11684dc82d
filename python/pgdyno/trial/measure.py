"""One trial: a stage measured once, on a fresh copy of the fixture, and stored as soon as it ends.

    restore -> apply -> prewarm -> CHECKPOINT -> drive || sample -> profile -> after window -> judge
      -> store

Each step takes the record of the step before and returns its own; steps do not import each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace

from pgdyno.drive.driver import Driven
from pgdyno.model.connection import Connection
from pgdyno.model.description import Description
from pgdyno.model.durability import Durability, over_servers, together
from pgdyno.model.errors import (
    HostLostError,
    Interrupted,
    LostError,
    MachineError,
    StoppedError,
    StoreError,
)
from pgdyno.model.plan import Protocol, Stage, Workload
from pgdyno.model.pooler import POOLED
from pgdyno.model.progress import TrialEnded
from pgdyno.model.run import Failures, Fixture, TrialRecord, TrialResult, TrialState
from pgdyno.model.system_errors import as_pgdyno_error
from pgdyno.model.wal import WindowWal
from pgdyno.plan.settings.durability import lying_disk_losses
from pgdyno.sample.logged import told
from pgdyno.sample.server_log import LogSummary, read_log
from pgdyno.store.profiles import put_profile
from pgdyno.store.run_file import RunFile
from pgdyno.target.durability import read_durability
from pgdyno.target.interface import Ready, Target, ending, explained
from pgdyno.trial.actions_after_window import actions_after_window
from pgdyno.trial.after_window import EndedWindow, Learned
from pgdyno.trial.guarding import guarding
from pgdyno.trial.preparing import shim_of, started, warmed
from pgdyno.trial.profiling import take_profile
from pgdyno.trial.progress import Listener, Phases
from pgdyno.trial.sampled import Sampled, growth_of_all, notes_of
from pgdyno.trial.servers import server_results
from pgdyno.trial.validity import is_fault_of_hosts, is_lost, judge
from pgdyno.trial.window import drive_and_sample
from pgdyno.trial.window_wal import window_wal

_BESIDE = "The replica ran on the machine of the server, which had no CPU or memory that it took."


@dataclass(frozen=True, slots=True)
class TestBed:
    """What trials are measured on, and where they are stored."""

    __test__ = False  # no class of tests, whatever pytest thinks

    target: Target
    fixtures: Mapping[str, Fixture]  # by stage
    described: Mapping[str, Description]  # by stage
    run: RunFile
    listener: Listener
    machine: Callable[[Stage], AbstractContextManager[object]]  # holds what a stage asks of it


def measure(stage: Stage, protocol: Protocol, bed: TestBed, planned: TrialRecord) -> TrialRecord:
    """Measure a stage once; the trial is stored as soon as it ends, well or badly.

    Args:
        stage: What is measured.
        protocol: How.
        bed: On what.
        planned: The trial as it was planned: its number, round, stage and identity.

    Returns:
        The trial as it is stored.

    Raises:
        LostError: The target is not this run's any more; the trial is stored, see `_lost`.
        MachineError: What the stage asked of the machine stands after it; likewise.
        StoreError: The run file itself cannot be written, so that nothing can be kept of a trial.
        KeyboardInterrupt: Ctrl-C; the trial is left as running.
    """
    record = replace(planned, state=TrialState.RUNNING, started_ns=time.time_ns())
    bed.run.put_trial(record)
    sampled = Sampled()
    try:
        with bed.machine(stage), ending(bed.target.stop), explained(bed.target):
            result, sampled, log, text = steps(stage, protocol, bed, record)
            state, reason = judge(result, log, protocol.survive)
            record = replace(record, state=state, reason=reason, result=result,
                             host_lost=is_fault_of_hosts(state, reason, result))  # fmt: skip
            if text is not None:
                bed.run.put_log("server", text, record.number)
    except (Interrupted, StoreError):
        raise
    except (LostError, MachineError) as error:
        # What was measured to its end stays; nothing that follows can be.
        _ended(_lost(record, error), sampled, bed, lost=True)
        raise
    except Exception as error:
        if (failure := as_pgdyno_error(error)) is None:
            raise
        record = replace(record, state=TrialState.FAILED, reason=failure.line, result=None,
                         host_lost=isinstance(failure, HostLostError))  # fmt: skip
    return _ended(record, sampled, bed)


def _lost(record: TrialRecord, error: LostError | MachineError) -> TrialRecord:
    """A trial whose server went away in it, or whose machine was not put back after it.

    A crash is evidence against the stage that was measured, and the trial has failed. A server that
    somebody stopped is none: the trial is broken off, as by Ctrl-C. So is one whose settings of the
    machine could not be put back: mostly somebody else changed them, nobody knows when.
    """
    result = record.result
    cut_off = result is None or (
        record.state is TrialState.INVALID and any(is_lost(one.sqlstate) for one in result.errors)
    )
    if isinstance(error, MachineError) or (isinstance(error, StoppedError) and cut_off):
        return replace(record, state=TrialState.RUNNING, reason=error.fact, result=None)
    if result is None:
        return replace(record, state=TrialState.FAILED, reason=error.fact)
    return record


def _ended(
    record: TrialRecord, sampled: Sampled, bed: TestBed, *, lost: bool = False
) -> TrialRecord:
    record = replace(record, ended_ns=time.time_ns())
    bed.run.put_trial(record, sampled.stored, sampled.tallies, sampled.snapshots)
    bed.listener(TrialEnded(record, lost))
    return record


def steps(
    stage: Stage, protocol: Protocol, bed: TestBed, trial: TrialRecord
) -> tuple[TrialResult, Sampled, LogSummary | None, str | None]:
    """From the fixture's copy to the checked database; the server still runs after it.

    Returns:
        The result, what was sampled, what the server's log tells, and what is kept of the log.

    Raises:
        PgdynoError: A step failed; there are no numbers.
    """
    phases = Phases(bed.listener, trial)
    target, fixture = bed.target, bed.fixtures[stage.name]
    with ExitStack() as held:
        shim = held.enter_context(shim_of(stage))
        ready, databases = started(stage, target, fixture, phases.phase, shim)
        guard = held.enter_context(guarding(stage, target, ready, phases.phase))
        durability = _durability(ready, databases, stage)
        warmed(ready, databases, protocol, phases.phase)
        with phases.phase("drive"):
            driven, sampled = drive_and_sample(protocol, stage, trial.round, ready, fixture,
                                               bed.listener, target.log_tail())  # fmt: skip
        unseen: tuple[str, ...] = () if guard is None else (guard.held(),)
        if stage.standby and ready.replica is not None:
            unseen = (*unseen, _BESIDE)
        if ready.pooled is not None:
            ready.pooled.require_alive()
            if ready.pooled.connection.prepare == "unnamed":
                unseen = (*unseen, f"Statements: {POOLED}.")
        described = bed.described[stage.name]
        names = tuple(one.name for one in ready.each) if ready.others else ()
        ended = EndedWindow(target, databases, described, protocol, trial.round, names)
        actions = list(actions_after_window(ended))
        wal: WindowWal | None = None
        if not any(action.at_once for action in actions):
            with phases.phase("wal"):
                wal, why = _wal(driven, sampled, ready, databases, described)
                unseen = (*unseen, *why)
        if protocol.profile_s:
            with phases.phase("profile"):
                unseen = (*unseen, *_profile(stage, protocol, bed, trial, ready))
        learned: list[Learned] = []
        for action in actions:
            with phases.phase(action.phase):
                learned.append(action.act())
    lines = target.log_lines()
    log = told(sampled.snapshots, driven.window_ns) if lines is None else read_log(lines)
    result = _result(stage.workload, driven, sampled, ready, log)
    seconds = {**phases.seconds, "window": driven.window_s}
    notes = (*result.notes, *unseen)
    result = replace(result, phases_s=seconds, notes=notes, durability=durability, wal=wal)
    for add in learned:
        result = add(result, log)
    return result, sampled, log, target.log_text()


def _durability(ready: Ready, databases: Sequence[Connection], stage: Stage) -> Durability:
    """What may be lost where the load runs; of several servers, on any."""
    if not ready.others:
        found = read_durability(databases, stage.workload, guarded=stage.guard)
    else:
        found = over_servers({
            one.name: read_durability([database], stage.workload)
            for one, database in zip(ready.each, databases, strict=True)
        })  # fmt: skip
    if not stage.lying_disk:
        return found
    return together(found, lying_disk_losses("the library that the server had"))


def _wal(
    driven: Driven,
    sampled: Sampled,
    ready: Ready,
    databases: Sequence[Connection],
    described: Description,
) -> tuple[WindowWal | None, tuple[str, ...]]:
    """What the window's WAL was made of; or a note why that is not known."""
    try:
        found = window_wal(sampled.series, driven.window_ns, ready, databases, described.writes)
        return found, ()
    except (Interrupted, LostError):
        raise
    except Exception as error:
        if (failure := as_pgdyno_error(error)) is None:
            raise
        return None, (
            f"what its WAL was made of is not known, which touches no other figure: {failure.fact}",
        )


def _profile(
    stage: Stage, protocol: Protocol, bed: TestBed, trial: TrialRecord, ready: Ready
) -> tuple[str, ...]:
    """Store a profile of the load; a note where there is none. The trial has its numbers anyway."""
    try:
        found = take_profile(protocol, stage, ready, bed.fixtures[stage.name])
    except (Interrupted, LostError):
        raise
    except Exception as error:
        if (failure := as_pgdyno_error(error)) is None:
            raise
        return (f"no profile: {failure.line}",)
    put_profile(bed.run, found, trial.number)
    return ()


def _result(
    workload: Workload,
    driven: Driven,
    sampled: Sampled,
    ready: Ready,
    log: LogSummary | None,
) -> TrialResult:
    return TrialResult(
        window_ns=driven.window_ns,
        window_s=driven.window_s,
        nopm=driven.nopm if workload.headline == "NOPM" else None,
        tpm_total=driven.tpm_total,
        kinds=driven.kinds,
        client=driven.client,
        deltas=growth_of_all(sampled, driven),
        settings=ready.settings,
        audit=driven.audit,
        conditions=(),
        events=log.events if log else (),
        errors=driven.errors if driven.error is None else (*driven.errors, _gave_up(driven)),
        reconnects=driven.reconnects,
        statements_per_transaction=driven.statements_per_transaction,
        round_trips_per_transaction=driven.round_trips_per_transaction,
        phases_s={},
        notes=notes_of(sampled, driven),
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
        unlogged=driven.unlogged,
        telemetry=sampled.telemetry,
        fleet=driven.fleet,
        servers=server_results(ready, workload, sampled, driven),
    )


def _gave_up(driven: Driven) -> Failures:
    return Failures(driven.outcome, 1, driven.error or "")
