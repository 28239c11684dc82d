"""The guides are executed: every `sh` block, in order, on real servers.

A block of `text` that follows one at once is what it prints: its lines, in their order, where `…`
stands for anything, and blanks for any others.
"""

from __future__ import annotations

import os
import re
import shlex
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
LONG = {"builds"}  # compiles PostgreSQL
# A plan has a stage in memory, where one pgdyno works at a time, also one that is none of ours.
OWN_MEMORY = "mount -t tmpfs tmpfs /dev/shm && exec bash -euc "
# All of them take half an hour: half by the worker that changes the machine, which would stand
# still for as long as a guide takes, and half by another one meanwhile.
WORKERS = ("machine", "guides")
GUIDES = [
    pytest.param(
        path, id=path.stem,
        marks=[pytest.mark.xdist_group(WORKERS[number % 2]),
               *[pytest.mark.long] * (path.stem in LONG)],
    )
    for number, path in enumerate(sorted((ROOT / "docs" / "guides").glob("*.md")))
]  # fmt: skip
BLOCK = re.compile(r"^```sh\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def server() -> Iterator[Connection]:
    with cluster_apart("embedded-18", "socket") as cluster:
        yield cluster.connection()


@pytest.fixture(scope="module")
def another() -> Iterator[Connection]:
    """A second server, for guides that want two."""
    with cluster_apart("embedded-18", "socket") as cluster:
        yield cluster.connection()


def conninfo(server: Connection, database: str) -> str:
    return f"host={server.host} port={server.port} user={server.user} dbname={database}"


@pytest.mark.document
@pytest.mark.parametrize("guide", GUIDES)
@pytest.mark.same_machine
def test_guide(
    guide: Path,
    folder: Path,
    home_env: Path,
    server: Connection,
    request: pytest.FixtureRequest,
) -> None:
    database = "guide_" + re.sub(r"\W", "_", guide.stem)
    with psycopg.connect(**server.arguments(), autocommit=True) as session:
        session.execute(f"CREATE DATABASE {database}".encode())
    blocks = BLOCK.findall(guide.read_text())
    assert blocks, "a guide without commands"
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PGDYNO_HOME": str(home_env),
        "CONNINFO": conninfo(server, database),
        "PLANS": str(ROOT / "plans"),
    }
    if "$ANOTHER" in guide.read_text():
        environment["ANOTHER"] = conninfo(request.getfixturevalue("another"), "postgres")
    for block, shown in blocks:
        done = subprocess.run(
            in_memory_of_its_own(block),
            cwd=folder, env=environment, capture_output=True, text=True, timeout=DEADLINE_S,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        assert_shows(done.stdout + done.stderr, shown)


def in_memory_of_its_own(block: str) -> list[str]:
    """What carries out a block; as root, with a /dev/shm that nobody else sees."""
    if os.geteuid() != 0:
        return ["bash", "-euc", block]
    return ["unshare", "--mount", "bash", "-euc", OWN_MEMORY + shlex.quote(block)]


def assert_shows(printed: str, shown: str) -> None:
    """The lines of a guide stand in what was printed, one after the other."""
    said, place = " ".join(printed.split()), 0
    for line in shown.splitlines():
        parts = [re.escape(" ".join(part.split())) for part in line.split("…")]
        found = re.compile(".*?".join(parts)).search(said, place)
        assert found, f"{line!r} does not follow in {said[place:]}"
        place = found.end()


def test_what_a_guide_shows_is_looked_for_in_order() -> None:
    assert_shows("a flush takes 1 µs\n (1 to 2)\nb faster", "a flush takes … µs (…)\nb faster\n")
    for wrong in ("c faster\n", "b faster\na flush takes …\n"):
        with pytest.raises(AssertionError, match="does not follow"):
            assert_shows("a flush takes 1 µs\nb faster", wrong)
