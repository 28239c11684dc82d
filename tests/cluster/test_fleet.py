"""One load from several processes, and from hosts: the same load, one window, one result."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgdyno.api import fleet as pgdyno_fleet
from pgdyno.api import host_ceilings, kept_ceilings, load_plan
from pgdyno.drive import fleet as head
from pgdyno.drive import transport
from pgdyno.drive.checkpoint_pace import Pace
from pgdyno.drive.driver import Driven, drive
from pgdyno.drive.fleet import look
from pgdyno.drive.null import null_server
from pgdyno.drive.remote_call import remote_call
from pgdyno.drive.transports import local
from pgdyno.model.connection import Connection
from pgdyno.model.cycle import Spacing
from pgdyno.model.errors import DriveError, HostLostError, PlanError
from pgdyno.model.fleet import Fleet, FleetResult
from pgdyno.model.host_address import HostAddress
from pgdyno.model.plan import Protocol
from pgdyno.model.run import TrialRecord, TrialState
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Workload
from pgdyno.shell import Process, start
from pgdyno.store.run_file import RunFile
from tests.cluster.networked import namespaces, server_on_the_network
from tests.cluster.test_run import pgdyno
from tests.data.workloads import tpcb, tpcc
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.cluster
ATTEMPTS = 8
PROTOCOL = Protocol(1, 0.2, 1.0, 20.0, False, 0.02, 0.95, Rung.D0)


def processes(count: int) -> Fleet:
    """So many processes of this host."""
    return Fleet(tuple(f"local:{number}" for number in range(count)))


def driven_by(fleet: Fleet | None, workload: Workload, connection: Connection) -> Driven:
    """A window of that load."""
    return drive(connection, workload, replace(PROTOCOL, fleet=fleet), None)


def best_of_some(
    once: Callable[[], Driven],
    is_good: Callable[[FleetResult], bool] = lambda it: it.overlap > 0.99,
) -> Driven:
    """A load whose hosts drove together: those of a busy machine may begin late."""
    for _ in range(ATTEMPTS):
        driven = once()
        assert driven.fleet is not None
        if is_good(driven.fleet):
            break
    return driven


def requests_of(driven: Driven) -> dict[str, int]:
    """How many of each kind were performed, the warm-up and the drain included."""
    return {kind.kind: kind.run.succeeded + kind.run.rolled_back for kind in driven.kinds}


def test_the_load_is_the_same_from_any_number_of_processes() -> None:
    closed = replace(tpcc(3, seed=9), connections=8, terminals=21, requests_max=15)
    with null_server(closed) as server:
        long = replace(PROTOCOL, warmup_s=0.0, window_s=600.0)
        one = drive(server.connection, closed, long, None)
        for count in (1, 3, 7):
            protocol = replace(long, fleet=processes(count))
            several = drive(server.connection, closed, protocol, None)
            assert several.stream_digest == one.stream_digest, count
            assert requests_of(several) == requests_of(one)
            assert several.fleet is not None
            assert [host.terminals for host in several.fleet.hosts] == [21 // count] * count
            assert sum(host.requests for host in several.fleet.hosts) == 15 * 21
            assert not several.fleet.lost
            assert {line.name for line in several.audit} == {line.name for line in one.audit}


@pytest.mark.long
def test_a_hundred_hosts_ask_for_what_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many processes, of some terminals each: two CPUs need minutes to start them."""
    patient = replace(local.TRANSPORT, hello_s=DEADLINE_S)
    monkeypatch.setattr(head, "transports", lambda: {"local": patient})
    load = replace(tpcc(5, seed=9), connections=100, terminals=1_000, requests_max=3)
    long = replace(PROTOCOL, warmup_s=0.0, window_s=DEADLINE_S)
    with null_server(load) as server:
        one = drive(server.connection, load, long, None)
        several = drive(server.connection, load, replace(long, fleet=processes(100)), None)

    assert several.fleet is not None
    assert not several.fleet.lost
    assert [host.terminals for host in several.fleet.hosts] == [10] * 100
    assert sum(host.requests for host in several.fleet.hosts) == 3 * 1_000
    assert len({host.digest for host in several.fleet.hosts}) == 100
    assert several.stream_digest == one.stream_digest
    assert requests_of(several) == requests_of(one)


@pytest.mark.wide
def test_hosts_begin_and_end_together_and_keep_their_own_accounts() -> None:
    load = replace(tpcb(1), connections=4, terminals=4, threads=1)
    told: list[str] = []
    pids: list[int] = []
    with null_server(load) as server:

        def once() -> Driven:
            told.clear()
            pids.clear()
            protocol = replace(PROTOCOL, warmup_s=0.5, window_s=2.0, fleet=processes(2))
            return drive(server.connection, load, protocol, None,
                         lambda state: told.append(state.phase), started=pids.append)  # fmt: skip

        driven = best_of_some(once, lambda it: it.overlap > 0.99 and it.skew_ns < 50_000_000)

    fleet = driven.fleet
    assert fleet is not None
    assert driven.outcome == "complete"
    assert driven.window_s == 2.0
    assert len(set(pids)) == 2
    assert {"ready", "window"} <= set(told)
    assert sum(host.ended for host in fleet.hosts) == driven.transactions
    assert fleet.overlap > 0.99
    assert fleet.skew_ns < 50_000_000
    assert driven.client.threads == 2
    assert driven.client.cpu_s == pytest.approx(sum(host.client.cpu_s for host in fleet.hosts))
    # Of one kernel: its steady clock is one, and nothing of it drifts.
    for host in fleet.hosts:
        assert abs(host.offsets[0].offset_ns) <= host.offsets[0].bound_ns
    now_ns = time.time_ns()
    assert now_ns - 60e9 < driven.window_ns[0] < now_ns, "the calendar is the head's"


def hosts_in(command: Callable[[str], tuple[str, ...]]) -> transport.Transport:
    """A transport whose processes are started by another command."""

    def begin(address: HostAddress, _fleet: Fleet, log: int, module: str) -> Process:
        words = (*command(address.place), *transport.here(module))
        return start(words, pipes=True, log=log, dies_with_us=signal.SIGTERM)

    return transport.Transport("local", begin)


def test_a_clock_that_is_shifted_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A time namespace shifts the steady clock of one host by 1000 s, and not its calendar."""

    def shifted(place: str) -> tuple[str, ...]:
        return () if place == "0" else ("unshare", "-T", "--monotonic", "1000")

    ways: Mapping[str, transport.Transport] = {"local": hosts_in(shifted)}
    monkeypatch.setattr(head, "transports", lambda: ways)
    load = replace(tpcb(1), connections=4, terminals=4)
    with null_server(load) as server:
        driven = best_of_some(lambda: driven_by(processes(2), load, server.connection))

    assert driven.fleet is not None
    near, far = driven.fleet.hosts
    for offset in far.offsets:
        # The namespace's clock is whole nanoseconds ahead; what it is asked with is not.
        assert abs(offset.offset_ns - 1000 * 10**9) <= offset.bound_ns + 1000
    for there, here in zip(far.window_ns, near.window_ns, strict=True):
        assert abs(there - here) <= near.bound_ns + far.bound_ns
    assert driven.fleet.overlap > 0.99


@pytest.mark.wide
def test_hosts_are_looked_at_without_a_load(tmp_path: Path) -> None:
    found = look(processes(2), [replace(tpcb(1), connections=5, terminals=5)])

    assert [host.name for host in found.hosts] == ["local:0", "local:1"]
    assert [host.connections for host in found.hosts] == [3, 2]
    assert all(host.machine.cpus >= 1 for host in found.hosts)
    with pytest.raises(DriveError, match=r"may open .* files and sockets, its 500000 connections"):
        look(processes(2), [replace(tpcb(1), connections=1_000_000, terminals=1_000_000)])
    reads = replace(tpcc(1), connections=10, terminals=10, replica_connections=1_000_000)
    with pytest.raises(DriveError, match=r"may open .* files and sockets, its 500005 connections"):
        look(processes(2), [reads])
    # A host that answers nothing, as behind a firewall; one whose key is not known.
    scripted = tmp_path / "config"
    scripted.write_text("Host *\n  ProxyCommand sh -c 'echo no such key >&2; exit 1'\n")
    with pytest.raises(DriveError, match="host ssh://b could not be reached: its process ended"):
        look(Fleet(("local:a", "ssh://b"), ssh_config=str(scripted)))


@pytest.mark.wide
def test_a_host_measures_its_ceiling_once_and_keeps_it(
    home_env: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its own program, as over SSH; by the command of this host's processes."""
    monkeypatch.setattr(kept_ceilings, "WINDOW_S", 0.5)
    monkeypatch.setattr(kept_ceilings, "ROUNDS", 1)
    fleet = processes(2)
    load = replace(tpcb(1), connections=5, terminals=5)
    question: dict[str, Any] = {"loads": [["tpcb", load.face, 3]], "measure": False}
    module = "pgdyno.api.host_ceilings"
    assert remote_call("local:0", fleet, module, question, 60.0) == {"ceilings": []}
    answer: Any = remote_call("local:0", fleet, module, question | {"measure": True}, 600.0)
    (measured,) = answer["ceilings"]
    assert measured["transactions_per_s"]["centre"] > 0

    found = host_ceilings.measured_ceilings(fleet, [load])

    assert [len(one) for one in found.values()] == [1, 1]
    (kept,) = found["local:1"]
    assert kept.measured_unix_ns == measured["measured_unix_ns"], "once"
    path = folder / "hosts.toml"
    path.write_text(PLAN.format(hosts='"local:a", "local:b"'))
    looked = json.loads(pgdyno("fleet", "check", path, "--calibrate", "--json").stdout)
    fits = kept.limit == "driver"
    assert [host["ceiling_per_s"] is not None for host in looked] == [fits, fits]


@pytest.mark.wide
def test_a_remote_call_without_an_answer_is_an_error() -> None:
    with pytest.raises(HostLostError, match="host local:0 gave no answer: its process ended"):
        remote_call("local:0", processes(1), "pgdyno.no_such_module", {}, 60.0)


PLAN = """
name = "hosts"
question = "Does the load of two hosts reach a server over the network?"

[workload]
kind = "tpcb"
scale = 1
connections = 5
terminals = 7

[protocol]
rounds = 2
warmup_s = 0.5
window_s = 2

[fleet]
hosts = [{hosts}]

[[stage]]
name = "as-is"
why = "The server as it is."
"""


def measured_together(folder: Path, plan: Path, conninfo: str) -> tuple[Path, list[TrialRecord]]:
    """The run file and the trials of a run in which the hosts drove together."""
    for attempt in range(ATTEMPTS):
        out = folder / f"hosts{attempt}.sqlite"
        words = ["run", str(plan), "--conninfo", conninfo, "--out", str(out)]
        done = subprocess.run([sys.executable, "-m", "pgdyno", *words], capture_output=True,
                              text=True, check=False)  # fmt: skip
        assert done.returncode in (0, 1), done.stderr
        with RunFile.read(out) as run:
            trials = run.trials()
        apart = [one for one in trials if one.state is TrialState.INVALID]
        assert all("the hosts drove together for" in str(one.reason) for one in apart), apart
        if not apart:
            break
    return out, trials


@pytest.mark.wide
def test_hosts_with_addresses_of_their_own_drive_a_real_server(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "hosts.toml"
    with namespaces() as names, server_on_the_network() as (cluster, conninfo, password):
        path.write_text(PLAN.format(hosts=", ".join(f'"netns:{name}"' for name in names)))
        monkeypatch.setenv("PGPASSWORD", password)
        looked = json.loads(pgdyno("fleet", "check", path, "--conninfo", conninfo, "--json").stdout)
        out, trials = measured_together(folder, path, conninfo)
        log = cluster.log_text()

    assert [host["connections"] for host in looked] == [3, 2]
    assert len({host["machine"]["network"] for host in looked}) == 2
    for address in names.values():
        assert f"connection received: host={address}" in log
    assert [trial.state for trial in trials] == [TrialState.FINISHED] * 2
    for trial in trials:
        assert trial.result is not None
        assert trial.result.fleet is not None
        hosts = trial.result.fleet.hosts
        assert [host.name for host in hosts] == [f"netns:{name}" for name in names]
        assert [host.terminals for host in hosts] == [4, 3]
        assert trial.result.fleet.overlap >= 0.999
        ended = sum(kind.window.succeeded for kind in trial.result.kinds)
        assert sum(host.ended for host in hosts) == ended > 0
    assert "Hosts that made the load" in out.with_suffix(".html").read_text()
    for written in folder.iterdir():
        assert password.encode() not in written.read_bytes(), written


def are_alike(fleet: FleetResult) -> bool:
    """Whether windows open and end together, as far as clocks are known."""
    first, second = fleet.hosts
    bound_ns = first.bound_ns + second.bound_ns
    return all(abs(there - here) <= bound_ns
               for there, here in zip(first.window_ns, second.window_ns, strict=True))  # fmt: skip


@pytest.mark.wide
def test_windows_that_follow_checkpoints_open_and_end_together() -> None:
    """A checkpoint every 0.8 s is made up; each host is told the instants by its own clock."""
    load = replace(tpcb(1), connections=4, terminals=4)

    def once() -> Driven:
        begun_s = time.monotonic()
        pace = Pace(
            lambda: int((time.monotonic() - begun_s) / 0.8), 0.2, 0.5, 1, Spacing(30.0, 1e9, 0.9)
        )
        protocol = replace(PROTOCOL, fleet=processes(2))
        return drive(server.connection, load, protocol, None, pace=pace)

    with null_server(load) as server:
        driven = best_of_some(once, are_alike)

    assert driven.outcome == "complete", "its end was asked for"
    assert driven.followed is not None
    assert 0.3 < driven.window_s < 60
    fleet = driven.fleet
    assert fleet is not None
    (first, second) = fleet.hosts
    # What is told for later is done then, unless a busy machine tells it too late.
    assert are_alike(fleet)
    assert first.ended > 0
    assert second.ended > 0


def test_a_plan_is_given_hosts_from_outside(tmp_path: Path) -> None:
    plan = load_plan("demo", set={"fleet.hosts": ["local:a", "local:b"]}, quick=True)

    assert plan.record.protocol.fleet == Fleet(("local:a", "local:b"))
    assert "load from local:a and local:b" in str(plan.preview())
    assert [host.connections for host in pgdyno_fleet(plan).hosts] == [4, 4]
    with pytest.raises(PlanError, match="plan demo has no \\[fleet\\]"):
        pgdyno_fleet(load_plan("demo"))
    with pytest.raises(PlanError, match="host 'b' is of no known transport"):
        pgdyno_fleet(Fleet(("b",)))
    assert load_plan("demo").trials[0].ident != plan.trials[0].ident
