"""A null server beside us: started, asked, stopped. Its own side is `drive.null_server`."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno.folders import scratch
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError
from pgdyno.model.record_json import JsonObject, from_plain
from pgdyno.model.workload import Workload
from pgdyno.shell import Process, start
from pgdyno.workload.spec import workload_spec

_PORT = 5432
_END_S = 5.0


@dataclass(frozen=True, slots=True)
class Hold:
    """Time that the null server lets each round trip take: `workers` of them at the same time."""

    workers: int
    service_ms: float  # mean; the timer rounds up to whole ms
    exponential: bool = False


@dataclass(frozen=True, slots=True)
class NullStatus:
    """What a null server has done so far: `NullStatus` of the core's contract."""

    port: int
    connections: int  # begun
    executions: int  # answered
    batches: int  # answered, each one round trip
    threads: tuple[int, ...]  # their numbers at the kernel


@dataclass(frozen=True, slots=True)
class Account:
    """What the null server's threads got from the scheduler up to an instant."""

    at_s: float  # of the steady clock
    wanted_s: tuple[float, ...]  # running, or waiting for a CPU; by thread


@dataclass(frozen=True, slots=True)
class NullServer:
    """A null server that runs."""

    connection: Connection
    process: Process

    def status(self) -> NullStatus:
        """What it has done so far.

        Raises:
            DriveError: It ended.
        """
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise _ended(self.process) from error
        return from_plain(NullStatus, _answer(self.process))

    def account(self) -> Account | None:
        """Times of its threads; None where the kernel does not tell."""
        threads = self.status().threads
        tasks = Path("/proc") / str(self.process.pid) / "task"
        try:
            texts = [(tasks / str(thread) / "schedstat").read_text() for thread in threads]
        except OSError:
            return None
        wanted = tuple(sum(int(word) for word in text.split()[:2]) / 1e9 for text in texts)
        return Account(time.monotonic(), wanted)


def null_spec(folder: str, workload: Workload, threads: int, hold: Hold | None) -> JsonObject:
    """A null server as the core wants it: `NullSpec` of its contract."""
    spec: JsonObject = {
        "host": folder,
        "port": _PORT,
        "threads": threads,
        "workload": workload_spec(workload),
    }
    if hold is not None:
        spread = "exponential" if hold.exponential else "constant"
        spec["hold"] = {
            "workers": hold.workers, "service_ms": hold.service_ms, "spread": spread
        }  # fmt: skip
    return spec


@contextmanager
def null_server(
    workload: Workload,
    *,
    threads: int = 1,
    cpus: Sequence[int] = (),
    hold: Hold | None = None,
) -> Iterator[NullServer]:
    """Run a null server for a workload on a Unix socket in a folder of its own.

    Args:
        workload: Its statements are answered.
        threads: Of the server; connections are dealt to them.
        cpus: Those that it may use; none: as this process.
        hold: Time that round trips take; None: none.

    Raises:
        DriveError: It cannot start, e.g. because a statement has no plausible answer.
    """
    with scratch(Path("/tmp"), "pgdyno-null-") as own:  # noqa: S108  a folder of ours in it
        folder = str(own.path)
        spec = null_spec(folder, workload, threads, hold)
        # `setpriv` becomes the program it starts: the process id is the server's.
        process = start([sys.executable, "-m", "pgdyno.drive.null_server"], pipes=True,
                        dies_with_us=signal.SIGTERM)  # fmt: skip
        try:
            order: JsonObject = {"spec": spec, "cpus": [*cpus] or None}
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
            _answer(process)
            yield NullServer(Connection(folder, _PORT, "pgdyno", "null"), process)
        except BrokenPipeError as error:
            raise _ended(process) from error
        finally:
            process.close_pipes()
            if process.wait(_END_S) is None:
                process.kill()


def _answer(process: Process) -> Mapping[str, object]:
    line = process.stdout.readline()
    if not line:
        raise _ended(process)
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise DriveError(answer["error"]["fact"], answer["error"]["hint"])
    return answer


def _ended(process: Process) -> DriveError:
    return DriveError(f"the null server ended with code {process.wait(_END_S)}")
