"""Power cuts: what PostgreSQL owes comes back from every disk, and controls lose what they must."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pgdyno.disk.record import Made, make_disk, record_span
from pgdyno.disk.recording import recording
from pgdyno.folders import Folder
from pgdyno.model.errors import TargetError
from pgdyno.model.plan import Target as TargetPlan
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.shell import postgres_user, run
from pgdyno.target.binaries import Binaries, find_binaries
from pgdyno.target.cluster import Cluster, initdb
from tests.cluster.acknowledged import Ledger, load, objections, prepare

pytestmark = pytest.mark.cluster
_RECORD_BYTES_MAX = 2 << 30
_GOLDEN = 0.618_033_988_749_895
USER = postgres_user()


@dataclass
class Recorded:
    """A load that was recorded, and what it was told."""

    folder: Folder
    binaries: Binaries
    settings: Sequence[Setting]
    ledger: Ledger
    first_ns: int
    last_ns: int

    def instant(self, seed: int) -> int:
        """Somewhere within the load; those of several seeds lie far apart."""
        share = seed * _GOLDEN % 1
        return self.first_ns + round(share * (self.last_ns - self.first_ns))


@pytest.fixture
def binaries() -> Binaries:
    return find_binaries(TargetPlan("embedded"), USER)


@pytest.fixture
def held(folder: Path) -> Iterator[Folder]:
    with Folder.hold(folder) as held:
        yield held


def asked(**values: str) -> list[Setting]:
    origin = Origin(OriginKind.TARGET, "a test")
    return [Setting(name, value, origin) for name, value in values.items()]


def record(held: Folder, binaries: Binaries, seconds: float, settings: list[Setting]) -> Recorded:
    """A new cluster under a load, recorded."""
    initdb(binaries, held.path / "data", USER, ("--no-sync",))
    with recording(held, "data", "record", _RECORD_BYTES_MAX) as current:
        cluster = Cluster(binaries, held.path / "data", USER, "socket", held)
        try:
            cluster.start(settings)
            prepare(cluster.connection())
            ledger = load(cluster.connection(), seconds, checkpoint_s=0.4)
            cluster.stop(clean=False)
        finally:
            cluster.close()
    assert current.recorded is not None
    assert not current.recorded.full
    assert record_span(held, "record").ended
    first, last = min(ledger.asked_ns.values()), max(ledger.acknowledged_ns.values())
    return Recorded(held, binaries, settings, ledger, first, last)


def cut(of: Recorded, seed: int, *, thorough: bool) -> tuple[Made, list[str]]:
    """The disk of a seed, and what is wrong with what came back from it."""
    name, instant_ns = f"disk{seed}", of.instant(seed)
    made = make_disk(of.folder, "record", name, instant_ns, seed)
    cluster = Cluster(of.binaries, of.folder.path / name, USER, "socket", of.folder)
    try:
        cluster.start(of.settings)
        found = objections(cluster.connection(), of.ledger, instant_ns)
        if thorough:
            found += amcheck(of.binaries, cluster)
        cluster.stop(clean=True)
        checksums = run([of.binaries.program("pg_checksums"), "--check", "-D", cluster.data],
                        user=USER, check=False)  # fmt: skip
        if checksums.code:
            found.append(checksums.stderr[-300:])
    except Exception as error:  # whatever a damaged server says
        found = [f"it does not come back: {error}"]
    finally:
        cluster.close()
        of.folder.remove_folder(name)
    return made, found


def amcheck(binaries: Binaries, cluster: Cluster) -> list[str]:
    """What pg_amcheck says of all databases, indexes against their tables."""
    at = cluster.connection()
    words = ["--all", "--heapallindexed", "--install-missing", "-U", at.user, "-h", at.host]
    done = run([binaries.program("pg_amcheck"), *words, "-p", str(at.port)], user=USER, check=False)
    return [f"pg_amcheck: {(done.stdout + done.stderr)[-300:]}"] if done.code else []


def test_every_acknowledged_commit_comes_back(held: Folder, binaries: Binaries) -> None:
    of = record(held, binaries, 3.0, [])

    results = [cut(of, seed, thorough=True) for seed in range(1, 6)]

    assert [found for _, found in results] == [[]] * 5
    assert sum(made.sectors_lost for made, _ in results) > 0  # there was something to lose


def test_without_fsync_commits_are_lost(held: Folder, binaries: Binaries) -> None:
    of = record(held, binaries, 1.5, asked(fsync="off"))

    results = [" ".join(cut(of, seed, thorough=False)[1]) for seed in range(1, 6)]

    # A lock file that was cut short keeps a server from starting, but is no loss.
    assert any(found and "lock file" not in found for found in results)


def test_without_full_pages_some_disks_are_torn_for_good(held: Folder, binaries: Binaries) -> None:
    of = record(held, binaries, 3.0, asked(full_page_writes="off", shared_buffers="1MB"))

    results = [cut(of, seed, thorough=False) for seed in range(1, 9)]

    assert any("invalid page" in " ".join(found) or "checksum" in " ".join(found)
               for made, found in results if made.blocks_torn)  # fmt: skip


def test_an_instant_outside_of_the_record_is_refused(held: Folder, binaries: Binaries) -> None:
    of = record(held, binaries, 0.2, [])
    span = record_span(held, "record")

    for instant_ns in (span.begun_ns - 1, span.until_ns + 1):
        with pytest.raises(TargetError, match=r"instant|begun"):
            make_disk(of.folder, "record", "disk", instant_ns, 1)
