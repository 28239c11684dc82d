"""How far commands of other roles are: a role without pg_monitor is told that they run, no more."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

import pgdyno
from pgdyno.sample.sampler import Sampler, Subject
from pgdyno.sample.samplers import server_progress
from tests.cluster.conftest import DEBIAN_BINDIR
from tests.waiting import until

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("bindir", [None, DEBIAN_BINDIR], ids=["18", "15"])
def test_commands_of_others_run_and_how_far_they_are_is_not_known(
    bindir: str | None, session_home: object
) -> None:
    """That none runs would be told to everybody: autovacuum is another's for every role."""
    with pgdyno.Server({}, bindir=bindir) as running:

        def connect(**changed: str) -> psycopg.Connection[Any]:
            return psycopg.connect(**{**running.connection.arguments(), **changed}, autocommit=True)

        def sampler(session: psycopg.Connection[Any]) -> Sampler:
            found = server_progress.sampler(Subject(session, ["postgres"]))
            assert isinstance(found, list)
            return next(one for one in found if isinstance(one, Sampler))

        with connect() as owner:
            owner.execute("CREATE TABLE seen (a int); CREATE ROLE guest LOGIN")
            with connect(user="guest") as other, connect() as session:
                guest, all_of_it = sampler(other), sampler(owner)
                with session.cursor().copy("COPY seen FROM STDIN"):
                    until(lambda: all_of_it.take()["progress.copy.running"] == 1, "the copy")
                    told = guest.take()
                    assert told["progress.copy.running"] == 1
                    assert not told.keys() & {"progress.copy.done", "progress.copy.total"}
                    assert "progress.copy.done" in all_of_it.take()
                assert guest.take()["progress.copy.done"] == 0, "none runs: nothing is hidden"
