"""Runs perf: recordings of some processes, and what `perf script` makes of them.

Sampled is by the software clock cpu-clock, which every machine has. A recording holds pieces of
stacks, and so perhaps secrets: it lies in a folder of ours, in memory, and is gone with it. It is
read with the rights of who owns the processes in it, for perf opens the files that these have
mapped, and a parser of strangers' files is nothing that root runs.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pgdyno.folders import Folder, owner_of
from pgdyno.model.errors import TargetError
from pgdyno.model.profile import DRIVER, SERVER, Unwinding
from pgdyno.profiler.perf_script import FIELDS
from pgdyno.shell import OsUser, Process, run, start

# Bytes of a stack that are copied for unwinding by DWARF. With 8 KiB, one session's stack in eight
# was cut, with 32 KiB none; the driver's frames are larger (docs/numbers.md).
STACK_BYTES = {SERVER: 32_768, DRIVER: 65_528}
_RATES_HZ = (99, 49, 19, 9, 5, 2)  # not round: nothing that beats once in 10 ms is met in step
_SAMPLES_MAX = 16_000
_END_S = 60.0
_FULL = "size limit reached"
_REFUSAL = re.compile(r"Operation not permitted|Permission denied|No permission to|Access to perf")
_SCRIPT_S = 600.0
_SAID_CHARS = 300
_ATTEMPTS = 3
_REFUSED_S = 0.3  # a perf that may not sample, or finds nobody, has ended by then
# perf reads no settings of the user's, and asks nobody for symbols.
_ALONE = {"PERF_CONFIG": "/dev/null", "DEBUGINFOD_URLS": "", "HOME": "/nonexistent", "PAGER": "cat"}


def rate_hz(cpus: int, seconds: int) -> int:
    """Samples a second of each CPU, so that a recording stays below 512 MiB."""
    fitting = [rate for rate in _RATES_HZ if rate * cpus * seconds <= _SAMPLES_MAX]
    return fitting[0] if fitting else _RATES_HZ[-1]


@dataclass(frozen=True, slots=True)
class RecordingSpec:
    """What is recorded."""

    who: str  # names the recording
    event: str
    pids: tuple[int, ...]  # with what they start; none: the kernel's side of the whole host
    unwinding: Unwinding
    bytes_max: int = 1 << 30  # of the recording; perf ends when it is full


class Recording:
    """A recording under way, in a file of a folder of ours."""

    def __init__(
        self, perf: Path, what: RecordingSpec, hz: int, folder: Folder, reader: OsUser
    ) -> None:
        """Begin to record.

        Args:
            perf: The program.
            what: Whom.
            hz: Samples a second.
            folder: Holds the file, and what perf says.
            reader: Who will read it: the owner of the processes.

        Raises:
            TargetError: perf cannot be started.
        """
        self._perf, self._folder, self._reader = perf, folder, reader
        self._data = f"{what.who}.data"
        self._log = f"{what.who}.log"
        log = folder.log(self._log)
        try:
            self._process: Process = start(
                [perf, *record_arguments(what, hz, folder.path / self._data)],
                env=_ALONE, log=log, dies_with_us=signal.SIGINT,
            )  # fmt: skip
        finally:
            os.close(log)
        self.who = what.who
        self._has_stopped = False

    @classmethod
    def begun(
        cls, perf: Path, what: Callable[[], RecordingSpec], hz: int, folder: Folder, reader: OsUser
    ) -> Recording:
        """A recording that goes on: perf ends at once where a process has gone meanwhile.

        Args:
            perf: The program.
            what: Whom, asked anew for each attempt.
            hz: Samples a second.
            folder: Holds the file, and what perf says.
            reader: Who will read it.

        Raises:
            TargetError: perf cannot be started.
        """
        for _ in range(_ATTEMPTS):
            recording = cls(perf, what(), hz, folder, reader)
            if recording._process.wait(_REFUSED_S) is None or not recording._met_nobody():
                break
        return recording

    def _met_nobody(self) -> bool:
        return "No such process" in self._folder.read(self._log)

    def stop(self) -> None:
        """End it, so that its file is whole; `read` tells whether that went well."""
        if self._has_stopped:
            return
        self._has_stopped = True
        self._process.signal(signal.SIGINT)
        if self._process.wait(_END_S) is None:
            self._process.kill()

    def read(self) -> str:
        """What `perf script` prints of it. Call it after `stop`.

        Raises:
            TargetError: perf failed, then or now; its words are in the message.
        """
        # It ends with code 0 when all its processes have ended, and by our signal.
        code, said = self._process.code(), " ".join(self._folder.read(self._log).split())
        if code not in (0, -signal.SIGINT) or _FULL in said or not self._folder.has(self._data):
            raise failure(code, said)
        owner = owner_of(self._reader)
        handle = self._folder.open(self._data)
        try:
            if owner is not None:
                os.fchown(handle, -1, owner.gid)
                os.fchmod(handle, 0o640)
        finally:
            os.close(handle)
        data = self._folder.path / self._data
        done = run(
            [self._perf, "script", "-i", data, *_SCRIPT], user=self._reader, env=_ALONE,
            timeout_s=_SCRIPT_S, dies_with_us=signal.SIGKILL, check=False,
        )  # fmt: skip
        if done.code != 0:
            raise TargetError(
                f"perf script ended with code {done.code}: {done.stderr.strip()[-_SAID_CHARS:]}"
            )
        return done.stdout


def failure(code: int | None, said: str) -> TargetError:
    """What a recording that came to nothing is called; perf's words where they are not known."""
    if _FULL in said:
        return TargetError(
            "the recording of perf reached its size limit", "Take a shorter profile: profile_s."
        )
    if _REFUSAL.search(said):
        return TargetError(
            "the system refuses perf_event_open, as containers and security modules do",
            "Let it through: of a container, `--cap-add PERFMON`, and `--security-opt` with a"
            " seccomp profile that allows perf_event_open.",
        )
    said = said[:_SAID_CHARS].rstrip(".") or "it said nothing"
    return TargetError(f"perf record ended with code {code}: {said}")


_SCRIPT = ["-F", FIELDS, "--ns", "--no-inline", "--show-lost-events", "--force"]


def record_arguments(what: RecordingSpec, hz: int, data: Path) -> list[str]:
    """The arguments of perf for a recording."""
    stacks = "fp" if what.unwinding == "fp" else f"dwarf,{STACK_BYTES[what.who]}"
    whom = ["-p", ",".join(map(str, what.pids))] if what.pids else ["-a"]
    return [
        "record", "-q", "--no-buildid", "--no-buildid-cache", "--clockid", "CLOCK_MONOTONIC",
        "-e", what.event, "-F", str(hz), "--call-graph", stacks, *whom,
        "--max-size", f"{what.bytes_max >> 10}K", "-o", str(data),
    ]  # fmt: skip


def version(perf: Path) -> str:
    """What perf calls itself, e.g. `perf version 6.1.187`.

    Raises:
        TargetError: It does not run.
    """
    return run([perf, "--version"], env=_ALONE, timeout_s=30).stdout.strip()
