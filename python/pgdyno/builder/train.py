"""What a build for PGO is trained with: our own TPC-C, for half a minute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg

from pgdyno.drive.driver import drive
from pgdyno.folders import scratch
from pgdyno.loader.copy import load
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError
from pgdyno.model.plan import Protocol, Workload
from pgdyno.model.settings import Origin, OriginKind, Rung, Setting
from pgdyno.model.workload import Face, Tpcc
from pgdyno.shell import OsUser
from pgdyno.target.binaries import Binaries
from pgdyno.target.cluster import DATABASE, Cluster, initdb
from pgdyno.target.home import made_for, remove_folder

_WORKLOAD = Workload("tpcc", seed=1, connections=4, terminals=4, tpcc=Tpcc(2, home="random"))
_FACES: tuple[Face, ...] = ("statement", "procedure")  # the protocol's side, and plpgsql's
_PROTOCOL = Protocol(
    rounds=1, warmup_s=1.0, window_s=14.0, drain_s=20.0, prewarm=False, margin=0.0,
    confidence=0.95, lowest_rung=Rung.D2,
)  # fmt: skip
_ORIGIN = Origin(OriginKind.TARGET, "training a build")
# What is measured later is work of the CPU: data in memory, and nobody waits for the disk.
_SETTINGS = tuple(
    Setting(name, value, _ORIGIN)
    for name, value in {
        "shared_buffers": "512MB", "max_wal_size": "4GB", "synchronous_commit": "off",
    }.items()
)  # fmt: skip


def train(bindir: Path, user: OsUser, profiles: Path) -> None:
    """Make a cluster, load it, drive it, stop it in good order; only the profiles stay.

    Args:
        bindir: The instrumented programs. Nobody but `user` may run them: who runs one first owns
            its profile, and others could not add theirs.
        user: Who runs them.
        profiles: Where they leave their profiles.

    Raises:
        TargetError: The server failed.
        DriveError: Loading or driving failed.
    """
    binaries = Binaries(bindir, "in training", 0, "", "", str(bindir))
    with scratch(Path("/tmp"), "pgdyno-train-") as folder:  # noqa: S108  a folder of ours in it
        data = folder.path / "data"
        initdb(binaries, data, user, ())
        with _server(binaries, data, user) as connection:
            with psycopg.connect(**connection.arguments(), autocommit=True) as session:
                session.execute(f"CREATE DATABASE {DATABASE}")
            loaded = load(connection.to(DATABASE), _WORKLOAD)
        # Loading is other work than what is measured, and would outweigh it.
        remove_folder(profiles)
        made_for(profiles, user, 0o755)
        with _server(binaries, data, user) as connection:
            for face in _FACES:
                workload = replace(_WORKLOAD, face=face)
                driven = drive(connection.to(DATABASE), workload, _PROTOCOL, loaded.c_load)
                if driven.outcome != "complete" or not driven.committed:
                    raise DriveError(f"the training ended with {driven.outcome}: {driven.errors}")


@contextmanager
def _server(binaries: Binaries, data: Path, user: OsUser) -> Iterator[Connection]:
    cluster = Cluster(binaries, data, user, "socket")
    try:
        cluster.start(_SETTINGS)
        yield cluster.connection()
        # In good order: a process writes its profile when it ends by itself, and not if a signal
        # ends it at once.
        cluster.stop(clean=True)
    finally:
        cluster.close()
