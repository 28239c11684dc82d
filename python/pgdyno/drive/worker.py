"""The driver process: reads a spec, drives, tells how far it is, prints the result.

Run as `python -m pgdyno.drive.worker`. Standard input: one line, the spec as JSON (so that no
password stands on a command line). Standard output: lines of JSON, twice a second the progress, at
the end `{"result": ...}` or `{"error": {"kind", "fact", "hint"}}`; the exit code is 1 after an
error. SIGUSR1 ends the warm-up early, so that the window begins. SIGTERM and SIGINT end the window
early; the result is still printed. `--cpus 0,1` keeps all its threads on these CPUs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from pgdyno import core
from pgdyno.model.errors import DriveError

PROGRESS_S = 0.5
_DRAIN_POLL_S = 0.02  # a drain mostly takes some ms; the result should not wait for the next tick
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_OPEN_SIGNAL = signal.SIGUSR1
_SIGNALS = (*STOP_SIGNALS, _OPEN_SIGNAL)


def main() -> int:
    """Drive once.

    Returns:
        The exit code: 0 with a result, 1 with an error.
    """
    if sys.argv[1:2] == ["--cpus"]:
        os.sched_setaffinity(0, {int(cpu) for cpu in sys.argv[2].split(",")})
    spec_json = sys.stdin.readline()
    # Taken by `sigtimedwait` where we sleep, so that no handler interrupts anything.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    say = partial(print, flush=True)
    return told_of_failure(lambda: say(f'{{"result": {_drive(spec_json)}}}'), say)


def told_of_failure(work: Callable[[], None], say: Callable[[str], None]) -> int:
    """Work, and say how it failed, if it did and anybody listens.

    Returns:
        The exit code: 0; 1 after an error, or when nobody listens any more.
    """
    try:
        try:
            work()
        except (core.CoreError, DriveError) as error:
            say(failure(error))
            return 1
    except BrokenPipeError:  # nothing to say, to nobody
        return 1
    return 0


def end_with(main: Callable[[], int]) -> NoReturn:
    """Do all that a process is for, and end it at once, whatever its other threads do.

    The interpreter's own end would wait for a thread that reads standard input, and for work of the
    core's that nobody asks for any more.
    """
    code = 1
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        pass  # nobody listens any more
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _drive(spec_json: str) -> str:
    run = core.Drive(spec_json)
    run.start()
    told_s = 0.0
    while True:
        text = run.poll()
        progress = json.loads(text)
        if progress["phase"] == "done":
            return run.result()
        if time.monotonic() - told_s >= PROGRESS_S:
            print(text, flush=True)
            told_s = time.monotonic()
        received = signal.sigtimedwait(_SIGNALS, pause_s(progress))
        if received is None:
            continue
        if received.si_signo == _OPEN_SIGNAL:
            run.open()
        else:
            run.stop()


def pause_s(progress: dict[str, Any]) -> float:
    """How long nothing has to be looked at, in seconds, by what was told last."""
    if progress["phase"] == "drain":
        return _DRAIN_POLL_S
    if progress["phase"] == "window":  # wake up when the drain begins
        return min(PROGRESS_S, max(float(progress["phase_left_s"]), _DRAIN_POLL_S))
    return PROGRESS_S


def failure(error: core.CoreError | DriveError) -> str:
    """The line that tells a failure; a DriveError is of a core of other sources."""
    told = ("drive", error.fact, error.hint) if isinstance(error, DriveError) else error.args
    return json.dumps({"error": dict(zip(("kind", "fact", "hint"), told, strict=True))})


if __name__ == "__main__":
    end_with(main)
