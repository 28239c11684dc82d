"""The guides are executed: every `sh` block, in order, on real servers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pgdyno.model.connection import Connection
from tests.cluster.conftest import cluster_apart
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[2]
EVERY_DAY = {"load-and-drive"}
GUIDES = [
    pytest.param(path, id=path.stem, marks=[] if path.stem in EVERY_DAY else [pytest.mark.long])
    for path in sorted((ROOT / "docs" / "guides").glob("*.md"))
]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def server() -> Iterator[Connection]:
    with cluster_apart("embedded-18", "socket") as cluster:
        yield cluster.connection()


@pytest.mark.parametrize("guide", GUIDES)
def test_guide(guide: Path, folder: Path, home_env: Path, server: Connection) -> None:
    database = "guide_" + re.sub(r"\W", "_", guide.stem)
    with psycopg.connect(**server.arguments(), autocommit=True) as session:
        session.execute(f"CREATE DATABASE {database}".encode())
    blocks = BLOCK.findall(guide.read_text())
    assert blocks, "a guide without commands"
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PGDYNO_HOME": str(home_env),
        "CONNINFO": f"host={server.host} port={server.port} user={server.user} dbname={database}",
        "PLANS": str(ROOT / "plans"),
    }
    for block in blocks:
        done = subprocess.run(
            ["bash", "-euc", block],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=DEADLINE_S,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
