"""Clusters of ours: loaded once, restored, configured, read back; on 18 and on Debian's 15."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from pgdyno.model.errors import TargetError
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.model.workload import Pgbench, Workload
from pgdyno.plan import fixture_shape
from pgdyno.shell import Process
from pgdyno.target.own_target import OwnTarget
from tests.cluster.conftest import TARGETS, VERSIONS, Opener, cluster_apart, loaded

pytestmark = pytest.mark.cluster
ORIGIN = Origin(OriginKind.PLAN, "a test")


@pytest.fixture(params=VERSIONS)
def target(request: pytest.FixtureRequest, open_own: Opener) -> OwnTarget:
    return open_own(request.param)


def test_releases_store_as_their_fixtures_have_been_named_by(target: OwnTarget) -> None:
    shape = fixture_shape(TARGETS["embedded-18"], Workload("tpcb", 1, pgbench=Pgbench(1)),
                          target.facts)  # fmt: skip

    assert target.facts.disk_format is not None
    assert target.facts.disk_format.catalog_version > 2022_09_00
    assert shape.catalog_version is None


def test_a_fixture_is_loaded_once_and_consistent(target: OwnTarget) -> None:
    fixture = loaded(target)

    assert all(condition.ok for condition in fixture.conditions)
    assert len(fixture.conditions) == 12
    assert fixture.data_bytes > 50 << 20
    found = target.find_fixture(fixture.ident)
    assert found is not None
    assert found.reused


def test_a_trial_runs_on_a_copy_with_the_stages_settings(target: OwnTarget) -> None:
    fixture = loaded(target)
    settings = (
        Setting("shared_buffers", "256MB", ORIGIN),
        Setting("synchronous_commit", "off", ORIGIN),
        Setting("checkpoint_completion_target", "0.5", ORIGIN),
    )

    restored = target.restore(fixture.ident)
    ready = target.apply(settings)

    assert restored.method in ("copy", "reflink")
    values = {setting.name: setting for setting in ready.settings}
    assert values["shared_buffers"].value == "256MB"
    assert values["shared_buffers"].origin == "plan"
    assert values["synchronous_commit"].value == "off"
    with psycopg.connect(**ready.connection.arguments(), autocommit=True) as session:
        session.execute("DELETE FROM new_order")
    target.stop()
    target.restore(fixture.ident)
    ready = target.apply(())
    with psycopg.connect(**ready.connection.arguments()) as session:
        row = session.execute("SELECT count(*) FROM new_order").fetchone()
    assert row == (2 * 9000,)


def test_tcp_wants_a_password_and_has_it(open_own: Opener) -> None:
    target = open_own("embedded-18", transport="tcp")
    fixture = loaded(target)
    target.restore(fixture.ident)
    ready = target.apply(())

    assert ready.connection.host == "127.0.0.1"
    assert ready.connection.password is not None
    assert ready.connection.password not in repr(ready)
    psycopg.connect(**ready.connection.arguments()).close()
    wrong = ready.connection.arguments() | {"password": "wrong"}
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(**wrong)
    log = target.log_text()
    assert log is not None
    assert ready.connection.password not in log


def test_a_server_that_does_not_start_says_why(target: OwnTarget) -> None:
    fixture = loaded(target)
    target.restore(fixture.ident)

    with pytest.raises(TargetError, match=r"ended with code \d+ while starting.*shared_buffers"):
        target.apply([Setting("shared_buffers", "900TB", ORIGIN)])


def test_a_stop_that_is_broken_off_is_made_up_for_when_it_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A Ctrl-C, or a closed terminal: what a server still writes to cannot be removed.
    wait, waits = Process.wait, []

    def broken_off(self: Process, timeout_s: float) -> int | None:
        waits.append(timeout_s)
        if len(waits) == 1:
            raise KeyboardInterrupt
        return wait(self, timeout_s)

    with cluster_apart("embedded-18", "socket") as cluster:
        postmaster = Path("/proc") / str(cluster.pid)
        monkeypatch.setattr(Process, "wait", broken_off)
        with pytest.raises(KeyboardInterrupt):
            cluster.stop(clean=False)
        cluster.close()

        assert not postmaster.exists()


@pytest.mark.wide
def test_a_setting_overridden_elsewhere_is_an_error(target: OwnTarget) -> None:
    fixture = loaded(target)
    target.restore(fixture.ident)
    ready = target.apply([Setting("work_mem", "8MB", ORIGIN)])
    with psycopg.connect(**ready.connection.arguments(), autocommit=True) as session:
        session.execute("ALTER SYSTEM SET work_mem = '16MB'")
    data = target._work.path / "data"
    auto_conf = (data / "postgresql.auto.conf").read_text()
    target.stop()
    target.restore(fixture.ident)
    (data / "postgresql.auto.conf").write_text(auto_conf)

    with pytest.raises(TargetError, match="work_mem was set to 8MB, the server has 16MB"):
        target.apply([Setting("work_mem", "8MB", ORIGIN)])


def test_a_second_pgdyno_is_refused(open_own: Opener) -> None:
    open_own("embedded-18")

    with pytest.raises(TargetError, match="another pgdyno works in"):
        open_own("embedded-18")
