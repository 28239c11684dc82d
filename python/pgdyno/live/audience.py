"""A listener that shows a run to whoever looks: it feeds the worker, and never waits for it.

What is told goes on to the listener behind it first. A thread of its own writes to the pipe, twice
a second at most, so that a worker that hangs delays nobody; one that dies is a note.
"""

from __future__ import annotations

import secrets
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TypeVar

from pydantic import ValidationError

from pgdyno.live.address import Address
from pgdyno.live.message import Began, Cost, End, Message, Outcome, Serving, Wanted
from pgdyno.live.run_progress import Moment, RunProgress
from pgdyno.model.errors import Interrupted, PgdynoError, TargetError
from pgdyno.model.glance import Glance
from pgdyno.model.progress import (
    DriveProgress,
    Event,
    LookTaken,
    Noted,
    PhaseBegun,
    PointMeasured,
    RunBegun,
    TrialEnded,
)
from pgdyno.model.record_json import from_json, to_json
from pgdyno.model.system_errors import SystemFailure
from pgdyno.model.text import one_line
from pgdyno.model.units import seconds_text
from pgdyno.shell import Process, start

T = TypeVar("T")
PACE_S = 0.5  # no more often is anything told
_TICK_S = 1.0  # so often is the time left told where nothing happens
_BEGINS_S = 120.0  # for the worker to begin: a busy machine is no failure
_ENDS_S = 10.0  # for its viewers to be told of the end
_WAITING_MAX = 200  # that wait for a worker that does not read; then the oldest go
_TOKEN_BYTES = 16
_NOW = 0.0
_WORKER = "the process that shows the run"


class Audience:
    """A listener of a run with a worker behind it; use it as a context.

    Args:
        onward: The listener that is told too, and first.
        page: Where the page is served; None: there is none.
        metrics: Where OpenMetrics are served; None: there are none.

    Raises:
        PgdynoError: From entering it: the worker cannot begin, e.g. since the port is in use.
    """

    def __init__(
        self, onward: Callable[[Event], None], page: Address | None, metrics: Address | None
    ) -> None:
        self._onward = onward
        self._wanted = Wanted(secrets.token_hex(_TOKEN_BYTES), page, metrics)
        self._process: Process | None = None
        self._serving = Serving()
        self._progress = RunProgress()
        self._lock = threading.Condition()
        self._notes: deque[str] = deque(maxlen=_WAITING_MAX)
        self._past: deque[Moment] = deque(maxlen=_WAITING_MAX)  # ends of windows
        self._glances: deque[Glance] = deque(maxlen=_WAITING_MAX)
        self._began: Began | None = None
        self._untold: Began | None = None  # the same, until the worker knows it
        self._end: End | None = None
        self._stored = self._changed = False
        self._thread: threading.Thread | None = None
        self._told_of_its_end = False
        self.cost: Cost | None = None

    # -- where it is -------------------------------------------------------------------------

    @property
    def page_url(self) -> str | None:
        """The page's address on this machine, with the token that opens it."""
        at = self._serving.page
        return f"http://{at.from_here}/?token={self._wanted.token}" if at else None

    @property
    def metrics_url(self) -> str | None:
        """The address of the metrics on this machine."""
        at = self._serving.metrics
        return f"http://{at.from_here}/metrics" if at else None

    @property
    def open_to_others(self) -> tuple[str, ...]:
        """Addresses of it that other machines may reach, where nothing is encrypted."""
        both = (self._serving.page, self._serving.metrics)
        return tuple(str(one) for one in both if one and not one.is_loopback)

    # -- begin and end -----------------------------------------------------------------------

    def __enter__(self) -> Self:
        process = start([sys.executable, "-m", "pgdyno.live.worker"], pipes=True)
        try:
            process.stdin.write(to_json(self._wanted) + "\n")
            process.stdin.flush()
            self._serving = _answer(process, Serving, _BEGINS_S)
            if self._serving.fact is not None:
                raise SystemFailure(self._serving.fact, self._serving.hint)
        except BrokenPipeError:
            _end_now(process)
            raise TargetError(f"{_WORKER} ended with code {process.code()}") from None
        except BaseException:
            _end_now(process)
            raise
        self._process = process
        self._thread = threading.Thread(
            target=self._feed, args=(process.stdin,), name="pgdyno audience", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close(error)

    def close(self, error: BaseException | None = None) -> None:
        """Tell viewers how the run ended, and end the worker; again it does nothing.

        Args:
            error: What ended the run; None: it came to its end.
        """
        process, self._process = self._process, None
        if process is None:
            return
        try:
            self._close(process, _end_of(error, self._began))
        finally:
            _end_now(process)

    def _close(self, process: Process, end: End) -> None:
        with self._lock:
            self._end = end
            self._lock.notify()
        assert self._thread is not None
        self._thread.join(_ENDS_S)
        if self._thread.is_alive():
            process.kill()  # it does not read; the thread's write ends by it
            self._thread.join(_ENDS_S)
        elif process.wait(_ENDS_S) == 0:
            self.cost = _answer(process, Cost, _NOW)
        if self.cost is None:
            self._tell_of_its_end(process)
        else:
            self._onward(Noted(_cost_text(self.cost)))

    # -- being told --------------------------------------------------------------------------

    def __call__(self, event: Event) -> None:
        """Be told, and tell."""
        self._onward(event)
        with self._lock:
            if isinstance(event, PhaseBegun) and isinstance(self._progress.state, DriveProgress):
                # What the driver counted last, which counters would lack for good.
                self._past.append(self._progress.moment())
            self._progress.hear(event)
            self._changed = True
            self._note(event)
            self._lock.notify()
        if self._process is not None and self._process.code() is not None:
            self._tell_of_its_end(self._process)

    def glance(self, seen: Glance) -> None:
        """Be shown what is sampled in a trial that runs, and tell; it goes with what is told next.

        Nobody waits for it, and without a process behind it nothing is kept.
        """
        if self._process is not None:
            self._glances.append(seen)

    def _note(self, event: Event) -> None:
        """Keep what the run's progress does not tell."""
        match event:
            case RunBegun():
                self._began = self._untold = Began(str(event.path.absolute()))
                self._notes.extend(event.notes)
            case TrialEnded():
                self._stored = True
            case LookTaken():
                self._notes.extend(event.lines)
            case Noted():
                self._notes.append(event.text)
            case PointMeasured():
                kept = "kept" if event.kept else "broken"
                self._notes.append(f"load {event.point.level:g}: the limit was {kept}")
            case _:
                pass

    def _tell_of_its_end(self, process: Process) -> None:
        if not self._told_of_its_end:
            self._told_of_its_end = True
            code = process.wait(_ENDS_S)
            self._onward(
                Noted(f"{_WORKER.capitalize()} ended by itself, with code {code}. The run goes on.")
            )

    def _feed(self, pipe: IO[str]) -> None:
        """In a thread of its own: write what there is to tell."""
        try:
            while True:
                lines, is_last = self._due()
                pipe.write("".join(f"{to_json(one)}\n" for one in lines))
                pipe.flush()
                if is_last:
                    pipe.close()
                    return
                with self._lock:
                    self._lock.wait_for(lambda: self._end is not None, PACE_S)
        except (OSError, ValueError):  # it is gone, or we have given up and closed the pipe
            return

    def _due(self) -> tuple[list[Message], bool]:
        """What is to be told next, and whether it is the last."""
        with self._lock:
            self._lock.wait_for(lambda: self._end is not None or self._changed, _TICK_S)
            now = Message(began=self._untold, moment=self._progress.moment(), stored=self._stored)
            past, notes = [*self._past], [*self._notes]
            lines = [Message(moment=one) for one in past]
            lines += [now, *(Message(note=one) for one in notes)]
            while self._glances:  # who shows them waits for nobody, and may add one meanwhile
                lines.append(Message(glance=self._glances.popleft()))
            self._past.clear()
            self._notes.clear()
            self._untold = None
            self._changed = self._stored = False
            if self._end is not None:
                lines.append(Message(end=self._end))
            return lines, self._end is not None


def _answer(process: Process, kind: type[T], patience_s: float) -> T:
    """The next line that the worker says.

    Raises:
        TargetError: It says none, or nonsense.
    """
    deadline = time.monotonic() + patience_s
    ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
    line = process.stdout.readline() if ready else ""
    if not line:
        code = process.wait(_ENDS_S) if ready else None
        said = f"ended with code {code}" if ready else f"said nothing for {patience_s:.0f} s"
        raise TargetError(f"{_WORKER} {said}")
    try:
        return from_json(kind, line)
    except ValidationError as error:
        raise TargetError(f"{_WORKER} said {one_line(line)}") from error


def _end_now(process: Process) -> None:
    process.kill()
    with suppress(BrokenPipeError):  # what it has not read is lost with it
        process.close_pipes()


def _end_of(error: BaseException | None, began: Began | None) -> End:
    report = str(Path(began.path).with_suffix(".html")) if began else None
    outcome: Outcome
    match error:
        case None:
            return End("ended", "The run has ended.", report)
        case Interrupted() | KeyboardInterrupt():
            outcome, text = "stopped", "The run was stopped; finished trials are kept."
        case PgdynoError():
            outcome, text = "failed", f"The run failed: {error.line}"
        case _:
            outcome, text = "failed", f"The run failed: {type(error).__name__}"
    return End(outcome, text)


def _cost_text(cost: Cost) -> str:
    share = cost.cpu_s / cost.seconds if cost.seconds else 0.0
    return (
        f"{_WORKER.capitalize()} took {cost.cpu_s:.2f} s of CPU in {seconds_text(cost.seconds)},"
        f" {share:.2%} of one processor."
    )
