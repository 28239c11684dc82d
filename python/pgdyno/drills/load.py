"""The load of a stage, recorded call by call on its disk, with a ledger of what was acknowledged.

restore -> record ( apply -> prewarm -> CHECKPOINT -> drive || checkpoints -> halt )
"""

from __future__ import annotations

import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace

import psycopg

from pgdyno.disk.record import record_span
from pgdyno.disk.recorder import Recording, possible, recorded
from pgdyno.drills.base import keep_base, keeps_wal
from pgdyno.drills.kills import kill, kill_all, recovers
from pgdyno.drills.ledger import Ledger
from pgdyno.drills.memory import starve
from pgdyno.drills.standby import Following, following
from pgdyno.drills.survivors import require_none_yet
from pgdyno.drive.driver import LedgerFile, Wishes, drive
from pgdyno.folders import Folder
from pgdyno.model.connection import Connection
from pgdyno.model.description import Description
from pgdyno.model.drill import Disaster, Down, DrillDesign, Outage, RecordedLoad, Recorder
from pgdyno.model.errors import DriveError, PlanError, TargetError
from pgdyno.model.plan import Plan, Stage
from pgdyno.model.progress import DriveProgress, StepBegun
from pgdyno.model.run import Fixture
from pgdyno.model.units import bytes_text
from pgdyno.session import own_session
from pgdyno.shell import run
from pgdyno.target.interface import Ready, ending, explained
from pgdyno.target.leftover_server import require_no_server
from pgdyno.target.own_target import BASE, DATA, LEDGER, RECORD, OwnTarget
from pgdyno.target.standby import STANDBY
from pgdyno.trial.fixture import build_of
from pgdyno.trial.preparing import warmed, with_pooler
from pgdyno.trial.progress import Listener

CHECKPOINTS = 4
"""Asked for in a load, so that cuts come before, into and after them."""
BACK_S = 120.0
"""A server that was struck may take so long, after its load, to come back by itself."""
_PAUSE_S = 0.1
_GONE_S = 60.0  # what was killed may take so long until its last call to the disk has returned
_WAITS = """
SELECT current_setting('synchronous_standby_names') <> ''
       AND NOT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum'))
"""
_NS_IN_US = 1_000
_GIB = 1 << 30
_LAST_SEGMENT = "Latest checkpoint's REDO WAL file:"


@dataclass(frozen=True, slots=True)
class Bench:
    """What a drill is made on."""

    target: OwnTarget
    fixture: Fixture
    described: Description
    listener: Listener


@dataclass(frozen=True, slots=True)
class Strike:
    """A disaster that strikes the load, and when: at a share of it."""

    disaster: Disaster
    share: float


@dataclass(frozen=True, slots=True)
class Load:
    """A load whose record lies in the trial's folder; its server is stopped."""

    stage: Stage
    bench: Bench
    told: RecordedLoad
    ledger: Ledger
    begun_unix_us: int
    record_bytes_max: int
    recorder: Recorder
    ends_ns: int  # of the record's clock: the last answer, or when the power went
    outage: Outage | None = None  # None: nothing struck it, or a standby took over
    promotion_s: float | None = None  # until a standby took over; None: none did
    met: int | None = None  # calls that met a fault; None: there was none


@contextmanager
def recorded_load(
    plan: Plan, stage: Stage, design: DrillDesign, bench: Bench, strike: Strike | None = None
) -> Iterator[Load]:
    """Drive a stage's load while its disk is recorded; meanwhile, disks can be made of the record.

    Args:
        plan: How servers are warmed.
        stage: Its settings, and what it drives.
        design: Seconds of load, and most that its record may take.
        bench: On what.
        strike: A disaster that strikes meanwhile; the load goes on.

    Raises:
        PlanError: The stage's load keeps no ledger, or its disk is not one folder.
        TargetError: There is no room, nothing can be mounted, or the server does not start.
        DriveError: The driver failed, or the record was full before it ended.
    """
    target = bench.target

    def step(text: str) -> None:
        bench.listener(StepBegun(f"stage {stage.name}: {text}"))

    require_ledger(stage, bench.described)
    bytes_max, recorder = round(design.record_max_gib * _GIB), possible(design.recorder)
    with ending(target.stop), explained(target):
        step("copying the data")
        target.restore(bench.fixture.ident, stage.workload.databases, stage.folder)
        folder = target.trial_folder
        with folder.into(DATA) as data:
            _require_one_folder(stage, data)
            _drop_spare_segments(data, target, build_of(stage))
        if stage.guard:
            keep_base(target)
        _require_room(folder, bytes_max, bench.fixture.data_bytes)
        begun_unix_us = (time.time_ns() - _NS_IN_US * 1_000_000) // _NS_IN_US
        try:
            with recorded(recorder, folder, DATA, RECORD, bytes_max, target.user) as record:
                driven = _driven(plan, stage, design.load_s, bench, step, record, strike,
                                 begun_unix_us)  # fmt: skip
                if recorder == "library":
                    _require_all_ended(target)
            ledger = Ledger.read(folder, LEDGER)
            if record.recorded is None or record.recorded.full:
                raise DriveError(
                    f"the record of stage {stage.name} was full at {design.record_max_gib:g} GiB",
                    "Let it take more, or drive for fewer seconds: `--record`, `--load`.",
                )
            first_ns, last_ns = ledger.span_ns
            if strike is not None and strike.disaster.cuts:
                last_ns = record_span(folder, RECORD).until_ns
            told = RecordedLoad(stage.name, driven.server, ledger.at(last_ns).commits,
                                (last_ns - first_ns) / 1e9, record.recorded.bytes)  # fmt: skip
            met = record.recorded.met if strike and strike.disaster.fault else None
            yield Load(stage, bench, told, ledger, begun_unix_us, bytes_max, recorder, last_ns,
                       _outage(driven, ledger), driven.promotion_s, met)  # fmt: skip
        finally:
            folder.remove(RECORD)
            folder.remove(LEDGER)
            folder.remove_folder(STANDBY)
            folder.remove_folder(BASE)


def _require_all_ended(target: OwnTarget) -> None:
    """Wait for what a killed postmaster leaves on the data directory itself.

    With the library it would write on into a record that has ended; and no server starts where
    the memory of another one is held.

    Raises:
        TargetError: A process does not end.
    """
    with target.trial_folder.into(DATA) as data:
        require_no_server(data, target.user, patience_s=_GONE_S)


def _outage(driven: _Driven, ledger: Ledger) -> Outage | None:
    """None where nothing struck, or where a standby took over."""
    if driven.struck_ns is None or driven.promotion_s is not None:
        return None
    seconds = ledger.longest_gap_s(driven.struck_ns, driven.ended_ns)
    down = driven.down
    return Outage(
        seconds, down is not None, down, BACK_S if down in ("hangs", "recovers") else None
    )


def _require_room(folder: Folder, bytes_max: int, data_bytes: int) -> None:
    """For the record, and for a disk; for a second one where it is cut again."""
    free = shutil.disk_usage(folder.path).free
    if free < bytes_max + 2 * data_bytes:
        raise TargetError(
            f"{folder.path} has {bytes_text(free)} free; a record may take {bytes_text(bytes_max)},"
            f" and each of two disks {bytes_text(data_bytes)}",
            "Let the record take less (`--record`), or name a PGDYNO_HOME with more room.",
        )


def require_ledger(stage: Stage, described: Description) -> None:
    """Accept what leaves rows by which its commits are found again.

    Raises:
        PlanError: The stage's load does not.
    """
    if stage.workload.engine == "pgbench":
        raise PlanError(
            f"stage {stage.name} is driven by the real pgbench, which keeps no ledger",
            "Drill a stage without `engine`: the driver's own transactions are the same.",
        )
    if not described.witnesses:
        raise PlanError(
            f"workload {described.name} leaves nothing by which its commits are found again",
            "Drill TPC-C, `tpcb` or `simple-update`; or name the `witness` of a mix's transactions,"
            " or of scripts: a query of the `:request_id` of those that are committed.",
        )


def _driven(
    plan: Plan,
    stage: Stage,
    load_s: float,
    bench: Bench,
    step: Callable[[str], None],
    record: Recording,
    strike: Strike | None,
    begun_unix_us: int,
) -> _Driven:
    target, fixture = bench.target, bench.fixture
    step("starting the server")
    try:
        settings = stage.settings
        if stage.guard:
            binaries = target.binaries_of(build_of(stage))
            settings = (*settings, keeps_wal(binaries.version_num // 10_000))
        ready = target.apply(settings, build_of(stage), record.environment)
        ready = with_pooler(stage, target, ready)
        record.require_seen()
        protocol = replace(plan.protocol, warmup_s=0.0, window_s=load_s)
        databases = ready.databases(stage.workload)
        require_none_yet(databases, bench.described, begun_unix_us)
        warmed(ready, databases, protocol, _untold)
        step(f"driving for {load_s:g} s, recorded")
        c_load = fixture.loaded.c_load if fixture.loaded else None
        load = replace(stage.workload, steps=(), requests_max=None)
        wishes = Wishes(ledger=LedgerFile(target.trial_folder, LEDGER))
        window = _Window(bench.listener)
        with (
            following(target, stage, ready, strike.disaster.standby if strike else None) as standby,
            _checkpoints(ready.connection, load_s / CHECKPOINTS),
            _struck(record, ready, standby, strike, load_s, window) as struck,
        ):
            driven = drive(ready.driven, load, protocol, c_load, window.hear, wishes)
            ended_ns = time.monotonic_ns()
            down = None if struck.at_ns is None else _down(target, ready)
        if strike is not None:
            _require_struck(strike.disaster, struck, ended_ns, driven.error)
        elif driven.error:
            raise DriveError(driven.error)
        promotion_s = standby.promotion_s if standby else None
        return _Driven(ready.server, struck.at_ns, ended_ns, down, promotion_s)
    finally:
        target.halt()


def _require_struck(disaster: Disaster, struck: _Struck, ended_ns: int, error: str | None) -> None:
    """Refuse a load that ended without its disaster: what came back of it survived nothing."""
    if struck.at_ns is None or struck.at_ns > ended_ns:
        why = f": {error}" if error else ""
        raise DriveError(f"the load ended before disaster {disaster.name} struck it{why}")


def _down(target: OwnTarget, ready: Ready) -> Down | None:
    """In what way somebody has to do something; a server that recovers is waited for."""
    deadline = time.monotonic() + BACK_S
    while not target.is_down and time.monotonic() < deadline:
        try:
            with own_session(ready.connection) as session:
                return "waits" if session.execute(_WAITS).fetchone() == (True,) else None
        except psycopg.Error:
            time.sleep(_PAUSE_S)
    if target.is_down:
        return "ended"
    assert ready.postmaster_pid is not None, "only servers of ours are drilled"
    return "recovers" if recovers(ready.postmaster_pid) else "hangs"


def _untold(_phase: str) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True)
class _Driven:
    """What became of a load."""

    server: str
    struck_ns: int | None  # None: nothing struck
    ended_ns: int
    down: Down | None  # the server, at the end; None: it is not
    promotion_s: float | None  # until a standby took over; None: none did


class _Window:
    """When the window of a load ends, by what its driver tells."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._is_open = threading.Event()
        self._ends_s = 0.0  # of the monotonic clock

    def hear(self, state: DriveProgress) -> None:
        """Told of the driver; connecting may take longer than the window itself."""
        if state.phase == "window" and not self._is_open.is_set():
            self._ends_s = time.monotonic() + state.phase_left_s
            self._is_open.set()
        self._listener(state)

    def waited(self, left_s: float, over: threading.Event) -> bool:
        """Wait until so much is left of it; False: the load is over before."""
        while not self._is_open.wait(_PAUSE_S):
            if over.is_set():
                return False
        return not over.wait(max(self._ends_s - left_s - time.monotonic(), 0.0))


@dataclass(slots=True)
class _Struck:
    """When a disaster struck, in ns of the record's clock; None: it has not yet."""

    at_ns: int | None = None


@contextmanager
def _struck(
    record: Recording,
    ready: Ready,
    standby: Following | None,
    strike: Strike | None,
    load_s: float,
    window: _Window,
) -> Iterator[_Struck]:
    """Meanwhile the disaster strikes, at its time in the window."""
    struck = _Struck()
    if strike is None:
        yield struck
        return
    left_s = (1 - strike.share) * load_s
    failed: list[Exception] = []

    def begin(over: threading.Event) -> None:
        try:
            if window.waited(left_s, over):
                struck.at_ns = time.monotonic_ns()
                _act(strike.disaster, record, ready, standby, over)
        except Exception as error:  # whatever it is: nobody else hears what ends a thread
            failed.append(error)

    with _meanwhile("pgdyno disaster", begin):
        yield struck
    if failed:
        raise failed[0]


def _act(
    disaster: Disaster,
    record: Recording,
    ready: Ready,
    standby: Following | None,
    over: threading.Event,
) -> None:
    if disaster.fault is not None:
        record.fail(disaster.fault)
    if disaster.kills is not None:
        kill(ready, disaster.kills)
    if disaster.starves:
        starve(ready)
    if standby is not None:
        standby.strike(over)
    if disaster.cuts:
        record.cut()
        assert ready.postmaster_pid is not None, "only servers of ours are drilled"
        # Who panics for want of its disk ends with its locks, for which others would wait forever.
        kill_all(ready.postmaster_pid)


@contextmanager
def _checkpoints(connection: Connection, every_s: float) -> Iterator[None]:
    """Ask for a checkpoint every so often; should one fail, the load will tell why."""

    def ask(over: threading.Event) -> None:
        while not over.wait(every_s):
            with suppress(psycopg.Error), own_session(connection) as session:
                session.execute("CHECKPOINT")

    with _meanwhile("pgdyno checkpoints", ask):
        yield


@contextmanager
def _meanwhile(name: str, act: Callable[[threading.Event], None]) -> Iterator[None]:
    """Do something in a thread of its own, which ends soon after its event is set."""
    over = threading.Event()
    acting = threading.Thread(target=act, args=(over,), name=name, daemon=True)
    acting.start()
    try:
        yield
    finally:
        over.set()
        acting.join()


def _require_one_folder(stage: Stage, data: Folder) -> None:
    """What lies elsewhere is not recorded."""
    if stat.S_ISLNK(os.lstat("pg_wal", dir_fd=data.handle).st_mode):
        raise PlanError(
            f"stage {stage.name} has its WAL outside of the data directory, where nothing records",
            "Drill it with both in one folder: leave out --waldir.",
        )
    with data.into("pg_tblspc") as spaces:
        if names := spaces.names():
            raise PlanError(
                f"stage {stage.name} has tablespace {names[0]} outside of the data directory,"
                " where nothing records",
            )


def _drop_spare_segments(data: Folder, target: OwnTarget, build: str | None) -> None:
    """Remove segments that were kept for reuse: else each disk would be larger by a gigabyte.

    Raises:
        TargetError: The cluster does not tell which it uses.
    """
    program = target.binaries_of(build).program("pg_controldata")
    told = run([program, "-D", "."], user=target.user, folder=data.handle).stdout
    lines = [line for line in told.splitlines() if line.startswith(_LAST_SEGMENT)]
    if not lines:
        raise TargetError(f"pg_controldata does not tell the {_LAST_SEGMENT.lower()}")
    last = lines[0].removeprefix(_LAST_SEGMENT).strip()
    with data.into("pg_wal") as wal:
        spare = [name for name in wal.names() if len(name) == len(last) and name > last]
        if spare:
            run(["rm", "-f", "--", *spare], user=target.user, folder=wal.handle)
