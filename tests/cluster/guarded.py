"""A pair of real servers with the guard on it, and what happens to them: for tests of the guard."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import psycopg

from pgdyno import Guard, GuardLimits
from pgdyno.guard.data_directory import data_directory
from pgdyno.guard.interlock import STATE, forget_armed, read_armed, remove_line, write_armed
from pgdyno.guard.state import VARIABLE
from pgdyno.model.guard import Status
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.shell import postgres_user, run
from pgdyno.target.binaries import Binaries, find_binaries
from pgdyno.target.cluster import Cluster, initdb
from pgdyno.target.standby import Standby
from tests import children
from tests.cluster.conftest import TARGETS
from tests.reachable import reachable_folder
from tests.waiting import DEADLINE_S, until

ROOT = Path(__file__).parents[2]
ROLE = "pgdyno_guard"
ACCEPTED = ("separate-power",)  # both run on this machine
_WAITS = Origin(OriginKind.TARGET, "a test waits for it")
AT_ONCE = (Setting("wal_retrieve_retry_interval", "100ms", _WAITS),)
"""A standby looks again at once for a primary that was gone: five seconds later, by default."""
LIMITS = GuardLimits(silence_s=20.0, hold_s=0.5)
_SQL = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def grants(major: int) -> str:
    """What the documentation says a role needs."""
    every, since_15 = _SQL.findall((ROOT / "docs" / "concepts" / "guard.md").read_text())
    return every + since_15 if major >= 15 else every


def execute(cluster: Cluster, statements: str) -> None:
    """Run statements as the superuser, one by one."""
    with psycopg.connect(**cluster.connection().arguments(), autocommit=True) as session:
        for one in filter(str.strip, statements.split(";\n")):
            session.execute(one.encode())


def value(cluster: Cluster, query: str) -> str:
    """One value, as text."""
    with psycopg.connect(**cluster.connection().arguments(), autocommit=True) as session:
        row = session.execute(query.encode()).fetchone()
    assert row is not None
    return str(row[0])


@dataclass
class Guarded:
    """A primary, its standby, and where the guard's files are."""

    primary: Cluster
    standby: Standby
    binaries: Binaries
    run_folder: Path

    @property
    def data(self) -> Path:
        """The primary's data directory."""
        return self.primary.data

    def conninfo(self, cluster: Cluster) -> str:
        """How the guard's role reaches a server."""
        at = cluster.connection()
        return f"host={at.host} port={at.port} user={ROLE} dbname=postgres"

    def guard(
        self, limits: GuardLimits = LIMITS, standby: str | None = None, primary: str | None = None
    ) -> Guard:
        """The guard of this pair, or of one with another server."""
        return Guard(
            self.data,
            self.conninfo(self.standby.cluster) if standby is None else standby,
            primary=self.conninfo(self.primary) if primary is None else primary,
            run_folder=self.run_folder,
            limits=limits,
        )

    def arm(self, limits: GuardLimits = LIMITS) -> None:
        """Arm it, once the standby streams."""
        guard, deadline = self.guard(limits), time.monotonic() + DEADLINE_S
        while not (checked := guard.arm(ACCEPTED)).allowed:
            assert time.monotonic() < deadline, checked.refused
            time.sleep(0.1)

    @property
    def include(self) -> Path:
        """The file of the interlock."""
        armed = read_armed(data_directory(self.data))
        assert armed is not None
        return Path(armed.include)

    def status(self) -> Status:
        """How it stands."""
        return Guard(self.data).status()

    def metrics(self) -> str:
        """What the daemon says to a collector."""
        return (self.include.parent / "metrics.prom").read_text()

    def full_pages(self) -> str:
        """As the server has them."""
        return value(self.primary, "SHOW full_page_writes")

    def watching(
        self, environment: Mapping[str, str] = os.environ, further: Sequence[str] = ()
    ) -> subprocess.Popen[str]:
        """The daemon, in a process of its own."""
        words = [sys.executable, "-m", "pgdyno", "guard", "watch", str(self.data), *further]
        return children.started(
            words,
            cwd="/",
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def until_off(self) -> None:
        """Wait until full pages are off."""
        until(lambda: self.full_pages() == "off", "full pages are off")

    def until_on(self, reason: str) -> None:
        """Wait until full pages are on, for a reason."""
        until(
            lambda: (
                self.full_pages() == "on"
                and (beat := self.status().heartbeat) is not None
                and any(reason in one for one in beat.reasons)
            ),
            f"full pages are on: {reason}",
        )

    def cut_power(self) -> None:
        """What a power cut does to the interlock: memory is gone, and the kernel is another one."""
        kill_server(self.primary)
        self.forget_the_boot()

    def forget_the_boot(self) -> None:
        """What any restart of the machine does."""
        directory = data_directory(self.data)
        armed = read_armed(directory)
        assert armed is not None
        write_armed(directory, replace(armed, boot_id="00000000-0000-0000-0000-000000000000"))
        shutil.rmtree(self.run_folder / armed.system_identifier)

    def put_right(self) -> None:
        """Let the primary run, not armed, as at first."""
        self.primary.stop(clean=False)
        self.pg_ctl("stop")  # what was started by hand
        directory = data_directory(self.data)
        if (self.data / STATE).exists():
            armed = read_armed(directory)
            assert armed is not None
            remove_line(directory, Path(armed.config_file))
            forget_armed(directory)
        for one in self.run_folder.iterdir():
            shutil.rmtree(one)
        self.primary.start([])

    def pg_ctl(self, verb: str) -> tuple[int, str]:
        """By hand, as the server's user: its code, and what the server said."""
        log = self.data / "by-hand.log"
        log.unlink(missing_ok=True)
        words = ["-D", str(self.data), "-w", "-l", str(log), verb]
        if verb != "start":
            words = ["-D", str(self.data), "-w", "-m", "fast", verb]
        done = run([self.binaries.program("pg_ctl"), *words], user=postgres_user(), check=False)
        return done.code, log.read_text() if log.exists() else done.stderr


@contextmanager
def pair(
    name: str, prepare: Callable[[Cluster], None] | None = None, transport: str = "socket"
) -> Iterator[Guarded]:
    """A pair with the guard's role; the run folder lies in memory."""
    user = postgres_user()
    binaries = find_binaries(TARGETS[name], user)
    run_folder = Path(tempfile.mkdtemp(prefix="pgdyno-guard-test-", dir="/dev/shm"))
    run_folder.chmod(0o755)
    try:
        for folder in reachable_folder("guard"):
            initdb(binaries, folder / "primary", user, ("--no-sync", "--data-checksums"))
            primary = Cluster(binaries, folder / "primary", user, transport)
            standby, state = None, _keep_in(folder / "state")
            try:
                primary.start([])
                major = binaries.version_num // 10_000
                execute(primary, grants(major))
                if prepare is not None:
                    prepare(primary)
                standby = Standby(primary, binaries, user)
                standby.start(AT_ONCE)
                yield Guarded(primary, standby, binaries, run_folder)
            finally:
                if state:
                    del os.environ[VARIABLE]
                if standby is not None:
                    standby.close()
                primary.close()
    finally:
        shutil.rmtree(run_folder, ignore_errors=True)


def _keep_in(path: Path) -> bool:
    """Where guards keep what is not with the data; a pair in a test of another pair uses that's."""
    return os.environ.setdefault(VARIABLE, str(path)) == str(path)


def kill_server(cluster: Cluster) -> None:
    """Kill a server with everything that belongs to it."""
    postmaster = psutil.Process(cluster.pid)
    for process in (postmaster, *postmaster.children()):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    cluster.stop(clean=False)  # so that its number is nobody's


def stop(process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> str:
    """Send it a signal, wait for its end, and tell what it printed."""
    process.send_signal(number)
    return process.communicate()[0]


_KILLED = """
import os, signal, sys
from pathlib import Path
events = {"os.rename", "os.remove", "os.mkdir", "os.rmdir"}
step, verb, data, run_folder, standby, primary = int(sys.argv[1]), *sys.argv[2:]
heard = 0
def hear(event, arguments):
    global heard
    if event in events or event == "signal.pidfd_send_signal":
        heard += 1
        if heard == step:
            os.kill(os.getpid(), signal.SIGKILL)
from pgdyno import Guard
from pgdyno.api import guard as _
send = signal.pidfd_send_signal
def counted(*arguments):
    hear("signal.pidfd_send_signal", ())
    return send(*arguments)
signal.pidfd_send_signal = counted
sys.addaudithook(hear)
guard = Guard(data, standby, primary=primary, run_folder=run_folder)
if verb == "arm":
    assert guard.arm(["separate-power"]).allowed
elif verb == "watch":
    guard.watch()
else:
    guard.disarm()
"""


def killed(guarded: Guarded, verb: str, step: int) -> bool:
    """Arm, disarm or watch in a process that is killed at a step; tells whether it was.

    A step is what leaves something behind: a name made, changed or removed, a signal sent.
    """
    words = [sys.executable, "-c", _KILLED, str(step), verb, str(guarded.data),
             str(guarded.run_folder), guarded.conninfo(guarded.standby.cluster),
             guarded.conninfo(guarded.primary)]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


def killed_standby(guarded: Guarded) -> Callable[[], None]:
    """Kill its server; what is returned starts it again."""
    kill_server(guarded.standby.cluster)

    def back() -> None:
        guarded.standby.stop(clean=False)
        guarded.standby.start(AT_ONCE)

    return back
