"""What a run recommends, given to a real server: it takes every line, and then has it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psycopg
import pytest

from pgdyno.api import Run
from tests.cluster.conftest import DEBIAN_BINDIR, OLD_VERSION_FIRST, cluster_apart
from tests.data.miniature import write_miniature

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("version", OLD_VERSION_FIRST)
def test_a_server_takes_what_is_recommended(version: str, folder: Path) -> None:
    run = Run(write_miniature(folder / "demo.sqlite", rounds=6, invalid=()))
    script = run.configuration("sql", lowest_rung="D2")
    with cluster_apart(version, "socket") as cluster:
        connection = cluster.connection()
        where = psycopg.conninfo.make_conninfo(**connection.arguments())
        before = run.configuration("diff", lowest_rung="D2", database=where)
        subprocess.run(
            [f"{DEBIAN_BINDIR}/psql", "-qX", "-v", "ON_ERROR_STOP=1", where],
            input=script, text=True, check=True, capture_output=True,
        )  # fmt: skip
        cluster.stop(clean=True)
        cluster.start([])
        after = run.configuration("diff", lowest_rung="D2", database=where)
    assert "-synchronous_commit = 'on'  # default" in before
    assert "+synchronous_commit = 'off'" in before
    assert "# already so: 3 of 3 settings" in after
