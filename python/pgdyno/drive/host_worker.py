"""The process on one of several hosts: it drives its part and keeps time with the head, or loads.

Run as `python -m pgdyno.drive.host_worker`, by whatever reaches the host. Standard output: lines of
JSON. First `{"hello": ...}` with what the host is; then, twice a second, the progress (of a load of
tables as `{"loading": ...}`), or `{"waiting": true}` while there is none; at the end
`{"result": ..., "around": ...}`, with what the host itself did while it drove
(`drive.surroundings`), or `{"error": ...}` as `drive.worker` has it. Standard input, a line each:

| line | what it does |
|---|---|
| `{"clock": n}` | is answered at once: `{"clock": n, "received_ns": ..., "sent_ns": ...}` |
| `{"spec": {...}}` | connects; with the passwords, which so stand on no command line |
| `{"load": {...}}` | copies its part of the rows, likewise; another may follow its result |
| `{"begin": [steady, unix]}` | the warm-up begins then, by this host's steady clock |
| `{"open": steady}` | the window begins then |
| `{"stop": steady}` | the window ends then; `{"stop": null}`: now, and a load of tables as well |
| anything else | is a sign of life |
| its end, or none for 4 s | the head is gone: the window ends now, a second later the process |

So a head that dies, or is cut off, leaves no load behind, however it was connected.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pgdyno import core
from pgdyno.drive.listening import Listening, waits
from pgdyno.drive.surroundings import Reading, between, read
from pgdyno.drive.worker import PROGRESS_S, STOP_SIGNALS, end_with, pause_s, told_of_failure
from pgdyno.model.fleet import Machine
from pgdyno.model.version import VERSION

LEFT_S = 1.0
"""So long a drain may last once the head is gone."""
SILENT_S = 4.0
"""A head says something twice a second; one that was silent for so long is gone."""
_TASKS = {"spec", "load"}
_LOAD_POLL_S = 0.1


def machine() -> Machine:
    """What this host is, as `hello` tells it."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Machine(
        pgdyno=VERSION,
        contract=core.VERSION,
        core=_core_hash(),
        python=platform.python_version(),
        kernel=platform.release(),
        boot=Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        network=os.readlink("/proc/self/ns/net"),
        cpus=len(os.sched_getaffinity(0)),
        descriptors_max=most,
    )


def _core_hash() -> str:
    with Path(sys.modules["pgdyno._core"].__file__ or "").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


class _Host:
    """What the head asks for, and how it is told; lines come in on a thread of their own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = threading.Condition(threading.RLock())
        self._task: tuple[str, str] | None = None
        self.run: core.Drive | core.Load | None = None
        self.left_s: float | None = None  # when the head was found gone
        self._listening = Listening()
        self._heard_s = 0.0  # when a line came last, of the time that is listened

    def say(self, text: str) -> None:
        """A line for the head, whole; BrokenPipeError when nobody listens."""
        with self._lock:
            print(text, flush=True)

    def listen(self) -> None:
        """Do what the head says, until it says no more."""
        try:
            for line in sys.stdin:
                received_ns = time.monotonic_ns()
                self._heard_s = self._listening.seconds
                message = json.loads(line)
                if "clock" in message:
                    answer = message | {"received_ns": received_ns}
                    self.say(json.dumps(answer | {"sent_ns": time.monotonic_ns()}))
                else:
                    self._do(message)
        except (BrokenPipeError, ValueError):
            pass  # as if it had ended: what says nothing that can be read is no head
        self._leave()

    def _do(self, message: dict[str, Any]) -> None:
        if (kind := next(iter(message.keys() & _TASKS), None)) is not None:
            with self._asked:
                self._task = kind, json.dumps(message[kind])
                self._asked.notify()
        elif self.run is not None:
            with suppress(core.CoreError):  # its result was taken
                _tell(self.run, message)

    def notice_silence(self) -> None:
        """Count the head as gone when it has said nothing for too long while we listened."""
        self._listening.look()
        silent_s = self._listening.seconds - self._heard_s
        if self.left_s is None and silent_s > SILENT_S and not waits(sys.stdin):
            self._leave()
            with suppress(OSError):  # one that stood still and goes on reads why it lost us
                print(f"the head said nothing for {SILENT_S:g} s", file=sys.stderr, flush=True)

    def _leave(self) -> None:
        self.left_s = time.monotonic()
        if self.run is not None:
            with suppress(core.CoreError):
                self.run.stop()
        with self._asked:
            self._asked.notify()

    def task(self) -> tuple[str, str] | None:
        """Wait for what to do and its spec; None: the head has gone before it told any."""
        with self._asked:
            while self._task is None and self.left_s is None:
                self._asked.wait(PROGRESS_S)
                self.notice_silence()
                self.say('{"waiting": true}')
            task, self._task = self._task, None
        return task

    def leave_late(self) -> None:
        """End the process when its work has not ended a while after the head was gone."""
        self.notice_silence()
        if self.left_s is not None and time.monotonic() - self.left_s > LEFT_S:
            # Its sockets close with it, and so the server's sessions end.
            os._exit(1)


def _tell(run: core.Drive | core.Load, message: dict[str, Any]) -> None:
    if isinstance(run, core.Load):
        if "stop" in message:
            run.stop()
    elif "begin" in message:
        run.begin(*message["begin"])
    elif "open" in message:
        run.open(message["open"])
    elif "stop" in message:
        run.stop(message["stop"])


def main() -> int:
    """Drive a part of a load once, or load parts until the head is gone.

    Returns:
        The exit code: 0 with a result, or without anything asked for; 1 with an error.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # also of the thread that listens
    host = _Host()
    return told_of_failure(lambda: _serve(host), host.say)


def _serve(host: _Host) -> None:
    host.say(json.dumps({"hello": asdict(machine())}))
    threading.Thread(target=host.listen, name="pgdyno head", daemon=True).start()
    while (task := host.task()) is not None and task[0] == "load":
        host.say(f'{{"result": {_load(host, task[1])}}}')
    if task is None:
        return
    result, around = _drive(host, task[1])
    host.say(f'{{"result": {result}, "around": {json.dumps(around)}}}')
    while host.left_s is None:  # the clocks are compared once more
        if signal.sigtimedwait(STOP_SIGNALS, PROGRESS_S / 10) is not None:
            return
        host.notice_silence()


class _Window:
    """Reads the host's counters when the window begins, and when it is over."""

    def __init__(self) -> None:
        self._readings: list[Reading] = []

    def hear(self, phase: str) -> None:
        """Be told what the driver does now."""
        due = {"window": 0, "drain": 1, "done": 1}.get(phase)
        if due == len(self._readings):
            self._readings.append(read())

    def around(self) -> dict[str, Any] | None:
        """What passed meanwhile; None: the window was too short to be heard of."""
        return asdict(between(*self._readings)) if len(self._readings) == 2 else None


def _drive(host: _Host, spec: str) -> tuple[str, dict[str, Any] | None]:
    window = _Window()

    def told(text: str, progress: dict[str, Any]) -> tuple[str, float]:
        window.hear(progress["phase"])
        return text, min(PROGRESS_S / 2, pause_s(progress))

    return _done(host, core.Drive(spec), told), window.around()


def _load(host: _Host, spec: str) -> str:
    return _done(host, core.Load(spec), lambda text, _: (f'{{"loading": {text}}}', _LOAD_POLL_S))


def _done(
    host: _Host,
    run: core.Drive | core.Load,
    told: Callable[[str, dict[str, Any]], tuple[str, float]],
) -> str:
    """The result of what is begun now and followed to its end.

    Args:
        host: Told how far it is, and asked whether the head is there.
        run: What is begun.
        told: Gives the line for the head, and seconds until it is asked for again.
    """
    run.start()
    host.run = run
    if host.left_s is not None:
        run.stop()
    told_s = 0.0
    while True:
        text = run.poll()
        progress = json.loads(text)
        line, wait_s = told(text, progress)
        if progress["phase"] == "done":
            return run.result()
        host.leave_late()
        if host.left_s is None and time.monotonic() - told_s >= PROGRESS_S:
            host.say(line)
            told_s = time.monotonic()
        if signal.sigtimedwait(STOP_SIGNALS, wait_s) is not None:
            run.stop()


if __name__ == "__main__":
    end_with(main)
