"""Hosts that are lost while they drive, and heads that die: named, repeated, or gone without."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgdyno.drive import fleet as head
from pgdyno.drive.driver import drive
from pgdyno.drive.null import NullServer, null_server
from pgdyno.model.connection import Connection
from pgdyno.model.errors import HostLostError
from pgdyno.model.run import TrialRecord, TrialState
from pgdyno.stats.fleet import fleet_reasons
from pgdyno.store.run_file import RunFile
from tests.cluster.test_fleet import PLAN, PROTOCOL, processes
from tests.cluster.test_run import pgdyno
from tests.data.workloads import tpcb
from tests.waiting import until

pytestmark = pytest.mark.cluster
WINDOW_S = 600.0  # far longer than a busy machine takes to end one; it would end by itself then


def test_a_lost_host_ends_the_window_and_is_named() -> None:
    load = replace(tpcb(1), connections=4, terminals=4)
    pids: list[int] = []
    killed: list[int] = []

    def kill(state: Any) -> None:
        if state.phase == "window" and not killed:
            os.kill(pids[1], signal.SIGKILL)
            killed.append(pids[1])

    with null_server(load) as server:
        protocol = replace(PROTOCOL, window_s=WINDOW_S, fleet=processes(3))
        driven = drive(server.connection, load, protocol, None, kill, started=pids.append)

    assert driven.fleet is not None
    (reason,) = fleet_reasons(driven.fleet)
    assert reason == "host local:1 was lost: its process ended with code -9"
    assert [host.name for host in driven.fleet.hosts] == ["local:0", "local:2"]
    assert driven.outcome == "stopped"
    assert driven.window_s < WINDOW_S / 2, "the others do not drive on for the rest of it"


@pytest.mark.wide
def test_a_degraded_load_goes_on_with_the_hosts_that_are_left() -> None:
    load = replace(tpcb(1), connections=5, terminals=7)
    pids: list[int] = []
    killed: list[int] = []

    def kill(state: Any) -> None:
        if state.phase == "window" and not killed:
            os.kill(pids[1], signal.SIGKILL)
            killed.append(pids[1])

    with null_server(load) as server:
        protocol = replace(PROTOCOL, window_s=4.0, fleet=replace(processes(3), degraded=True))
        driven = drive(server.connection, load, protocol, None, kill, started=pids.append)

    fleet = driven.fleet
    assert fleet is not None
    assert fleet.is_degraded
    assert fleet.lost == ("host local:1 was lost: its process ended with code -9",)
    assert [host.name for host in fleet.hosts] == ["local:0", "local:2"]
    assert (fleet.terminals_lost, fleet.connections_lost) == (2, 2)
    assert driven.outcome == "complete"
    assert driven.window_s == 4.0, "nothing ended it before its time"
    assert sum(host.ended for host in fleet.hosts) == driven.transactions > 0


@pytest.mark.wide
def test_no_load_goes_on_when_all_hosts_are_lost() -> None:
    load = replace(tpcb(1), connections=4, terminals=4)
    pids: list[int] = []

    def kill(state: Any) -> None:
        if state.phase == "window":
            for pid in pids:
                os.kill(pid, signal.SIGKILL)

    with null_server(load) as server:
        protocol = replace(PROTOCOL, window_s=WINDOW_S, fleet=replace(processes(2), degraded=True))
        with pytest.raises(HostLostError, match=r"host local:0 was lost: .*; host local:1 was"):
            drive(server.connection, load, protocol, None, kill, started=pids.append)


@pytest.mark.long
def test_a_silent_host_is_lost_too() -> None:
    load = replace(tpcb(1), connections=4, terminals=4)
    pids: list[int] = []
    stopped_s: list[float] = []

    def stop(state: Any) -> None:
        if state.phase == "window" and not stopped_s:
            os.kill(pids[0], signal.SIGSTOP)
            stopped_s.append(time.monotonic())

    with null_server(load) as server:
        protocol = replace(PROTOCOL, window_s=WINDOW_S, fleet=processes(2))
        driven = drive(server.connection, load, protocol, None, stop, started=pids.append)

    assert driven.fleet is not None
    assert list(fleet_reasons(driven.fleet)) == ["host local:0 was lost: it said nothing for 5 s"]
    assert not Path(f"/proc/{pids[0]}").exists(), "what does not end is killed"


@pytest.mark.wide
def test_a_host_that_ends_before_its_clock_was_compared_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It gave its result, but whether it drove with the others is not known."""
    load = replace(tpcb(1), connections=4, terminals=4)
    pids: list[int] = []
    compare = head.Head.compare_clocks

    def killed(self: head.Head) -> None:
        if all(link.result is not None for link in self.links):
            os.kill(pids[1], signal.SIGKILL)
        compare(self)

    monkeypatch.setattr(head.Head, "compare_clocks", killed)
    with null_server(load) as server:
        protocol = replace(PROTOCOL, fleet=processes(2))
        driven = drive(server.connection, load, protocol, None, started=pids.append)

    assert driven.fleet is not None
    assert list(fleet_reasons(driven.fleet)) == [
        "host local:1 was lost: it did not tell its clock for 5 s"
    ]


HEAD = """
import json, sys
from dataclasses import replace
from pgdyno.drive.driver import drive
from pgdyno.model.connection import Connection
from tests.cluster.test_fleet import PROTOCOL, processes
from tests.data.workloads import tpcb
load = replace(tpcb(1), connections=4, terminals=4)
protocol = replace(PROTOCOL, window_s=float(sys.argv[2]), fleet=processes(2))
pids = []
def tell(state):
    print(json.dumps({"phase": state.phase, "pids": pids}), flush=True)
drive(Connection(sys.argv[1], 5432, "u", "d"), load, protocol, None, tell, started=pids.append)
"""


def is_quiet(server: NullServer) -> bool:
    """Whether nothing is asked of it for a moment."""
    before = server.status().executions
    time.sleep(0.2)
    return server.status().executions == before


@contextmanager
def driving_head(connection: Connection) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A head in a process of its own, whose hosts drive; and their numbers."""
    words = [sys.executable, "-c", HEAD, connection.host, str(WINDOW_S)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(words, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said = json.loads(line)
            if said["phase"] == "window":
                yield process, said["pids"]
                break
        process.kill()


@pytest.mark.wide
def test_no_load_is_left_when_the_head_dies() -> None:
    load = replace(tpcb(1), connections=4, terminals=4)
    with null_server(load) as server, driving_head(server.connection) as (process, pids):
        assert len(pids) == 2
        process.kill()
        killed_s = time.monotonic()
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "both have ended")
        assert time.monotonic() - killed_s < WINDOW_S / 2, "not with their window"
        until(lambda: is_quiet(server), "what they had sent is done")


@pytest.mark.wide
def test_no_load_is_left_when_the_head_is_cut_off() -> None:
    """As behind a network that swallows everything: its pipe stays open, and nothing comes."""
    load = replace(tpcb(1), connections=4, terminals=4)
    with null_server(load) as server, driving_head(server.connection) as (process, pids):
        process.send_signal(signal.SIGSTOP)
        stopped_s = time.monotonic()
        until(
            lambda: not any(Path(f"/proc/{pid}/fd/0").exists() for pid in pids), "both have ended"
        )
        assert time.monotonic() - stopped_s < WINDOW_S / 2, "not with their window"
        until(lambda: is_quiet(server), "what they had sent is done")
        process.send_signal(signal.SIGCONT)


LOST = """
import os, signal, sys
from pathlib import Path
import pgdyno
from pgdyno.model.progress import DriveProgress
killed = []
def tell(event):
    if isinstance(event, DriveProgress) and event.phase == "window" and not killed:
        for one in Path("/proc").glob("[0-9]*/stat"):
            words = one.read_text().rpartition(")")[2].split()
            asked = (one.parent / "cmdline").read_text()
            if int(words[1]) == os.getpid() and "host_worker" in asked:
                killed.append(int(one.parent.name))
        if sys.argv[3] == "head":
            os.kill(os.getpid(), signal.SIGKILL)
        os.kill(max(killed), signal.SIGSTOP if sys.argv[3] == "silent" else signal.SIGKILL)
run = pgdyno.run(pgdyno.load_plan(sys.argv[1]), out=sys.argv[2], on_event=tell)
print(run.is_whole)
"""


def lost_in(folder: Path, hosts: str, who: str = "host") -> tuple[Path, str]:
    """A run file whose first trial lost its last host, or its head; and what was printed.

    Args:
        folder: Where it lies.
        hosts: Of the plan.
        who: `host` or `head` is killed; with `silent` a host stands still in its transactions.
    """
    path, out = folder / f"{who}.toml", folder / f"{who}.sqlite"
    path.write_text(PLAN.format(hosts=hosts))
    words = [sys.executable, "-c", LOST, str(path), str(out), who]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == (-signal.SIGKILL if who == "head" else 0), done.stderr
    return out, done.stdout


def has_numbers(trial: TrialRecord) -> bool:
    """Whether they may be used. Hosts of a busy machine may not have driven together."""
    if trial.state is TrialState.INVALID:
        assert "the hosts drove together for" in str(trial.reason)
    return trial.state is TrialState.FINISHED


@pytest.mark.long
def test_a_trial_that_lost_a_host_is_repeated_once_by_itself(folder: Path, home_env: Path) -> None:
    out, whole = lost_in(folder, '"local:a", "local:b"')

    with RunFile.read(out) as run:
        first, second = run.trials()
        (replaced,) = run.replaced()
    assert whole.strip() == str(has_numbers(first) and has_numbers(second))
    assert (first.attempt, first.host_lost) == (2, False)
    assert (replaced.number, replaced.replaced_by) == (3, 1)
    assert (replaced.state, replaced.host_lost) == (TrialState.INVALID, True)
    assert replaced.reason == "host local:b was lost: its process ended with code -9"
    assert replaced.result is not None
    assert replaced.result.fleet is not None
    assert [host.name for host in replaced.result.fleet.hosts] == ["local:a"]
    assert "1 of 2 trials" not in (page := out.with_suffix(".html").read_text())
    assert replaced.reason in page


@pytest.mark.long
def test_a_host_that_stands_still_in_its_transactions_is_no_fault_of_the_server(
    folder: Path, home_env: Path
) -> None:
    """All update the row of one branch, and wait for the transaction that nobody goes on with."""
    out, whole = lost_in(folder, '"local:a", "local:b"', "silent")

    with RunFile.read(out) as run:
        first, second = run.trials()
        (replaced,) = run.replaced()
    assert whole.strip() == str(has_numbers(first) and has_numbers(second))
    assert (first.attempt, first.host_lost) == (2, False)
    assert (replaced.state, replaced.host_lost) == (TrialState.INVALID, True)
    assert replaced.reason == "host local:b was lost: it said nothing for 5 s"


@pytest.mark.long
def test_a_degraded_trial_is_marked_and_compared_with_nothing(folder: Path, home_env: Path) -> None:
    out, whole = lost_in(folder, '"local:a", "local:b"]\ndegraded = true\n#')

    with RunFile.read(out) as run:
        first, second = run.trials()
        assert not run.replaced()
    assert whole.strip() == str(has_numbers(second))
    assert first.state is TrialState.DEGRADED
    assert first.reason == "host local:b was lost: its process ended with code -9"
    assert first.result is not None
    assert first.result.throughput > 0
    pgdyno("report", out, "--format", "md")
    report = out.with_suffix(".md").read_text()
    assert "1 trial was driven without hosts that were lost" in report
    assert "Trial 1 (as-is, round 1): host local:b was lost" in report


@pytest.mark.wide
@pytest.mark.same_machine
def test_a_run_whose_head_died_is_resumed(folder: Path, home_env: Path) -> None:
    out, _ = lost_in(folder, '"local:a", "local:b"', "head")

    pgdyno("resume", out)

    with RunFile.read(out) as run:
        assert [one.attempt for one in run.trials()] == [2, 1]
        assert all(one.result and one.result.fleet for one in run.trials())
