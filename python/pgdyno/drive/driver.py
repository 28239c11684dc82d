"""The driver process: started with a spec, watched, stopped.

The driver runs apart (`python -m pgdyno.drive.worker`), so that neither samplers nor the garbage
collector share its address space, and its crash is a failed trial, not a lost plan.
"""

from __future__ import annotations

import json
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from pgdyno.drive.checkpoint_pace import OPEN, STOP, Pace
from pgdyno.drive.fleet import drive_fleet, require_reachable
from pgdyno.drive.listening import PASS_MAX_S, Listening, waits
from pgdyno.drive.result import Driven, parse_result
from pgdyno.drive.spec import Part, drive_spec
from pgdyno.folders import Folder
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError
from pgdyno.model.plan import Protocol, Workload
from pgdyno.model.progress import DriveProgress
from pgdyno.model.proof import Slowdown
from pgdyno.model.record_json import from_plain
from pgdyno.shell import Process, start

__all__ = ["Driven", "drive", "parse_result"]

_PACE_S = 0.1  # how often a pace is asked
_SILENCE_S = 120.0  # the worker speaks twice a second; longer silence means that it hangs


@dataclass(frozen=True, slots=True)
class LedgerFile:
    """A file that the driver makes, and writes down in how each of its requests ended."""

    folder: Folder  # of ours, that nobody else can change
    name: str


@dataclass(frozen=True, slots=True)
class Wishes:
    """How the driver itself runs, and where it goes beside the connection."""

    cpus: Sequence[int] = ()  # that it may use; none: as this process
    slowdowns: Sequence[Slowdown] = ()  # when exchanges are made slower on purpose, by time
    ledger: LedgerFile | None = None  # None: no account is kept of single requests
    parts: Sequence[Part] = ()  # of several servers; none: one has all of the workload
    replica: Connection | None = None  # that answers reads, if the workload has any for it

    @property
    def further(self) -> tuple[Connection, ...]:
        """Where it goes beside the connection."""
        parts = tuple(part.connection for part in self.parts)
        return parts if self.replica is None else (*parts, self.replica)


_NONE = Wishes()


def drive(
    connection: Connection,
    workload: Workload,
    protocol: Protocol,
    c_load: dict[str, int] | None,
    progress: Callable[[DriveProgress], None] = lambda _: None,
    wishes: Wishes = _NONE,
    pace: Pace | None = None,
    started: Callable[[int], None] = lambda _: None,
) -> Driven:
    """Drive one window, from one process or from the hosts of the protocol's fleet.

    Args:
        connection: The loaded database.
        workload: What is driven, with how many terminals over how many connections.
        protocol: Seconds of warm-up, window and drain.
        c_load: The constants that the data were loaded with.
        progress: Told twice a second.
        wishes: How the driver itself runs, and which servers have a part of the workload each.
        pace: Says when warm-up and window end; None: as the protocol has it, by the clock.
        started: Told the driver's process, or each of this host.

    Raises:
        DriveError: The driver failed, crashed, or fell silent.
        KeyboardInterrupt: Ctrl-C; the driver is stopped first.
    """
    spec = drive_spec(connection, workload, protocol, c_load, wishes.slowdowns, wishes.parts,
                      wishes.replica)  # fmt: skip
    if pace is not None:
        spec |= {"warmup_s": pace.warmup_max_s, "window_s": pace.window_max_s}
    if protocol.fleet is not None:
        assert wishes.ledger is None, "a ledger is the account of one process"
        for one in (connection, *wishes.further):
            require_reachable(protocol.fleet, one)
        return drive_fleet(protocol.fleet, spec, workload, protocol.drain_s, progress, pace,
                           started)  # fmt: skip
    folder = None
    if wishes.ledger is not None:
        wishes.ledger.folder.require_closed()
        spec["ledger"], folder = wishes.ledger.name, wishes.ledger.folder.handle
    pinned = ["--cpus", ",".join(map(str, wishes.cpus))] if wishes.cpus else []
    # -P: no module is looked for in the folder where it starts.
    process = start([sys.executable, "-P", "-m", "pgdyno.drive.worker", *pinned], pipes=True,
                    folder=folder, dies_with_us=signal.SIGTERM)  # fmt: skip
    try:
        # On its standard input, so that a password stands on no command line.
        process.stdin.write(json.dumps(spec) + "\n")
        process.stdin.close()
        started(process.pid)
        last = _watch(process, progress, pace)
    except BrokenPipeError as error:
        raise DriveError(f"the driver ended with code {process.wait(5)}") from error
    finally:
        if process.code() is None:
            process.signal(signal.SIGTERM)
            if process.wait(protocol.drain_s + 5) is None:
                process.kill()
        process.close_pipes()
    driven = parse_result(last)
    if pace is None:
        return driven
    if pace.has_stopped and driven.outcome == "stopped":
        # As it was asked for.
        ended = "complete" if driven.given_up_s is None else "unanswered"
        driven = replace(driven, outcome=ended)
    return replace(driven, followed=pace.followed(driven.window_ns))


def _watch(
    process: Process, progress: Callable[[DriveProgress], None], pace: Pace | None = None
) -> Mapping[str, object]:
    lines: queue.Queue[str | None] = queue.Queue()

    def pump() -> None:
        with suppress(ValueError):  # we have given up and closed it
            for line in process.stdout:
                lines.put(line)
        lines.put(None)

    threading.Thread(target=pump, name="pgdyno driver output", daemon=True).start()
    return _last(process, lines, progress, pace)


def _last(
    process: Process,
    lines: queue.Queue[str | None],
    progress: Callable[[DriveProgress], None],
    pace: Pace | None,
) -> Mapping[str, object]:
    listening, heard_s, phase = Listening(), 0.0, ""
    while True:
        if pace is not None and (due := pace.turn(phase, time.monotonic())):
            process.signal({OPEN: signal.SIGUSR1, STOP: signal.SIGTERM}[due])
        try:
            line = lines.get(timeout=PASS_MAX_S / 2 if pace is None else _PACE_S)
        except queue.Empty:
            listening.look()
            if listening.seconds - heard_s < _SILENCE_S or waits(process.stdout):
                continue
            raise DriveError(f"the driver said nothing for {_SILENCE_S:.0f} s") from None
        listening.look()
        heard_s = listening.seconds
        if line is None:
            raise DriveError(f"the driver ended with code {process.wait(5)} and without a result")
        message = json.loads(line)
        if "error" in message:
            error = message["error"]
            raise DriveError(error["fact"], error.get("hint"))
        if "result" in message:
            result: Mapping[str, object] = message["result"]
            return result
        state = from_plain(DriveProgress, message)
        phase = state.phase
        progress(state)
