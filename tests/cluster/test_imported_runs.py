"""What the importer counts of a real pgbench's log is what that pgbench tells in its summary."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pgdyno import import_results
from pgdyno.loader.copy import How, load
from pgdyno.model.workload import Pgbench, Workload
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import find_binaries
from tests.cluster.conftest import TARGETS, VERSIONS, cluster_apart

pytestmark = pytest.mark.cluster
TPCB = Workload("tpcb", 5, connections=4, terminals=4, threads=2, pgbench=Pgbench(1))
TRANSACTIONS = 4 * 200


@pytest.fixture(scope="module", params=VERSIONS)
def outputs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Path]]:
    """The summary of a pgbench of each version, and the log of each of its two threads."""
    folder = tmp_path_factory.mktemp("pgbench")
    bindir = find_binaries(TARGETS[request.param], postgres_user()).bindir
    with cluster_apart(request.param, "socket") as cluster:
        connection = cluster.connection()
        load(connection, TPCB, How(connections=2))
        conninfo = (
            f"host={connection.host} port={connection.port} user={connection.user}"
            f" dbname={connection.database}"
        )
        words = ("-n", "-M", "prepared", "-c", "4", "-j", "2", "-t", str(TRANSACTIONS // 4), "-r",
                 "-l", "--log-prefix", str(folder / "log"), conninfo)  # fmt: skip
        done = subprocess.run(
            [bindir / "pgbench", *words], capture_output=True, text=True, check=True, env=os.environ
        )
    summary = folder / "summary.txt"
    summary.write_text(done.stdout)
    return summary, sorted(folder.glob("log.*"))


def test_told_and_counted_agree(outputs: tuple[Path, list[Path]]) -> None:
    summary, logs = outputs
    told, *counted = import_results([summary, *logs]).results

    assert len(counted) == 2
    assert {one.form for one in counted} == {"log"}
    assert told.said("processed") == TRANSACTIONS
    assert sum(one.counts["transactions"] for one in counted) == TRANSACTIONS
    assert (told.failed or 0) == sum(one.failed or 0 for one in counted) == 0
    # Both from the first begin to the last end: of a log to the microsecond, of a summary after
    # the connections were made. Two threads end at the same time only about.
    begin = min(one.span.begin_s for one in counted if one.span)
    end = max(one.span.end_s for one in counted if one.span)
    # What is told is of a longer time: until all threads run, and after the last one has ended. A
    # busy machine makes much of that.
    assert 0.999 * told.value("tps") < TRANSACTIONS / (end - begin) < 1.5 * told.value("tps")
