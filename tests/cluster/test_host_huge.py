"""Huge pages of real servers: all ways of counting agree, and what was counted is enough."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from pgdyno.host.huge_pages import Count, count, mapped_pages
from pgdyno.host.knob_location import knob_location
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import find_binaries
from pgdyno.target.cluster import Cluster, initdb
from pgdyno.target.home import made_for
from pgdyno.target.host_facts import host_facts
from tests.cluster.conftest import DEBIAN_BINDIR, TARGETS, VERSIONS
from tests.cluster.test_host import pgdyno, without_the_right
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("machine")]
STARTS_MAX = 20  # without a start, though there are pages
# What moves the size of the shared memory, in ways that no formula of ours follows.
CONFIGURED = {"shared_buffers": "200MB", "max_connections": "77", "max_locks_per_transaction": "99"}


@dataclass(frozen=True)
class Server:
    """A cluster that may be started and stopped."""

    data: Path
    home: Path
    cluster: Cluster

    def start(self, **settings: str) -> str:
        """Start it; returns a conninfo."""
        origin = Origin(OriginKind.PLAN, "of this test")
        self.cluster.start([Setting(name, value, origin) for name, value in settings.items()])
        arguments = self.cluster.connection().arguments()
        return psycopg.conninfo.make_conninfo(**arguments)

    def count(self) -> Count:
        """By its folder."""
        return count(str(self.data))


@contextmanager
def made(name: str, folder: Path, home: Path) -> Iterator[Server]:
    user = postgres_user()
    binaries = find_binaries(TARGETS[name], user)
    (folder / "cluster").mkdir()
    data = folder / "cluster" / "data"
    initdb(binaries, data, user, ("--no-sync",))
    with (data / "postgresql.conf").open("a") as conf:
        conf.writelines(f"{name} = {value}\n" for name, value in CONFIGURED.items())
    cluster = Cluster(binaries, data, user, "socket")
    try:
        yield Server(data, home, cluster)
    finally:
        cluster.close()


@pytest.fixture(params=VERSIONS)
def server(request: pytest.FixtureRequest, folder: Path, session_home: Path) -> Iterator[Server]:
    with made(request.param, folder, session_home) as found:
        yield found


def test_all_ways_of_counting_agree(server: Server) -> None:
    stopped = server.count()
    assert stopped.how == "by postgres -C shared_memory_size_in_huge_pages"
    assert stopped.pages >= 100

    conninfo = server.start()
    running = count(conninfo)
    measured = server.count()  # the way of the versions that cannot be asked
    assert running.how == "by SHOW shared_memory_size_in_huge_pages"
    assert measured.how.startswith(f"measured: the shared memory of process {server.cluster.pid}")
    assert stopped.pages == running.pages == measured.pages
    with psycopg.connect(conninfo) as session:
        row = session.execute("SELECT pg_backend_pid()").fetchone()
        assert row is not None
        maps = Path(f"/proc/{row[0]}/maps").read_text()
        assert mapped_pages(maps, host_facts(Path("/")).huge_page_bytes) == stopped.pages

    server.cluster.stop(clean=True)
    assert server.count() == stopped


@pytest.mark.long
def test_system_v_memory_is_measured_too(server: Server) -> None:
    stopped = server.count()
    server.start(shared_memory_type="sysv")
    assert server.count().pages == stopped.pages


def test_a_configuration_in_a_folder_of_its_own(server: Server, folder: Path) -> None:
    etc = made_for(folder / "etc", postgres_user())
    conf = (server.data / "postgresql.conf").rename(etc / "postgresql.conf")
    with conf.open("a") as more:
        more.write(f"data_directory = '{server.data}'\n")
    assert count(str(etc)).pages >= 100
    with pytest.raises(PlanError, match=r"holds no postgresql.conf"):
        server.count()


@pytest.mark.long
def test_pages_of_another_size_are_refused(server: Server) -> None:
    with (server.data / "postgresql.conf").open("a") as conf:
        conf.write("huge_page_size = 1GB\n")
    with pytest.raises(PlanError, match=r"asks for huge pages of 1.00 GiB"):
        server.count()


@pytest.mark.long
def test_programs_of_another_version_are_refused(server: Server) -> None:
    (server.data / "PG_VERSION").write_text("16\n")
    with pytest.raises(TargetError, match="no programs of PostgreSQL 16 found"):
        server.count()
    with pytest.raises(PlanError, match=r"is PostgreSQL 15\.\d+, the cluster is of PostgreSQL 16"):
        count(str(server.data), Path(DEBIAN_BINDIR))


def test_an_old_server_must_run(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgdyno.host.huge_pages.TELLS_SINCE", 19)
    with pytest.raises(TargetError, match="says how much shared memory it takes only while it"):
        server.count()
    server.start()
    assert server.count().pages >= 100


@pytest.mark.wide
def test_the_owner_of_the_data_may_count_and_is_told_the_commands(server: Server) -> None:
    needed = server.count().pages
    done = without_the_right(
        server.home, "host", "apply", "--huge-pages-for", str(server.data), "vm.swappiness=57"
    )
    assert done.returncode == 1, done.stderr
    assert f"echo {needed} | sudo tee /proc/sys/vm/nr_hugepages" in done.stdout
    server.start()
    assert f"echo {needed} |" in without_the_right(
        server.home, "host", "apply", "--huge-pages-for", str(server.data)
    ).stdout  # fmt: skip


def started_on(server: Server, pages: int) -> str:
    """Start it on huge pages, of which servers of other tests take some for a while.

    Raises:
        TargetError: It does not start, however often there are as many as it needs.
    """
    found: list[str] = []
    failures = 0

    def begun() -> bool:
        nonlocal failures
        if free_pages() < pages:
            return False
        try:
            found.append(server.start(huge_pages="on"))
        except TargetError:
            failures += free_pages() >= pages
            if failures == STARTS_MAX:
                raise
            return False
        return True

    until(begun, f"a server on {pages} huge pages")
    return found[0]


def free_pages() -> int:
    """Huge pages that nobody has, or was promised."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    counts = dict(line.split()[:2] for line in lines if line.startswith("HugePages_"))
    return int(counts["HugePages_Free:"]) - int(counts["HugePages_Rsvd:"])


def make_room() -> None:
    """Free what keeps the kernel from finding huge pages: files that other tests left cached.

    What `host apply` says of it is tested elsewhere (test_host_change.py).
    """
    os.sync()
    for name, word in (("drop_caches", "3"), ("compact_memory", "1")):
        Path("/proc/sys/vm", name).write_text(word)


@pytest.mark.wide
def test_what_was_counted_is_enough_and_not_more(server: Server) -> None:
    pages = knob_location("vm.nr_hugepages")
    if not os.access(pages.path, os.W_OK):
        pytest.skip("this user may not change the machine")
    before = pages.read()
    needed = server.count().pages
    if before == str(needed):
        pytest.skip("the machine has exactly as many")
    home = server.data.parent.parent

    planned = pgdyno(home, "host", "plan", "--huge-pages-for", str(server.data))
    assert planned.returncode == 0, planned.stderr
    assert f"{needed} huge pages for {server.data}, by postgres -C" in planned.stdout
    assert pages.read() == before

    make_room()
    try:
        applied = pgdyno(home, "host", "apply", "--huge-pages-for", str(server.data))
        assert applied.returncode == 0, applied.stderr
        assert pages.read() == str(needed)
        conninfo = started_on(server, needed)
        assert server.count().pages == needed, "also by the mapping of huge pages"
        with psycopg.connect(conninfo) as session:
            if session.info.server_version >= 170000:
                assert session.execute("SHOW huge_pages_status").fetchone() == ("on",)
        shown = pgdyno(home, "host", "show", "--huge-pages-for", conninfo)
        assert f"{needed}  (huge pages of" in shown.stdout, shown.stderr
        assert "as advised" in shown.stdout.split("vm.nr_hugepages")[1].split("swap")[0]
        server.cluster.stop(clean=True)
        pages.write(str(needed - 1))
        with pytest.raises(TargetError, match="could not map anonymous shared memory"):
            server.start(huge_pages="on")
        pages.write(str(needed))
    finally:
        restored = pgdyno(home, "host", "restore")
        left = pages.read()
        pages.write(before)  # whatever failed, the next test finds its machine
    assert restored.returncode == 0, restored.stderr
    assert left == before
    assert pages.read() == before
