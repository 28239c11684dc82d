"""What samplers of real servers declare is shown by some part of the report."""

from __future__ import annotations

from pathlib import Path

import pytest

import pgdyno
from pgdyno.analysis.run import analyse
from pgdyno.catalog.waits import wait_of
from pgdyno.model.description import Description, PreparedSql
from pgdyno.sample.sampler import Missing, Sampler, Snapshot, Subject
from pgdyno.sample.samplers import samplers_of
from pgdyno.store import RunFile
from tests.cluster.conftest import DEBIAN_BINDIR
from tests.data.declared import not_shown
from tests.data.miniature import write_miniature

pytestmark = pytest.mark.cluster
WORKLOAD = Description("mix", 1, kinds=("look",), statements=(PreparedSql("look.1", "SELECT 1"),))
SETTINGS = {"shared_preload_libraries": "pg_stat_statements", "track_io_timing": "on"}


@pytest.mark.parametrize("bindir", [None, DEBIAN_BINDIR], ids=["18", "15"])
def test_nothing_that_is_sampled_of_a_server_is_hidden(
    bindir: str | None, home_env: object, tmp_path: Path
) -> None:
    with RunFile.read(write_miniature(tmp_path / "run.sqlite")) as run:
        facts = analyse(run)
    with pgdyno.Server(SETTINGS, bindir=bindir) as server, server.connect() as session:
        subject = Subject(session, ["postgres"], ours=True, telemetry="full", described=WORKLOAD,
                          wait_of=wait_of)  # fmt: skip
        several = [one for one in samplers_of(subject) if not isinstance(one, Missing)]
    columns = [c.name for one in several if isinstance(one, Sampler) for c in one.columns]
    tables = {one.name for one in several if isinstance(one, Snapshot)}
    assert {"cpu.user_s", "wal.bytes", "slots.retained_bytes", "slru.transaction.hits"} <= {
        *columns
    }
    assert {"statements", "tables", "plans", "buffers"} <= tables
    assert not_shown(several, facts) == set()
