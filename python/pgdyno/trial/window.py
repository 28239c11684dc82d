"""Drives a window while samplers look on: our own driver, or the real pgbench.

The recorder is told when the window begins and ends by the driver's progress, within half a second
(pgbench's: a second): for tables that are read at its ends, not for what is measured over it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.catalog.waits import wait_of
from pgdyno.drive.checkpoint_pace import Pace, pace_of
from pgdyno.drive.driver import Driven, Wishes, drive
from pgdyno.drive.pgbench import drive_pgbench
from pgdyno.drive.spec import Part
from pgdyno.model.connection import Connection
from pgdyno.model.host_address import drives_here
from pgdyno.model.host_time import HOST_IDLE_COLUMNS, host_idle_share
from pgdyno.model.plan import Protocol, Stage, Workload
from pgdyno.model.progress import DriveProgress
from pgdyno.model.proof import Slowdown
from pgdyno.model.run import Fixture
from pgdyno.model.steady_clock import steady_unix_ns, was_set_s
from pgdyno.sample.checkpoints import Begins
from pgdyno.sample.recorder import Recorder
from pgdyno.sample.sampler import Subject
from pgdyno.sample.samplers import samplers_for, samplers_of
from pgdyno.session import own_session
from pgdyno.target.interface import Ready, on_server
from pgdyno.target.open_target import pgbench_program
from pgdyno.target.server_log import LogTail
from pgdyno.trial.looking_on import looking_on
from pgdyno.trial.sampled import Sampled, growth
from pgdyno.trial.servers import ALONE, recorders_of_servers, with_servers
from pgdyno.workload.describe import describe

Progress = Callable[[DriveProgress], None]


@dataclass(slots=True)
class Watch:
    """Hears the driver: passes its progress on, and tells the recorder of the window's ends."""

    progress: Progress
    recorders: Sequence[Recorder] = ()
    pids: list[int] = field(default_factory=list)  # of drivers on this host, once they run
    _phase: str = field(default="", init=False)

    def started(self, pid: int) -> None:
        """A driver's process runs on this host."""
        self.pids.append(pid)

    def tell(self, state: DriveProgress) -> None:
        """What the driver says of itself."""
        self._enter(state.phase)
        self.progress(state)

    def ended(self) -> None:
        """The driver has ended; a window that was still open in its last words has, too."""
        self._enter("done")

    def _enter(self, phase: str) -> None:
        before, self._phase = self._phase, phase
        if before == phase:
            return
        for recorder in self.recorders:
            if phase == "window":
                recorder.window_begins()
            elif before == "window":
                recorder.window_ends()


def drive_and_sample(
    protocol: Protocol,
    stage: Stage,
    round_number: int,
    ready: Ready,
    fixture: Fixture,
    progress: Progress,
    tail: LogTail | None = None,
) -> tuple[Driven, Sampled]:
    """Drive one window of a stage on a server that is ready.

    Args:
        protocol: Seconds, how windows follow checkpoints, and which telemetry is taken.
        stage: Its workload is driven.
        round_number: The first rounds may be anchors.
        ready: The server.
        fixture: What it was loaded with.
        progress: Told twice a second; an `Onlooker` is shown what is sampled, too.
        tail: Of the server's log, for onlookers; None: it is not ours to read.

    Returns:
        What was measured by the driver, and what was sampled meanwhile.
    """
    workload = stage.workload
    databases = [one.database for one in ready.databases(workload)]
    with ExitStack() as stack:
        with on_server(ready.name):
            another = stack.enter_context(own_session(ready.beside))
        begins = Begins(another)
        pace = pace_of(protocol, stage.checkpoints, round_number, begins.count, begins.spacing())
        watch = Watch(progress)
        own = {another.info.backend_pid}
        subject = Subject(
            None,  # this host: sessions are those of its servers' recorders
            databases,
            ready.watched_pid,
            ready.data_folder,
            ours=ready.postmaster_pid is not None,
            major=another.info.server_version // 10_000,
            own_pids=own,
            driver_pids=(lambda: watch.pids) if drives_here(protocol.fleet) else None,
            log=ready.log,
            telemetry=protocol.telemetry,
            described=describe(workload),
            wait_of=wait_of,
            pooler_pid=ready.pooled.pid if ready.pooled else None,
        )
        steady_ns = steady_unix_ns()
        recorder = stack.enter_context(Recorder(samplers_of(subject), protocol.telemetry))
        beside = recorders_of_servers(ready, workload, subject, own, stack)
        watch.recorders = (recorder, *(one for _, one in beside))
        alone = [one for server, one in beside if server == ALONE]
        stack.enter_context(looking_on(progress, (recorder, *alone), tail))
        c_load = fixture.loaded.c_load if fixture.loaded else None
        driven = drive_by_engine(ready, workload, protocol, c_load, watch, pace)
        watch.ended()
        clock_set_s = was_set_s(steady_ns)
    sampled = Sampled(
        (*driven.series, *recorder.series()),
        recorder.tallies(),
        recorder.snapshots(),
        recorder.telemetry(),
        clock_set_s=clock_set_s,
    )
    return driven, with_servers(sampled, beside)


def drive_by_engine(
    ready: Ready,
    workload: Workload,
    protocol: Protocol,
    c_load: dict[str, int] | None,
    watch: Watch,
    pace: Pace | None = None,
    slowdowns: Sequence[Slowdown] = (),
) -> Driven:
    """Drive a window by the engine that the workload asks for; the real one is never slower."""
    if workload.engine == "pgbench":
        assert not slowdowns, "the real pgbench is as it is"
        program = pgbench_program(ready.bindir)
        return drive_pgbench(program, ready.driven, workload, protocol, watch.tell, ready.user,
                             watch.started)  # fmt: skip
    parts = [Part(one.name, one.connection) for one in ready.each] if ready.others else []
    wishes = Wishes(slowdowns=slowdowns, parts=parts, replica=ready.replica)
    return drive(ready.driven, workload, protocol, c_load, watch.tell, pace=pace,
                 started=watch.started, wishes=wishes)  # fmt: skip


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
    ready = Ready(connection, (), None, None, 0.0, "", bindir)
    with Recorder(samplers_for(HOST_IDLE_COLUMNS)) as recorder:
        driven = drive_by_engine(ready, workload, protocol, c_load, Watch(progress))
    return driven, host_idle_share(growth(recorder.series(), driven), driven.window_s)
