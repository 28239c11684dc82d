"""Processes of real servers by their roles, of two versions: what they used adds up."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

import pgdyno
from pgdyno.sample.process_roles import ROLES
from pgdyno.sample.sampler import Row, Sampler, Subject
from pgdyno.sample.samplers import driver_io, processes
from tests.cluster.conftest import DEBIAN_BINDIR
from tests.waiting import until

pytestmark = pytest.mark.cluster


def postmaster_of(session: psycopg.Connection[Any]) -> int:
    row = session.execute("SHOW data_directory").fetchone()
    assert row is not None
    return int((Path(row[0]) / "postmaster.pid").read_text().split()[0])


def processes_of(session: psycopg.Connection[Any]) -> Callable[[], Row]:
    own = {session.info.backend_pid}
    found = processes.sampler(Subject(session, (), postmaster_of(session), own_pids=own))
    assert isinstance(found, list)
    (one,) = found  # nothing is missing
    assert isinstance(one, Sampler)
    return one.take


def counts(row: Row) -> dict[str, float]:
    return {role: row[f"process.{role}.count"] for role in ROLES}


@pytest.mark.parametrize(
    ("bindir", "io_workers"), [(None, 3), (DEBIAN_BINDIR, 0)], ids=["18", "15"]
)
def test_processes_are_known_by_role_and_keep_what_they_used(
    bindir: str | None, io_workers: int, home_env: object
) -> None:
    expected = dict.fromkeys(set(ROLES) - {"other"}, 0.0) | {
        "checkpointer": 1, "background_writer": 1, "wal_writer": 1, "io_worker": io_workers,
        "telemetry": 1,
    }  # fmt: skip
    with pgdyno.Server({"autovacuum": "off"}, bindir=bindir) as server, server.connect() as session:
        take = processes_of(session)
        # Titles are not there at once, and who asked whether it is ready may still be there.
        until(lambda: expected.items() <= counts(take()).items(), f"processes {expected}")
        first = take()
        others = counts(first)["other"]  # the postmaster, and what a version has
        assert others >= 1

        with server.connect() as busy:
            busy.execute("SELECT sum(n) FROM generate_series(1, 2000000) AS n").fetchone()
            during = take()
        assert counts(during) == expected | {"other": others, "backend": 1}
        assert during["process.backend.cpu_s"] > first["process.backend.cpu_s"]
        assert during["process.backend.cpu_s"] > during["process.checkpointer.cpu_s"]

        until(lambda: not take()["process.backend.count"], "the end of the session")
        after = take()
        assert all(after[name] >= during[name] for name in after if not name.endswith(".count"))
        parts = [f"process.{role}.cpu_s" for role in (*ROLES, "unseen")]
        grown = sum(after[part] - first[part] for part in parts)
        # Of what has ended the server's own clock tells ticks of 10 ms.
        assert grown == pytest.approx(after["server.cpu_s"] - first["server.cpu_s"], abs=0.05)


WRITES = """
import os, sys
with open(sys.argv[1], "wb") as file:
    file.write(bytes(1 << 20))
    file.flush()
    os.fsync(file.fileno())
print("written", flush=True)
sys.stdin.read()
"""


def test_what_a_driver_wrote_stays_when_it_has_ended(tmp_path: Path) -> None:
    there: Any = object()  # a session
    pids: list[int] = []
    one = driver_io.sampler(Subject(there, driver_pids=lambda: pids))
    assert isinstance(one, Sampler)
    assert set(one.take().values()) == {0}

    command = [sys.executable, "-c", WRITES, str(tmp_path / "file")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        pids.append(process.pid)
        told = one.take()
        counted = psutil.Process(process.pid).io_counters()
        process.communicate()
    assert told == {
        "driver.read_bytes": counted.read_bytes, "driver.write_bytes": counted.write_bytes
    }  # fmt: skip
    assert one.take() == told
