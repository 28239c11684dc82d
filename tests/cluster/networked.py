"""Hosts with addresses of their own on this machine, and a server that they reach there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.target.cluster import Cluster
from tests.cluster.conftest import cluster_apart

ORIGIN = Origin(OriginKind.PLAN, "a test")
NETWORK = f"10.{os.getpid() // 250 % 250}.{os.getpid() % 250}"


@contextmanager
def namespaces() -> Iterator[dict[str, str]]:
    """Two network namespaces on a bridge, by their names; each with an address of its own."""
    bridge = f"pgd{os.getpid()}"
    names = {f"{bridge}{letter}": f"{NETWORK}.{number}" for letter, number in (("a", 2), ("b", 3))}

    def ip(words: str) -> None:
        subprocess.run(["ip", *words.split()], check=True, capture_output=True)

    with ExitStack() as stack:
        ip(f"link add {bridge} type bridge")
        stack.callback(ip, f"link del {bridge}")
        ip(f"addr add {NETWORK}.1/24 dev {bridge}")
        ip(f"link set {bridge} up")
        for name, address in names.items():
            ip(f"netns add {name}")
            stack.callback(ip, f"netns del {name}")
            ip(f"link add {name}v type veth peer name inside netns {name}")
            ip(f"link set {name}v master {bridge} up")
            ip(f"-n {name} addr add {address}/24 dev inside")
            ip(f"-n {name} link set inside up")
        yield names


@contextmanager
def server_on_the_network() -> Iterator[tuple[Cluster, str, str]]:
    """Somebody's server on the bridge's address, how it is reached there, and with what password.

    It logs who connects.
    """
    with cluster_apart("embedded-18", "tcp") as cluster:
        cluster.stop(clean=True)
        with (cluster.data / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {NETWORK}.0/24 scram-sha-256\n")
        values = {"listen_addresses": f"127.0.0.1,{NETWORK}.1", "log_connections": "on"}
        cluster.start([Setting(name, value, ORIGIN) for name, value in values.items()])
        there = cluster.measured_connection()
        assert there.password is not None
        conninfo = f"host={NETWORK}.1 port={there.port} user={there.user} dbname=postgres"
        yield cluster, conninfo, there.password
