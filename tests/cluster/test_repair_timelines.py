"""A crashed primary whose standby follows another one by now."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.model.errors import TargetError
from pgdyno.model.lsn import lsn_of
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import find_binaries
from pgdyno.target.cluster import Cluster
from pgdyno.target.standby import Standby
from tests.cluster.conftest import TARGETS
from tests.cluster.crashed_pair import execute, pair_of, rows, torn
from tests.cluster.test_repair import contents

pytestmark = [pytest.mark.cluster, pytest.mark.wide]


def flushed(primary: Cluster) -> str:
    return str(rows(primary, "SELECT pg_current_wal_flush_lsn()")[0][0])


@pytest.mark.parametrize(
    "version", ["embedded-18", pytest.param("debian-15", marks=pytest.mark.long)]
)
def test_a_standby_that_replayed_what_another_primary_wrote_is_refused(
    version: str, folder: Path
) -> None:
    """What it has replayed lies before the end of the crashed WAL, and its files tell nothing."""
    user = postgres_user()
    with pair_of(version, folder) as pair:
        primary, first = pair.primary, pair.standby
        second = Standby(primary, find_binaries(TARGETS[version], user), user, "second")
        try:
            second.start()
            execute(primary, "CHECKPOINT", "UPDATE t SET v = i WHERE i % 10 = 0")
            first.wait_replayed(flushed(primary))
            first.stop(clean=True)
            second.wait_replayed(flushed(primary))  # so that the first has no more than this one
            second.stop(clean=True)
            execute(primary, "CREATE TABLE more AS SELECT i FROM generate_series(1, 100000) AS i")
            primary.stop(clean=False)
            assert torn(pair)

            second.cluster.start([], recovers=True)
            execute(second.cluster, "SELECT pg_promote()", "UPDATE t SET v = -1 WHERE i % 10 = 0")
            new = second.cluster.connection()
            follow = f"host={new.host} port={new.port} user={new.user}"
            origin = Origin(OriginKind.PLAN, "a test")
            first.cluster.start([Setting("primary_conninfo", follow, origin)], recovers=True)
            first.wait_replayed(flushed(second.cluster))
            needs = pair.crashed().needs
            assert needs is not None
            assert lsn_of(flushed(second.cluster)) < lsn_of(needs.end_lsn)
            before = contents(primary.data)

            with pytest.raises(TargetError, match="the standby is on timeline 2"):
                pair.repair()
            second.stop(clean=False)  # so that no receiver tells any more
            with pytest.raises(TargetError, match="timeline 2"):
                pair.repair(patience_s=1)
            assert contents(primary.data) == before
            assert list(pair.journals.glob("repair-*")) == []
        finally:
            second.close()
