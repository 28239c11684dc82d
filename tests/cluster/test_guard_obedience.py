"""The daemon where a server does not do as it is told, or is not what it was: on real pairs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pgdyno import Guard, GuardLimits
from pgdyno.guard.data_directory import data_directory
from pgdyno.guard.include_file import read_pages
from pgdyno.target.cluster import Cluster
from tests.cluster.guarded import (
    ACCEPTED,
    ROLE,
    Guarded,
    execute,
    killed_standby,
    pair,
    stop,
)
from tests.waiting import until

pytestmark = pytest.mark.cluster
VERSIONS = ("embedded-18", pytest.param("debian-15", marks=pytest.mark.long))
PATIENT = GuardLimits(silence_s=3.0, hold_s=0.5)


@pytest.fixture(scope="module", params=VERSIONS)
def shared(request: pytest.FixtureRequest) -> Iterator[Guarded]:
    def prepare(cluster: Cluster) -> None:  # so that a restart of a server is told from a cut
        execute(cluster, f"GRANT pg_read_server_files TO {ROLE}")

    with pair(request.param, prepare) as found:
        yield found


@pytest.fixture
def guarded(shared: Guarded) -> Iterator[Guarded]:
    """A pair that is armed, with short limits, and not watched yet."""
    shared.arm(PATIENT)
    try:
        yield shared
    finally:
        shared.put_right()


@pytest.mark.wide
def test_a_server_that_does_not_follow_is_told(guarded: Guarded) -> None:
    """A mistake in a configuration file, and it reads none of them again."""
    daemon = guarded.watching()
    guarded.until_off()
    until(lambda: "pgdyno_guard_full_pages_off 1\n" in guarded.metrics(), "its next look says so")
    conf = guarded.data / "postgresql.conf"
    whole = conf.read_text()
    conf.write_text("x y z\n" + whole)
    back = killed_standby(guarded)
    try:
        until(lambda: any("the server has had full_page_writes off" in one
                          for one in guarded.status().wrong), "it is told")  # fmt: skip
        status = guarded.status()
        assert (status.code, status.pages, guarded.full_pages()) == (1, "on", "off")
        assert "pgdyno_guard_full_pages_off 1\n" in guarded.metrics(), "as the server has them"
        assert status.heartbeat is not None
        assert status.heartbeat.server_pages == "off"
        until(lambda: "server: " in " ".join(getattr(guarded.status().heartbeat, "reasons", ())),
              "it is a reason, too")  # fmt: skip
    finally:
        conf.write_text(whole)
        back()
    guarded.until_off()
    until(lambda: guarded.status().code == 0, "all is well again")
    assert guarded.status().wrong == ()
    stop(daemon)


@pytest.mark.wide
def test_a_standby_that_was_restarted_and_whose_boot_id_is_not_known_turns_them_on() -> None:
    with pair("embedded-18") as apart:  # with no more rights than the documentation asks for
        apart.arm(PATIENT)
        daemon = apart.watching()
        apart.until_off()
        killed_standby(apart)()
        apart.until_on("standby-power")
        again = [*ACCEPTED, "standby-power"]
        until(lambda: apart.guard(PATIENT).arm(again).allowed, "somebody says that it is whole")
        apart.until_off()
        stop(daemon)
        Guard(apart.data).disarm()


@pytest.mark.wide
def test_programs_that_moved_are_found_where_a_person_says(guarded: Guarded) -> None:
    """As after an upgrade: the server was started with programs that are no more."""
    guarded.primary.stop(clean=True)
    guarded.forget_the_boot()
    options = guarded.data / "postmaster.opts"
    bindir = guarded.binaries.program("postgres").parent
    options.write_text(options.read_text().replace(str(bindir), "/moved"))
    without = guarded.watching()
    assert "there is no program /moved/pg_controldata" in without.communicate()[0]
    assert without.returncode == 3
    daemon = guarded.watching(further=["--bindir", str(bindir)])
    until(
        lambda: read_pages(data_directory(guarded.data), guarded.include) == "on",
        "it is open again",
    )
    assert guarded.pg_ctl("start")[0] == 0
    stop(daemon)
