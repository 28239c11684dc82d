"""What the comparisons in this folder share: started commands, CPU of process trees, ratios.

Not part of the package: it needs psycopg and psutil only, so that it can measure any tool. This is
the only file here that starts processes.

Limits: CPU seconds come from the kernel's accounting (ticks of 10 ms on most kernels) and need the
server on this machine. A process that ends while its tree is read may be missed or counted twice
once; windows of seconds make that invisible.
"""
# ruff: noqa: TID251

from __future__ import annotations

import argparse
import getpass
import json
import os
import platform
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgdyno.model.system_errors import reason

POLL_S = 0.05


class Failure(Exception):
    """A comparison cannot go on: a fact with its values, and what may be done about it."""

    def __init__(self, fact: str, hint: str) -> None:
        super().__init__(fact)
        self.fact = fact
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Server:
    """Where the measured server listens; the password goes to commands by PGPASSWORD only."""

    parameters: Mapping[str, Any]

    @classmethod
    def parse(cls, conninfo: str) -> Server:
        """Read a libpq connection string or URL."""
        return cls(conninfo_to_dict(conninfo))

    def connect(self, database: str) -> psycopg.Connection[tuple[Any, ...]]:
        """Open an autocommit session that is told apart by its application name."""
        parameters = {**self.parameters, "dbname": database, "application_name": "benches"}
        return psycopg.connect(make_conninfo(**parameters), autocommit=True, connect_timeout=10)

    def places(self, database: str) -> dict[str, str]:
        """Values of the placeholders {conninfo} {host} {port} {user} {database} of a template."""
        shown = {key: value for key, value in self.parameters.items() if key != "password"}
        return {
            "conninfo": make_conninfo(**{**shown, "dbname": database}),
            "host": str(shown.get("host", os.environ.get("PGHOST", "localhost"))),
            "port": str(shown.get("port", os.environ.get("PGPORT", "5432"))),
            "user": str(shown.get("user", os.environ.get("PGUSER", getpass.getuser()))),
            "database": database,
        }

    def environment(self) -> dict[str, str]:
        """The environment of a started command."""
        password = self.parameters.get("password")
        return {**os.environ, **({"PGPASSWORD": str(password)} if password else {})}


def named(pairs: Iterable[str], option: str) -> dict[str, str]:
    """Split `NAME=VALUE` arguments.

    Raises:
        Failure: One has no `=`, an empty side, or a name given before.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals and value) or name in found:
            raise Failure(f"{option} got {pair!r}", f"Give each name once: {option} NAME=VALUE.")
        found[name] = value
    return found


def filled(template: str, places: Mapping[str, str]) -> list[str]:
    """Turn a command template into arguments; no shell is involved.

    Raises:
        Failure: It has an unknown placeholder or unbalanced quotes.
    """
    try:
        return [part.format_map(places) for part in shlex.split(template)]
    except (KeyError, ValueError, IndexError) as error:
        raise Failure(
            f"command {template!r} cannot be filled in: {error}",
            f"Known placeholders: {', '.join(sorted(places))}; write other braces twice.",
        ) from error


def cpu_s(root: psutil.Process) -> float:
    """User and system seconds of a process, its live descendants and all they have waited for."""
    total = 0.0
    for process in [*root.children(recursive=True), root]:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return float(total)


def host_busy_s() -> float:
    """Seconds that all cores of this machine have been busy, time stolen by its host included."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice)


def ipis() -> float:
    """Interrupts of this machine's CPUs by one another since boot."""
    kinds = ("Rescheduling interrupts", "Function call interrupts")
    lines = Path("/proc/interrupts").read_text().splitlines()
    words = [line.split()[1:] for line in lines if line.rstrip().endswith(kinds)]
    return float(sum(int(word) for line in words for word in line if word.isdigit()))


def postmaster(connection: psycopg.Connection[tuple[Any, ...]]) -> psutil.Process:
    """Find the server's first process.

    Raises:
        Failure: The server does not run on this machine, or in another process namespace.
    """
    row = connection.execute(
        "select pg_backend_pid(), extract(epoch from pg_postmaster_start_time())::float8"
    ).fetchone()
    assert row is not None
    try:
        parent = psutil.Process(row[0]).parent()
    except psutil.NoSuchProcess:
        parent = None
    # Start times agree to a second; a stranger with the same process number does not.
    if parent is None or abs(parent.create_time() - row[1]) > 5:
        raise Failure(
            f"server process {row[0]} is not one of this machine",
            "Run the comparison where the server runs: it reads the server's CPU time.",
        )
    return parent


class Command:
    """A started command with its output in a file; a context manager that leaves nothing behind."""

    def __init__(self, arguments: Sequence[str], output: Path, env: Mapping[str, str]) -> None:
        self.arguments = arguments
        self.output = output
        with output.open("wb") as sink:
            try:
                self._popen = subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=sink,
                    stderr=subprocess.STDOUT,
                    env=dict(env),
                    start_new_session=True,  # its whole tree can be signalled, and only it
                )
            except OSError as error:
                raise Failure(
                    f"command {arguments[0]!r} does not start: {reason(error)}",
                    "Check the path of the program.",
                ) from error
        self.process = psutil.Process(self._popen.pid)

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def code(self) -> int | None:
        """Exit code, or None while it runs."""
        return self._popen.poll()

    def cpu_s(self) -> float:
        """CPU seconds of its tree until now."""
        return cpu_s(self.process)

    def wait(self, seconds: float) -> int | None:
        """Wait for its end, at most so long; the exit code, or None."""
        with suppress(subprocess.TimeoutExpired):
            return self._popen.wait(seconds)
        return None

    def stop(self) -> None:
        """End the whole tree, first politely."""
        for number, patience_s in ((signal.SIGINT, 15), (signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            with suppress(ProcessLookupError):
                os.killpg(self._popen.pid, number)
            if self.wait(patience_s) is not None:
                break
        with suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)  # what a wrapper left behind

    def text(self) -> str:
        """All it has printed."""
        return self.output.read_text(errors="replace")

    def failure(self, what: str) -> Failure:
        """An error that ends with the last lines of its output."""
        tail = "\n".join(self.text().splitlines()[-8:])
        return Failure(
            f"{shlex.join(self.arguments)}: {what}, exit code {self.code()}; it said:\n{tail}",
            "Run the command by itself first.",
        )


def until(ready: Callable[[], bool], seconds: float) -> bool:
    """Poll until something is true or the time is over."""
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and extremes of n values, one per round."""

    median: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Summarize; at least one value."""
        return cls(statistics.median(values), min(values), max(values), len(values))

    def times(self, factor: float) -> Spread:
        """The same in another unit."""
        return Spread(self.median * factor, self.low * factor, self.high * factor, self.n)

    def text(self, digits: int) -> str:
        """As `median (low-high)`."""
        return f"{self.median:,.{digits}f} ({self.low:,.{digits}f}-{self.high:,.{digits}f})"


def confidence(n: int) -> float:
    """How sure it is that the extremes of n independent values enclose the true median."""
    return 1.0 - 2.0 ** (1 - n)


def rotated(names: Sequence[str], by: int) -> list[str]:
    """The order of a round: each name comes first equally often."""
    start = by % len(names)
    return [*names[start:], *names[:start]]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, numbers to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def surroundings(server: Server, database: str) -> dict[str, Any]:
    """What a reader needs to know of machine and server: versions, cores, changed settings."""
    with server.connect(database) as connection:
        version = connection.execute("select version()").fetchone()
        settings = connection.execute(
            "select name, current_setting(name) from pg_settings"
            " where source in ('configuration file', 'command line', 'database', 'user')"
            " and name !~ '(file|directory|directories|address|port)' order by name"
        ).fetchall()
    return {
        "started_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "kernel": platform.release(),
        "cores": psutil.cpu_count(),
        "server_version": version[0] if version else "",
        "server_settings": dict(settings),
    }


def exit_code(compare: Callable[[], None]) -> int:
    """Run a comparison: 0, or 1 after an error, or 130 after Ctrl-C, with a message."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started is ended, too
    try:
        compare()
    except Failure as error:
        print(f"error: {error.fact}\nhint: {error.hint}", file=sys.stderr)
        return 1
    except (psycopg.Error, OSError) as error:
        print(f"error: {str(error).strip()}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted; what was finished is in the file of --out", file=sys.stderr)
        return 130
    return 0


def keep(
    asked: argparse.Namespace,
    name: str,
    found: Sequence[Any],
    told: Mapping[str, Any] | None = None,
) -> None:
    """Write what is finished into the file of --out, if there is one, with what was asked for.

    Args:
        asked: The command line; a conninfo, which may hold a password, is left out.
        name: Of the list.
        found: Records, as dataclasses.
        told: What stands beside them.
    """
    if not asked.out:
        return
    options = {key: str(value) for key, value in vars(asked).items() if key != "conninfo"}
    write_json(
        asked.out, {**(told or {}), "options": options, name: [asdict(one) for one in found]}
    )


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Replace a file in one step, so that a crash leaves the former one."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(json.dumps(document, indent=1) + "\n")
    fresh.replace(path)
