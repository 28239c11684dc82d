"""Drives a window while samplers look on: our own driver, or the real pgbench."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import psycopg

from pgdyno.drive.checkpoint_pace import Pace, pace_of
from pgdyno.drive.driver import Driven, drive
from pgdyno.drive.pgbench import drive_pgbench
from pgdyno.model.connection import Connection
from pgdyno.model.plan import Protocol, Stage, Workload
from pgdyno.model.progress import DriveProgress
from pgdyno.model.run import Fixture, Series
from pgdyno.model.workload import database_names
from pgdyno.sample.checkpoints import Begins
from pgdyno.sample.recorder import Recorder, delta
from pgdyno.sample.sampler import Subject
from pgdyno.sample.samplers import samplers_of
from pgdyno.shell import OsUser
from pgdyno.stats.client_limit import host_idle_share
from pgdyno.target.interface import Ready
from pgdyno.target.open_target import pgbench_program

Progress = Callable[[DriveProgress], None]


def drive_and_sample(
    protocol: Protocol,
    stage: Stage,
    round_number: int,
    ready: Ready,
    fixture: Fixture,
    progress: Progress,
) -> tuple[Driven, list[Series], dict[str, str]]:
    """Drive one window of a stage on a server that is ready.

    Args:
        protocol: Seconds, and how windows follow checkpoints.
        stage: Its workload is driven.
        round_number: The first rounds may be anchors.
        ready: The server.
        fixture: What it was loaded with.
        progress: Told twice a second.

    Returns:
        What was measured, the series of driver and samplers, and why a sampler stopped, by name.
    """
    workload = stage.workload
    databases = database_names(ready.connection.database, workload.databases)
    with ExitStack() as stack:
        session, another = (
            stack.enter_context(psycopg.connect(**ready.connection.arguments(), autocommit=True))
            for _ in range(2)
        )
        begins = Begins(another)
        pace = pace_of(protocol, stage.checkpoints, round_number, begins.count, begins.spacing())
        subject = Subject(session, databases, ready.postmaster_pid, ready.data_folder)
        samplers = samplers_of(subject)
        recorder = stack.enter_context(Recorder(samplers))
        c_load = fixture.loaded.c_load if fixture.loaded else None
        driven = drive_by_engine(ready.connection, workload, protocol, c_load,
                                 progress, ready.bindir, ready.user, pace)  # fmt: skip
    return driven, [*driven.series, *recorder.series()], recorder.failures


def drive_by_engine(
    connection: Connection,
    workload: Workload,
    protocol: Protocol,
    c_load: dict[str, int] | None,
    progress: Progress,
    bindir: Path | None,
    user: OsUser | None = None,
    pace: Pace | None = None,
) -> Driven:
    """Drive a window by the engine that the workload asks for, and by nobody watched."""
    if workload.engine == "pgbench":
        program = pgbench_program(bindir)
        return drive_pgbench(program, connection, workload, protocol, progress, user)
    return drive(connection, workload, protocol, c_load, progress, pace=pace)


def drive_alone(
    connection: Connection,
    workload: Workload,
    protocol: Protocol,
    c_load: dict[str, int] | None,
    progress: Progress,
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
    with Recorder(samplers_of(Subject())) as recorder:
        driven = drive_by_engine(connection, workload, protocol, c_load, progress, bindir)
    return driven, host_idle_share(growth(recorder.series(), driven))


def growth(series: Sequence[Series], driven: Driven) -> dict[str, float]:
    """Growth of the counters over the window, of those whose samples cover it."""
    return {
        s.name: value
        for s in series
        if s.kind == "counter" and (value := delta(s, driven.window_ns)) is not None
    }
