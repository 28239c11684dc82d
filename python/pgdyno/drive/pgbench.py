"""The real pgbench as the driver: the same plan, its output read into the same records.

One run of pgbench, from the start of the warm-up to a second after the window. Its log of every
transaction is cut at the window's begin and end, which lie within the run: no transaction of the
warm-up counts, none is missing, and no session is opened within the window. What pgbench itself
sums up is of the whole run and kept apart (`PgbenchSaid`).

The log takes about 45 bytes a transaction, in memory where there is room (`/dev/shm`), so that it
writes to no device of the server. It must hold exactly as many transactions as pgbench says it
performed. Its times are whole µs.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import IO, BinaryIO

from psycopg.conninfo import make_conninfo

from pgdyno.drive.listening import Listening
from pgdyno.drive.pgbench_log import Form, Log
from pgdyno.drive.pgbench_output import Progress, error_of, progress_of, summary
from pgdyno.drive.process_cost import Sample, cost, sample
from pgdyno.drive.result import Driven
from pgdyno.folders import Folder, owner_of, scratch, write_file
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError
from pgdyno.model.plan import Protocol, Workload
from pgdyno.model.progress import DriveProgress, PgbenchProgress
from pgdyno.model.system_errors import little_room
from pgdyno.model.wording import plural
from pgdyno.plan.schema.pgbench_limits import BUILTIN, unmapped
from pgdyno.shell import OsUser, Process, run, start
from pgdyno.workload.spec import kind_names

_NS = 1_000_000_000
_AFTER_S = 1  # pgbench runs for whole seconds, and must not end before the window
_POLL_S = 0.1
_SILENCE_S = 120.0  # it speaks every second; longer silence means that it hangs
_TRIES = 11  # as our driver: ten repetitions after 40001 and 40P01
_TRIES_SINCE = 15  # major version; before, such an error ends a client
_ROOM_BYTES = 1 << 30  # of /dev/shm, to hold the log
_STATEMENTS = {"tpcb": 7, "simple-update": 5, "select-only": 1}  # each in a round trip of its own
_SAYS_NOTHING = {  # defaults that our libpq tells, with names that older ones do not know
    "sslcertmode": "allow", "load_balance_hosts": "disable", "sslnegotiation": "postgres",
    "min_protocol_version": "3.0", "require_auth": "",
}  # fmt: skip
_LOGS = "log"
_CLIENTS_PER_THREAD = 4  # as our driver where nobody says how many threads

Tell = Callable[[DriveProgress], None]


def drive_pgbench(
    program: Path,
    connection: Connection,
    workload: Workload,
    protocol: Protocol,
    progress: Tell = lambda _: None,
    user: OsUser | None = None,
    started: Callable[[int], None] = lambda _: None,
) -> Driven:
    """Drive one window by pgbench.

    Args:
        program: pgbench.
        connection: The loaded database.
        workload: What is driven.
        protocol: Seconds of warm-up, window and drain.
        progress: Told every second.
        user: Who runs it; None: we do, since a server of others may ask who we are.
        started: Told pgbench's process.

    Raises:
        DriveError: pgbench cannot do what is asked, failed, or fell silent.
        KeyboardInterrupt: Ctrl-C; pgbench is stopped first, and its files are removed.
    """
    for one in unmapped(workload):
        raise DriveError(f"{one.key}: {one.text}", f"Allowed: {one.allowed}.")
    version = run([program, "--version"], user=user).stdout.strip()
    with ExitStack() as stack:
        folder = stack.enter_context(scratch(_log_folder(), "pgdyno-pgbench-"))
        _close_to_others(folder, user)
        logs = folder.make(_LOGS, 0o700, owner_of(user) if user else None)
        stack.enter_context(logs)
        args = arguments(connection, workload, protocol, folder.path, _major(version))
        output = folder.log("output")
        try:
            process = start([program, *args], user=user, env=_secrets(connection), log=output,
                            dies_with_us=signal.SIGTERM)  # fmt: skip
        finally:
            os.close(output)
        started(process.pid)
        watched = _Watched(workload, protocol, logs, stack, progress)
        with _room_told(folder):
            try:
                with os.fdopen(folder.open("output"), encoding="utf-8", errors="replace") as text:
                    watched.watch(process, text)
            finally:
                process.signal(signal.SIGTERM)
                if process.wait(5) is None:
                    process.kill()
            return _driven(watched, version)


@contextmanager
def _room_told(folder: Folder) -> Iterator[None]:
    """Tell of missing room: pgbench does not, and the log or output that it left looks broken."""
    try:
        yield
    except DriveError as error:
        place = folder.path.parent
        if not (room := little_room(place, shutil.disk_usage(place).free)):
            raise
        hint = f"Make room in {place}, or make the window shorter: the log of pgbench lies there."
        raise DriveError(f"{error.fact}{room}", hint) from error


def _close_to_others(folder: Folder, user: OsUser | None) -> None:
    """Scripts are nobody's business but that of who runs them."""
    if user is not None and user.is_other:
        os.fchown(folder.handle, -1, user.gid)
        os.fchmod(folder.handle, 0o750)
    else:
        os.fchmod(folder.handle, 0o700)


def arguments(
    connection: Connection, workload: Workload, protocol: Protocol, folder: Path, major: int
) -> list[str]:
    """The arguments of pgbench; script files are written into the folder.

    Args:
        connection: The loaded database; its password is not among the arguments.
        workload: What is driven.
        protocol: Seconds of warm-up and window.
        folder: Where the log and the scripts go.
        major: Version of pgbench.
    """
    args = [
        "--no-vacuum",
        f"--client={workload.connections}",
        f"--jobs={_threads(workload)}",
        f"--time={ceil(protocol.warmup_s + protocol.window_s) + _AFTER_S}",
        # A pooler that does not follow names of statements gets unnamed ones.
        f"--protocol={'prepared' if connection.prepare == 'named' else 'extended'}",
        f"--random-seed={workload.seed}",
        "--progress=1",
        "--progress-timestamp",
        "-r",  # latencies of statements; its long name is another one since 15
        "--log",
        f"--log-prefix={folder / _LOGS / 'log'}",
    ]
    if workload.arrivals.kind == "open":
        args.append(f"--rate={workload.arrivals.per_s:f}")
    if major >= _TRIES_SINCE:
        args += [f"--max-tries={_TRIES}", "--failures-detailed"]
    if workload.script is None:
        args.append(f"--builtin={BUILTIN[workload.kind]}")
    else:
        args.append(f"--scale={workload.data.scale}")
        for name, value in workload.script.variables.items():
            word = str(value).lower() if isinstance(value, bool) else value
            args.append(f"--define={name}={word}")
        for number, file in enumerate(workload.script.files):
            own = folder / f"{number}.sql"  # not the user's name: an @ begins a weight there
            write_file(own, file.text)
            args.append(f"--file={own}@{file.weight:.0f}")
    return [*args, _conninfo(connection)]


def _conninfo(connection: Connection) -> str:
    given = connection.arguments()
    for name in ("password", "prepare_threshold"):
        given.pop(name, None)
    return make_conninfo(**{
        name: value for name, value in given.items() if _SAYS_NOTHING.get(name) != value
    })  # fmt: skip


def _secrets(connection: Connection) -> dict[str, str]:
    """Variables of pgbench's environment: a password stands on no command line."""
    password = connection.arguments().get("password")
    if password is not None:
        return {"PGPASSWORD": password}
    # Several servers with different ones: libpq reads the same file again.
    return {name: os.environ[name] for name in ("PGPASSFILE",) if name in os.environ}


def _threads(workload: Workload) -> int:
    most = min(ceil(workload.connections / _CLIENTS_PER_THREAD), len(os.sched_getaffinity(0)))
    return workload.threads or most


def _major(version: str) -> int:
    found = re.search(r"\) (\d+)", version)
    if found is None:
        raise DriveError(f"version text {version!r} of pgbench is not understood")
    return int(found[1])


def _log_folder() -> Path:
    """A folder in memory if it has room, else where temporary files go."""
    memory = Path("/dev/shm")  # noqa: S108  the folder within is ours alone
    if memory.is_dir() and shutil.disk_usage(memory).free >= _ROOM_BYTES:
        return memory
    return Path("/tmp")  # noqa: S108  likewise


@dataclass(slots=True)
class _Watched:
    """A run of pgbench, as far as it has come."""

    workload: Workload
    protocol: Protocol
    folder: Folder  # of the logs, which belong to who runs it
    files: ExitStack
    tell: Tell
    begin_ns: int | None = None  # of the run, since the epoch; known with the first progress
    lines: list[str] = field(default_factory=list)  # printed, without the progress
    samples: list[Sample] = field(default_factory=list)
    logs: dict[str, BinaryIO] = field(default_factory=dict)  # of its threads, open
    failed: int = 0
    retries: int = 0

    @property
    def kinds(self) -> list[str]:
        """What the scripts are called."""
        script = self.workload.script
        return [self.workload.kind] if script is None else kind_names(script.files)

    @property
    def window_ns(self) -> tuple[int, int]:
        """Start and end of the window; known once the run has begun."""
        assert self.begin_ns is not None
        begin = self.begin_ns + round(self.protocol.warmup_s * _NS)
        return begin, begin + round(self.protocol.window_s * _NS)

    def watch(self, process: Process, text: IO[str]) -> None:
        """Read what it prints until it ends.

        Raises:
            DriveError: It failed, or does not end.
        """
        listening, heard_s = Listening(), 0.0
        rest = ""
        while True:
            code = process.code()  # asked first, so that nothing printed before its end is missed
            *lines, rest = (rest + text.read()).split("\n")
            for line in lines:
                self._hear(line)
                heard_s = listening.seconds
            if code is not None:
                break
            if found := sample(process.pid):
                self.samples.append(found)
            listening.look()
            if listening.seconds - heard_s > _SILENCE_S:
                raise DriveError(f"pgbench said nothing for {_SILENCE_S:.0f} s")
            self._check_end()
            time.sleep(_POLL_S)
        if code != 0:
            last = next((line for line in reversed(self.lines) if line.strip()), "nothing")
            raise DriveError(f"pgbench ended with code {code}, it said last: {last.strip()}")
        if self.begin_ns is None or len(self.samples) < 2:
            raise DriveError("pgbench ended before it had reported any progress")
        self._take_logs()

    def _take_logs(self) -> None:
        # Open files without names: should we be killed, their memory is free again.
        for name in self.folder.names():
            handle = self.folder.open(name, self.folder.facts.st_uid)
            self.logs[name] = self.files.enter_context(os.fdopen(handle, "rb"))
            self.folder.remove(name)

    def _hear(self, line: str) -> None:
        if found := progress_of(line):
            if self.begin_ns is None:
                self.begin_ns = round((found.at_s - 1) * _NS)
                self._take_logs()
            self._report(found)
        elif wrong := error_of(line):
            # The others would go on without the client that is gone: not the load of the plan.
            for number, name in enumerate(self.kinds):
                wrong = wrong.replace(f"{self.folder.path.parent}/{number}.sql", name)
            raise DriveError(f"pgbench failed: {wrong}")
        else:
            self.lines.append(line)

    def _report(self, found: Progress) -> None:
        self.failed += found.failed
        self.retries += found.retries
        begin, end = self.window_ns
        now = round(found.at_s * _NS)
        if now < begin:
            phase, until = "warmup", begin
        else:
            phase, until = ("window", end) if now < end else ("drain", now)
        self.tell(
            PgbenchProgress(
                phase,
                (until - now) / _NS,
                elapsed_s=0.0 if self.begin_ns is None else (now - self.begin_ns) / _NS,
                latency_s=found.latency_mean_s,
                last_second={"all": round(found.tps)},
                failed=self.failed,
                retries=self.retries,
            )
        )

    def _check_end(self) -> None:
        if self.begin_ns is None:
            return
        late_s = (time.time_ns() - self.window_ns[1]) / _NS - _AFTER_S - 1
        if late_s > self.protocol.drain_s:
            raise DriveError(
                f"pgbench did not end within {self.protocol.drain_s:g} s of its time",
                "A transaction takes too long; protocol.drain_s says how long it may.",
            )


def _driven(watched: _Watched, version: str) -> Driven:
    workload, window_ns = watched.workload, watched.window_ns
    assert watched.begin_ns is not None
    printed = summary(watched.lines, version, watched.kinds)
    form = Form(workload.arrivals.kind == "open", _major(version) >= _TRIES_SINCE)
    log = Log(watched.kinds, form, watched.begin_ns, window_ns)
    for name, file in watched.logs.items():
        log.read(name, file)
    if log.lines != printed.transactions + printed.failed:
        raise DriveError(
            f"pgbench's log holds {plural(log.lines, 'transaction', thousands=True)}, it performed"
            f" {printed.transactions + printed.failed}",
        )
    statements = _STATEMENTS.get(workload.kind)
    arrivals = workload.arrivals
    unlogged = log.unlogged(arrivals.per_s) if arrivals.per_s is not None else 0
    return Driven(
        outcome="unanswered" if unlogged else "complete",
        error=None,
        window_ns=window_ns,
        window_s=(window_ns[1] - window_ns[0]) / _NS,
        kinds=log.kinds(unlogged),
        client=cost(watched.samples, window_ns, len(os.sched_getaffinity(0))),
        audit=(),
        errors=log.errors(),
        reconnects=0,
        statements_per_transaction=statements,
        round_trips_per_transaction=statements,
        series=log.series(),
        gaps=(),
        parts=(),
        steps=(),
        late="",
        late_ns={},
        stream_digest=None,
        engine=version,
        pgbench=printed,
        drained_s=log.drained_s,
        unlogged=unlogged,
    )
