"""Whose commits a server counts: those of the load, told from those of who looks on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest

import pgdyno
from pgdyno.catalog.waits import wait_of
from pgdyno.sample.own_transactions import NAME
from pgdyno.sample.recorder import Recorder
from pgdyno.sample.sampler import Subject
from pgdyno.session import own_session
from pgdyno.target.interface import Ready
from pgdyno.trial.sampled import growth
from pgdyno.trial.servers import recorders_of_servers
from tests.cluster.conftest import DEBIAN_BINDIR
from tests.data.workloads import tpcb
from tests.waiting import until

pytestmark = pytest.mark.cluster
COMMITS, OWN = "database.commits", "database.own_commits"
ROLLBACKS, OWN_ROLLBACKS = "database.rollbacks", "database.own_rollbacks"


@pytest.fixture(scope="module", params=[None, DEBIAN_BINDIR], ids=["18", "15"])
def server(request: pytest.FixtureRequest, session_home: object) -> Iterator[pgdyno.Server]:
    with pgdyno.Server({"autovacuum": "off"}, bindir=request.param) as running:
        with running.connect() as session:
            session.execute("CREATE DATABASE driven")
        yield running


@contextmanager
def looked_on(server: pgdyno.Server, *, aside: bool = True) -> Iterator[Recorder]:
    """All samplers of the server, with a window that lasts as long as the context."""
    maintenance = server.connection
    driven = maintenance.to("driven")
    ready = Ready(driven, (), None, None, 0.0, "", aside=maintenance if aside else None)
    own: set[int] = set()
    subject = Subject(databases=["driven"], ours=True, own_pids=own, wait_of=wait_of)
    with ExitStack() as stack:
        another = stack.enter_context(own_session(ready.beside))
        own.add(another.info.backend_pid)
        ((_, recorder),) = recorders_of_servers(ready, tpcb(1), subject, own, stack)
        looks(recorder, 1)
        recorder.window_begins()
        looks(recorder, 1)
        yield recorder
        recorder.window_ends()
        looks(recorder, 2)


def takes(recorder: Recorder) -> int:
    (one,) = (o for o in recorder.telemetry().samplers if o.name == "server statistics")
    return one.takes


def looks(recorder: Recorder, more: int) -> None:
    before = takes(recorder)
    until(lambda: takes(recorder) >= before + more, "further looks")


def grown(recorder: Recorder) -> Mapping[str, float]:
    """From the first look to the last."""
    series = recorder.series()
    (one,) = (series for series in series if series.name == COMMITS)
    window = SimpleNamespace(window_ns=(int(one.unix_ns[0]), int(one.unix_ns[-1])))
    return growth(series, cast(Any, window))


def test_without_a_load_there_is_no_commit_of_the_load(server: pgdyno.Server) -> None:
    with looked_on(server) as recorder:
        looks(recorder, 2)

    found = grown(recorder)
    assert found[COMMITS] > 20, "the server counts each look"
    assert found[COMMITS] - found[OWN] == 0
    assert found[ROLLBACKS] - found[OWN_ROLLBACKS] == 0


def test_every_commit_of_a_load_is_counted_once(server: pgdyno.Server) -> None:
    with looked_on(server) as recorder:
        arguments = server.connection.to("driven").arguments()
        with psycopg.connect(**arguments, autocommit=True, prepare_threshold=None) as load:
            for _ in range(40):
                load.execute("SELECT count(*) FROM pg_class")
            for _ in range(3):
                with pytest.raises(psycopg.errors.DivisionByZero):
                    load.execute("SELECT 1 / 0")
        looks(recorder, 2)

    found = grown(recorder)
    # A session's start is a transaction, too.
    assert found[COMMITS] - found[OWN] == 41
    assert found[ROLLBACKS] - found[OWN_ROLLBACKS] == 3


def test_looks_that_a_lock_defeats_are_counted_as_what_they_are(server: pgdyno.Server) -> None:
    with looked_on(server) as recorder, server.connect() as other:
        with other.transaction():
            other.execute("LOCK TABLE pg_tablespace")
            other.execute("LOCK TABLE pg_database")
            until(lambda: any(one.gap_s or one.lost for one in recorder.telemetry().samplers),
                  "a look is defeated")  # fmt: skip
            recorder.window_ends()
            until(lambda: any(one.failure for one in recorder.telemetry().samplers),
                  "a snapshot is defeated")  # fmt: skip
        looks(recorder, 2)

    found = grown(recorder)
    assert found[OWN_ROLLBACKS] > 0
    assert found[ROLLBACKS] - found[OWN_ROLLBACKS] == 0
    assert found[COMMITS] - found[OWN] == 0


def test_what_a_lost_session_committed_last_is_not_known(server: pgdyno.Server) -> None:
    with looked_on(server) as recorder, server.connect() as other:
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                      " WHERE datname = 'driven'")  # fmt: skip
        looks(recorder, 3)

    found = grown(recorder)
    assert found[COMMITS] > 0
    assert OWN not in found


def test_where_several_sessions_look_on_in_the_database_none_is_told_apart(
    server: pgdyno.Server,
) -> None:
    with looked_on(server, aside=False) as recorder:
        pass

    assert OWN not in grown(recorder)
    (missing,) = (one for one in recorder.telemetry().missing if one.name == NAME)
    assert missing.reason == "further sessions of pgdyno's own look on in the driven database"


def test_a_pooler_hides_who_committed(server: pgdyno.Server) -> None:
    pooled = replace(server.connection.to("driven"), pooled=True)
    ready = Ready(pooled, (), None, None, 0.0, "", aside=server.connection)
    with ExitStack() as stack:
        subject = Subject(databases=["driven"], wait_of=wait_of)
        ((_, recorder),) = recorders_of_servers(ready, tpcb(1), subject, set(), stack)
    (missing,) = (one for one in recorder.telemetry().missing if one.name == NAME)
    assert missing.reason.startswith("a pooler stands in between")
