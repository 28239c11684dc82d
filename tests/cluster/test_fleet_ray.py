"""A host that Ray reaches: on a cluster that the test starts in a folder of its own, and stops."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
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
def ray_cluster(mode: str) -> Iterator[tuple[Path, dict[str, str]]]:
    """A cluster of one node; its folder, and what the environment of its users holds."""
    folder = Path(tempfile.mkdtemp(prefix="pgd-ray-"))  # short: sockets lie in it
    token = folder / "token"
    token.write_text("0123456789abcdef" * 4)
    token.chmod(0o600)
    port = free_port()
    env = {"RAY_AUTH_MODE": mode, "RAY_AUTH_TOKEN_PATH": str(token)}
    words = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block",
             "--port", str(port), "--node-name", NODE.partition(":")[2], "--num-cpus=1",
             "--include-dashboard=false", "--disable-usage-stats", "--temp-dir", str(folder / "s"),
             "--object-store-memory=80000000"]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = start(words, env=env | PATIENT, log=log.fileno(), dies_with_us=signal.SIGTERM)
        try:
            until(lambda: started(process, folder / "log"), "Ray runs")
            yield folder, env | {"RAY_ADDRESS": f"127.0.0.1:{port}"}
        finally:
            process.signal(signal.SIGTERM)
            process.wait(DEADLINE_S)
            for one in of_folder(folder):
                with suppress(psutil.NoSuchProcess):
                    one.kill()
            process.kill()
            until(lambda: not of_folder(folder), "Ray has ended")
            shutil.rmtree(folder)


def patient() -> Mapping[str, Transport]:
    """The transports, with a deadline that only a defect reaches."""
    return {name: replace(one, hello_s=600.0) for name, one in transports().items()}


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[Path, dict[str, str]]]:
    with ray_cluster("token") as found:
        yield found


@pytest.fixture
def session(cluster: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cluster that this process may enter."""
    folder, env = cluster
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    # The node is this host, which is refused, and so are a server's sockets.
    for module in (head, loading_hosts):
        monkeypatch.setattr(module, "transports", patient)
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
