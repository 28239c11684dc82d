"""The disk that a dry run says a plan takes, against what runs were seen to take."""

from __future__ import annotations

from pgdyno.model.plan import Protocol
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Data, Mix, SourceFile, Workload
from pgdyno.plan.estimate.needs import Fixtures, disk_need
from pgdyno.plan.settings.configured import Configured
from tests.data.servers import GIB, HOST, installed
from tests.data.workloads import tpcc

MIB = 1 << 20
LOAD = tpcc(10)


def protocol(window_s: float) -> Protocol:
    return Protocol(
        rounds=3, warmup_s=1, window_s=window_s, drain_s=5, prewarm=True, margin=0.02,
        confidence=0.95, lowest_rung=Rung.D2,
    )  # fmt: skip


def parts(
    window_s: float,
    workload: Workload = LOAD,
    fixtures: Fixtures = (None,),
    **settings: str,
) -> dict[str, int]:
    config = Configured(installed(18), settings)
    return dict(disk_need(config, workload, protocol(window_s), HOST, fixtures).parts)


def test_a_run_of_minutes_takes_a_little_less_than_is_said() -> None:
    """Seen on two CPUs: 10 warehouses, 158,232 transactions a minute, 2 GB of max_wal_size."""
    said = parts(170, max_wal_size="2GB")
    data_before, data_after, wal = 1039 * MIB, 1442 * MIB, 2049 * MIB

    assert data_after - data_before < said["growth"] < 3 * (data_after - data_before)
    assert wal < said["WAL"] < 1.2 * wal
    trial = said["copy for the trial"] + said["growth"] + said["WAL"]
    assert data_after + wal < trial < 1.3 * (data_after + wal)


def test_a_fixture_keeps_wal_for_its_trials() -> None:
    said = parts(10)
    seen = (1039 + 897) * MIB

    assert 0.95 * seen < said["loaded fixture"] + said["WAL kept with it"] < 1.1 * seen
    there = parts(10, fixtures=(seen,))
    assert {"loaded fixture", "WAL kept with it"}.isdisjoint(there)
    assert there["copy for the trial"] + there["WAL"] >= seen, "the copy holds that WAL too"
    assert there["copy for the trial"] == said["copy for the trial"], "not less once it is loaded"


def test_wal_is_what_is_written_up_to_what_is_kept() -> None:
    seconds = parts(10, max_wal_size="64GB")["WAL"]

    assert 1 * GIB < seconds < 4 * GIB, "no load writes 64 GB in ten seconds"
    assert parts(7200, max_wal_size="64GB")["WAL"] >= 64 * GIB
    assert parts(7200, max_wal_size="1GB")["WAL"] < 1.2 * GIB
    kept = parts(7200, max_wal_size="1GB", wal_keep_size="8GB")["WAL"]
    assert 9 * GIB <= kept < 10 * GIB


def test_of_sql_of_ones_own_nothing_is_known() -> None:
    mix = Mix(SourceFile("mine.toml", ""), Data("tpcc", 10))
    own = parts(600, Workload("mix", 42, mix=mix), max_wal_size="16GB")
    ours = parts(600, max_wal_size="16GB")

    assert own["growth"] > 2 * ours["growth"]
    assert parts(10, Workload("mix", 42, mix=mix), max_wal_size="16GB")["WAL"] >= 16 * GIB
