"""Hosts that SSH reaches: they fill tables together, and drive a plan that they have filled."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgdyno.loader.copy import How, load
from pgdyno.model.run import TrialState
from tests.cluster.loading import PGBENCH, contents, keys, new_database, run
from tests.cluster.networked import server_on_the_network
from tests.cluster.ssh_hosts import SSHD, SshHosts, ssh_hosts
from tests.cluster.test_fleet import PLAN, measured_together
from tests.cluster.test_run import pgdyno
from tests.data.workloads import tpcb

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces are root's to make"),
    pytest.mark.skipif(not SSHD.exists(), reason="no server of SSH: `make packages` unpacks one"),
]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    with ssh_hosts(tmp_path_factory.mktemp("ssh")) as found:
        yield found


def way(hosts: SshHosts) -> tuple[str | Path, ...]:
    """How they are named on a command line."""
    return ("--hosts", ",".join(hosts.names), "--hosts-python", sys.executable,
            "--ssh-config", hosts.config)  # fmt: skip


@pytest.mark.wide
def test_hosts_that_ssh_reaches_fill_tables_together(
    hosts: SshHosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server_on_the_network() as (cluster, conninfo, password):
        monkeypatch.setenv("PGPASSWORD", password)
        shop, alone = (new_database(cluster.connection(), name) for name in ("shop", "alone"))
        there = conninfo.replace("dbname=postgres", "dbname=shop")
        words = ("load", "tpcb", "-d", there, "-s", "2", "-c", "4", *way(hosts))
        keys_of_hosts = hosts.known.read_text()
        hosts.known.write_text(keys_of_hosts.replace(hosts.addresses[1], "10.0.0.1"))
        refused = pgdyno(*words, code=4)
        untouched = run(shop, "SELECT to_regclass('pgdyno_load') IS NULL")
        hosts.known.write_text(keys_of_hosts)

        done = pgdyno(*words, "--json")

        load(alone, tpcb(2), How(connections=2))
        assert contents(shop, PGBENCH) == contents(alone, PGBENCH)
        assert keys(shop) == keys(alone)
        log = cluster.log_text()
    loaded = json.loads(done.stdout)
    assert list(loaded["hosts"]) == list(hosts.names)
    assert sum(one["rows"] for one in loaded["hosts"].values()) == loaded["rows"]
    assert all(one["rows"] > 0 for one in loaded["hosts"].values())
    for address in hosts.addresses:
        assert f"connection received: host={address}" in log
    assert f"host {hosts.names[1]} could not be reached" in refused.stderr
    assert "Nothing was changed." in refused.stderr
    assert untouched == [(True,)]
    for said in (done.stdout, done.stderr, refused.stderr, log, hosts.logs()):
        assert password not in said


@pytest.mark.long
def test_hosts_that_ssh_reaches_fill_and_drive_a_plan(
    hosts: SshHosts, folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "hosts.toml"
    way_there = f'\npython = "{sys.executable}"\nssh_config = "{hosts.config}"'
    named = ", ".join(f'"{name}"' for name in hosts.names)
    path.write_text(PLAN.format(hosts=named).replace(f"[{named}]", f"[{named}]{way_there}"))
    with server_on_the_network() as (_, conninfo, password):
        monkeypatch.setenv("PGPASSWORD", password)
        out, trials = measured_together(folder, path, conninfo)

    assert [trial.state for trial in trials] == [TrialState.FINISHED] * 2
    for trial in trials:
        assert trial.result is not None
        assert trial.result.fleet is not None
        assert [host.name for host in trial.result.fleet.hosts] == list(hosts.names)
        assert all(host.ended > 0 for host in trial.result.fleet.hosts)
    for written in (*folder.iterdir(), *hosts.folder.glob("*.log")):
        assert password.encode() not in written.read_bytes(), written
    assert out.with_suffix(".html").exists()
