"""A host that Ray reaches: on a cluster that the test starts in a folder of its own, and stops."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil
import pytest

from pgdyno.drive import driver, loading_hosts
from pgdyno.drive import fleet as head
from pgdyno.drive.driver import drive
from pgdyno.drive.fleet import look
from pgdyno.drive.null import null_server
from pgdyno.drive.transport import Transport, transports
from pgdyno.loader.copy import How, load
from pgdyno.model.errors import HostLostError
from pgdyno.model.fleet import Fleet
from pgdyno.shell import Process, start
from pgdyno.stats.fleet import fleet_reasons
from pgdyno.trial.shared_loading import load_from_hosts
from tests.cluster.conftest import cluster_apart
from tests.cluster.loading import PGBENCH, contents, keys, new_database
from tests.cluster.networked import NETWORK, namespaces, server_on_the_network
from tests.cluster.test_fleet import PROTOCOL
from tests.data.workloads import tpcb
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.cluster
NODE = "ray:pgdyno-node"
FLEET = Fleet(("local:a", NODE))
LOAD = replace(tpcb(1), connections=4, terminals=4)
SECRET = "planted-c0ffee-0815"
PATIENT = {  # Ray's own deadlines, on a machine that is busy
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_worker_register_timeout_seconds": "300",
    "RAY_health_check_timeout_ms": "300000",
}


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def of_folder(folder: Path) -> list[psutil.Process]:
    """Processes whose command line names a folder: Ray's daemons all do."""
    found = []
    for one in psutil.process_iter(["cmdline"]):
        if any(str(folder) in word for word in one.info["cmdline"] or []):
            found.append(one)
    return found


def started(process: Process, log: Path) -> bool:
    """Whether Ray runs; a process that has ended will not."""
    assert process.code() is None, log.read_text()
    return "Ray runtime started" in log.read_text()


@contextmanager
def ray_cluster(
    mode: str, address: str = "127.0.0.1", joining: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[Path, dict[str, str]]]:
    """A cluster; its folder, and what the environment of its users holds.

    Args:
        mode: Of its tokens.
        address: Of its first node, `NODE`.
        joining: Addresses of further nodes, by the network namespaces that they lie and are called
            after.
    """
    folder = Path(tempfile.mkdtemp(prefix="pgd-ray-"))  # short: sockets lie in it
    token = folder / "token"
    token.write_text("0123456789abcdef" * 4)
    token.chmod(0o600)
    port = free_port()
    env = {"RAY_AUTH_MODE": mode, "RAY_AUTH_TOKEN_PATH": str(token)}
    first = ("--head", "--port", str(port), "--node-ip-address", address, "--temp-dir",
             str(folder / "s"), "--include-dashboard=false")  # fmt: skip
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        stack.callback(until, lambda: not of_folder(folder), "Ray has ended")
        stack.enter_context(_node(NODE.partition(":")[2], (), first, folder, env))
        for name, own in joining.items():
            there = ("--address", f"{address}:{port}", "--node-ip-address", own)
            stack.enter_context(_node(name, ("ip", "netns", "exec", name), there, folder, env))
        yield folder, env | {"RAY_ADDRESS": f"{address}:{port}"}


@contextmanager
def _node(
    name: str, within: Sequence[str], where: Sequence[str], folder: Path, env: Mapping[str, str]
) -> Iterator[None]:
    """A node of a cluster while this is entered; all of what it started ends with it."""
    words = [*within, sys.executable, "-m", "ray.scripts.scripts", "start", "--block", *where,
             "--node-name", name, "--num-cpus=1", "--disable-usage-stats",
             "--object-store-memory=80000000"]  # fmt: skip
    path = folder / f"log-{name}"
    with path.open("wb") as log:
        process = start(words, env={**env, **PATIENT}, log=log.fileno(),
                        dies_with_us=signal.SIGTERM)  # fmt: skip
        try:
            until(lambda: started(process, path), "Ray runs")
            yield
        finally:
            process.signal(signal.SIGTERM)
            process.wait(DEADLINE_S)
            if not within:  # what the others left has this folder in its words, too
                for one in of_folder(folder):
                    with suppress(psutil.NoSuchProcess):
                        one.kill()
            process.kill()


def patient() -> Mapping[str, Transport]:
    """The transports, with a deadline that only a defect reaches."""
    return {name: replace(one, hello_s=600.0) for name, one in transports().items()}


def enter(env: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process find a cluster, and wait as long for it as a busy machine takes."""
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    for module in (head, loading_hosts):
        monkeypatch.setattr(module, "transports", patient)


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[Path, dict[str, str]]]:
    with ray_cluster("token") as found:
        yield found


@pytest.fixture
def session(cluster: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cluster that this process may enter."""
    folder, env = cluster
    enter(env, monkeypatch)
    # The node is this host, which is refused, and so are a server's sockets.
    for module in (head, loading_hosts):
        monkeypatch.setattr(module, "require_alike", lambda _: None)
    for other in (driver, loading_hosts):
        monkeypatch.setattr(other, "require_reachable", lambda *_: None)
    return folder


@pytest.mark.wide
def test_a_node_of_ray_drives_beside_a_process_and_its_cpu_is_measured(session: Path) -> None:
    with null_server(LOAD) as server:
        connection = replace(server.connection, password=SECRET)
        protocol = replace(PROTOCOL, window_s=2.0, fleet=FLEET)
        driven = drive(connection, LOAD, protocol, None)

    fleet = driven.fleet
    assert fleet is not None
    assert not fleet.lost
    assert [host.name for host in fleet.hosts] == list(FLEET.hosts)
    here, there = fleet.hosts
    assert here.ended > 0
    assert there.ended > 0
    assert sum(host.ended for host in fleet.hosts) == driven.transactions
    assert there.around is not None
    assert there.around.carriers_cpu_s["ray"] >= 0
    assert here.around is not None
    assert "ray" not in here.around.carriers_cpu_s
    require_unwritten(SECRET, session)


def require_unwritten(secret: str, session: Path) -> None:
    """A password is in nothing that Ray has written."""
    written = [path for path in session.rglob("*") if path.is_file() and path.stat().st_size]
    assert len(written) > 5
    for path in written:
        assert secret.encode() not in path.read_bytes(), path


@pytest.mark.wide
def test_a_node_of_ray_fills_tables_beside_a_process(session: Path) -> None:
    with cluster_apart("embedded-18", "socket") as server:
        shop, alone = (new_database(server.connection(), name) for name in ("shop", "alone"))
        load(alone, tpcb(2), How(connections=2))
        secret = replace(shop, password=SECRET)  # nobody is asked for one

        report, parts = load_from_hosts(FLEET, secret, tpcb(2), How(connections=2))

        assert contents(shop, PGBENCH) == contents(alone, PGBENCH)
        assert keys(shop) == keys(alone)
    assert [one.name for one in parts] == list(FLEET.hosts)
    assert all(one.report.rows > 0 for one in parts)
    assert sum(one.report.rows for one in parts) == report.rows
    require_unwritten(SECRET, session)


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces are root's to make")
def test_three_nodes_on_networks_of_their_own_fill_tables_and_drive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with namespaces() as names, ExitStack() as stack:
        for name in names:  # Ray's daemons of a node talk over it
            subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        session, env = stack.enter_context(ray_cluster("token", f"{NETWORK}.1", names))
        enter(env, monkeypatch)
        server, _, password = stack.enter_context(server_on_the_network())
        fleet = Fleet((NODE, *(f"ray:{name}" for name in names)))
        shop, alone = (new_database(server.connection(), name) for name in ("shop", "alone"))
        load(alone, tpcb(2), How(connections=2))
        shop = replace(shop, host=f"{NETWORK}.1", password=password)

        _, parts = load_from_hosts(fleet, shop, tpcb(2), How(connections=3))
        filled = contents(shop, PGBENCH)
        driven = drive(shop, replace(LOAD, connections=5, terminals=7),
                       replace(PROTOCOL, window_s=2.0, fleet=fleet), None)  # fmt: skip

        assert filled == contents(alone, PGBENCH)
        log = server.log_text()
        require_unwritten(password, session)
    assert all(one.report.rows > 0 for one in parts)
    assert driven.fleet is not None
    assert [host.name for host in driven.fleet.hosts] == list(fleet.hosts)
    assert [host.terminals for host in driven.fleet.hosts] == [3, 2, 2]
    assert all(host.ended > 0 for host in driven.fleet.hosts)
    for address in (f"{NETWORK}.1", *names.values()):
        assert f"connection received: host={address}" in log


def below(folder: Path) -> list[psutil.Process]:
    """What Ray's daemons of a folder have started; others may have a cluster of their own."""
    found: list[psutil.Process] = []
    for one in of_folder(folder):
        with suppress(psutil.NoSuchProcess):
            found += one.children(recursive=True)
    return found


def is_worker(process: psutil.Process) -> bool:
    """Whether it drives."""
    with suppress(psutil.Error):
        return "pgdyno.drive.host_worker" in process.cmdline()
    return False


@pytest.mark.long
def test_a_worker_that_dies_on_a_node_is_a_lost_host_and_no_call_is_repeated(session: Path) -> None:
    killed: list[int] = []

    def kill(state: Any) -> None:
        if state.phase == "window" and not killed:
            killed.extend({one.pid for one in below(session) if is_worker(one)})
            os.kill(killed[0], signal.SIGKILL)

    with null_server(LOAD) as server:
        protocol = replace(PROTOCOL, window_s=300.0, fleet=FLEET)
        driven = drive(server.connection, LOAD, protocol, None, kill)

    assert len(killed) == 1
    assert driven.fleet is not None
    (reason,) = fleet_reasons(driven.fleet)
    assert reason.startswith(f"host {NODE} was lost: its process ended with code 1")
    assert "the worker ended with code -9" in reason
    assert [host.name for host in driven.fleet.hosts] == ["local:a"]


@pytest.mark.long
def test_a_node_that_ray_does_not_have_is_named_with_those_that_it_has(session: Path) -> None:
    with pytest.raises(HostLostError, match="0 nodes called nobody, 1 expected; it has pgdyno-no"):
        look(Fleet(("local:a", "ray:nobody")))


@pytest.mark.long
def test_a_cluster_that_lets_everybody_in_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with ray_cluster("disabled") as (_, env):
        for name, value in (env | {"RAY_AUTH_MODE": "token"}).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(head, "transports", patient)
        with pytest.raises(HostLostError, match="the Ray cluster lets in who has no token"):
            look(FLEET)
