"""Strangers' files and tables, of any kind and wherever a step could meet them: all stay.

The fixed lists of the other tests say what is refused and how; here Hypothesis puts several of them
together.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pgdyno.loader.copy import How, Intent, load
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError, PgdynoError
from pgdyno.model.settings import ServerFacts
from pgdyno.probe.folder import own_folder
from pgdyno.shell import postgres_user
from pgdyno.store.output_file import write_new, write_page
from pgdyno.target.binaries import Binaries, find_binaries
from pgdyno.target.own_target import OwnTarget
from tests.attack.witness import database_facts, strangers_facts, tree
from tests.cluster.conftest import TARGETS, cluster_apart
from tests.cluster.loading import new_database, run
from tests.data.workloads import tpcb
from tests.reachable import reachable_folder
from tests.tally import count

pytestmark = pytest.mark.cluster
NOBODY = 65534


# -- files ------------------------------------------------------------------------------------

HOME, STAGE, HERE = "home", "stage", "here"
PLACES = (
    HOME, "home/work", "home/work/data", "home/fixtures", "home/fixtures/0123456789abcdef",
    "home/builds", "home/builds/0123456789ab", STAGE, "stage/pgdyno-work", "stage/pgdyno-work/data",
    "stage/.pgdyno-work.new", "stage/.pgdyno-storage-0123456789ab", HERE, "beside",
)  # fmt: skip
NAMES = (
    ".pgdyno", "lock", "data", "data.log", "data.sockets", "data.sockets-at", "work", "fixtures",
    "builds", "calibration.json", "fixture.json", "rehearsal", "0123456789abcdef.loading",
    "pgdyno-work", ".pgdyno-work.new", ".pgdyno-storage-0", "run.html", "first.toml", "letters",
)  # fmt: skip
KINDS = ("file", "folder", "link to a file", "link to a folder", "link to nowhere", "pipe")
OUTPUTS = {f"{HERE}/run.html", f"{HERE}/first.toml"}


class Stranger(NamedTuple):
    """Something of somebody's."""

    place: str
    name: str
    kind: str
    of_another_user: bool

    def put(self, top: Path) -> None:
        """Put it there, unless something is in the way."""
        folder, path = top / self.place, top / self.place / self.name
        if self.kind == "pipe" and self.name == "run.html":  # a page waits for its reader
            return  # with its folder: an empty one is nobody's
        with suppress(FileExistsError, NotADirectoryError):
            folder.mkdir(parents=True, exist_ok=True)
            if not folder.resolve().is_relative_to(top) or os.path.lexists(path):
                return
            if self.kind == "file":
                path.write_text("precious")
            elif self.kind == "folder":
                path.mkdir()
                (path / "precious").write_text("precious")
            elif self.kind == "pipe":
                os.mkfifo(path)
            else:
                ends = {"link to a file": "beside/file", "link to a folder": "beside"}
                path.symlink_to(top / ends.get(self.kind, "nowhere"))
            # A mark is known by whose it is: one of ours is no stranger's.
            if os.geteuid() == 0 and (self.of_another_user or self.name == ".pgdyno"):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def _some(places: tuple[str, ...]) -> st.SearchStrategy[list[Stranger]]:
    one = st.builds(
        Stranger, st.sampled_from(places), st.sampled_from(NAMES), st.sampled_from(KINDS),
        st.booleans(),
    )  # fmt: skip
    return st.lists(one, min_size=1, max_size=6)


# Half of them where they need not lead to a refusal.
FILES = st.one_of(_some(PLACES), _some((STAGE, "stage/letters", HERE, "here/home", "beside")))


@pytest.fixture(scope="module")
def binaries() -> Binaries:
    return find_binaries(TARGETS["embedded-18"], postgres_user())


def seen(top: Path) -> dict[str, tuple[Any, ...]]:
    """All below a folder; of folders not when something was put there."""
    return {
        name: facts if not (top / name).is_dir() else facts[:3] for name, facts in tree(top).items()
    }


def act(top: Path, binaries: Binaries) -> bool:
    """Every step that takes or makes folders and files; tells whether a target could be had."""
    unasked = cast(ServerFacts, None)  # nothing here wants them
    could = False
    with suppress(PgdynoError):
        OwnTarget(
            TARGETS["embedded-18"], binaries, unasked, postgres_user(), top / HOME, 1 << 30, None,
            [str(top / STAGE)],
        ).close()  # fmt: skip
        could = True
    with suppress(PgdynoError), own_folder(top / STAGE) as folder:
        (folder / "data").write_text("a probe's")
    with suppress(PgdynoError):
        write_page(top / HERE / "run.html", '<meta name="generator" content="pgdyno 0">')
    with suppress(PgdynoError, FileExistsError):
        write_new(top / HERE / "first.toml", "# a plan")
    return could


def in_the_way(name: str) -> bool:
    """Whether something is where a target keeps what is its own."""
    ours = (HOME, f"{STAGE}/pgdyno-work", f"{STAGE}/.pgdyno-work.new")
    return any(f"{name}/".startswith(f"{one}/") for one in ours)


@settings(max_examples=60)
@example(strangers=[Stranger(HOME, "run.html", "pipe", of_another_user=False)])
@example(strangers=[Stranger(HERE, "run.html", "link to nowhere", of_another_user=False)])
@given(strangers=FILES)
def test_files_of_strangers_stay_wherever_they_are(
    binaries: Binaries, strangers: list[Stranger]
) -> None:
    made = reachable_folder("anywhere")
    top = next(made)
    try:
        (top / "beside").mkdir()
        (top / "beside" / "file").write_text("precious")
        for name in (STAGE, HERE):
            (top / name).mkdir()
        for stranger in strangers:
            stranger.put(top)
        require_untouched(top, binaries)
    finally:
        shutil.rmtree(top)


def require_untouched(top: Path, binaries: Binaries) -> None:
    """Act, and compare."""
    before = seen(top)
    could = act(top, binaries)
    after = seen(top)
    assert {name: after.get(name) for name in before} == before
    # A report goes to the end of a link that the user named.
    outputs = {str((top / name).resolve().relative_to(top)) for name in OUTPUTS}
    new = {name for name in after if name not in before} - outputs
    taken = {name for name in new if name.partition("/")[0] == HOME}
    assert new == taken, "of what is made elsewhere nothing is left"
    if any(name.startswith(f"{HOME}/") for name in before):
        assert taken == set(), "a folder of somebody's is no home"
    assert could == (not any(map(in_the_way, before)))
    count("strangers' files around steps", "taken beside them" if could else "refused")


# -- tables -----------------------------------------------------------------------------------

TABLES = (
    "pgbench_accounts", "pgbench_branches", "pgbench_tellers", "pgbench_history",
    "pgbench_accounts_pkey", "pgbench_tellers_pkey", "pgdyno_load", "pgdyno_load_progress", "mine",
)  # fmt: skip
STATEMENTS = (
    "CREATE TABLE {} AS SELECT generate_series(1, 9) AS id",
    "CREATE TABLE {} (id int) PARTITION BY LIST (id)",
    "CREATE UNLOGGED TABLE {} (id serial PRIMARY KEY)",
    "CREATE VIEW {} AS SELECT 1 AS id",
    "CREATE MATERIALIZED VIEW {} AS SELECT 1 AS id",
    "CREATE SEQUENCE {}",
    "CREATE TYPE {} AS (id int)",
    "CREATE TYPE {} AS ENUM ('cashier')",
    "CREATE DOMAIN {} AS int",
)


def _objects(schemas: list[str]) -> st.SearchStrategy[list[tuple[str, str, str]]]:
    one = st.tuples(st.sampled_from(STATEMENTS), st.sampled_from(schemas), st.sampled_from(TABLES))
    return st.lists(one, min_size=1, max_size=5)


OBJECTS = st.one_of(_objects(["apart"]), _objects(["public", "apart"]))
INTENTS = st.sampled_from(cast(list[Intent | None], [None, "drop_ours", "resume", "top_up"]))


@pytest.fixture(scope="module")
def server() -> Iterator[Connection]:
    with cluster_apart("embedded-18", "socket") as cluster:
        for setting in ("autovacuum = off", "fsync = off"):
            run(cluster.connection(), f"ALTER SYSTEM SET {setting}")
        run(cluster.connection(), "SELECT pg_reload_conf()")
        yield cluster.connection()


@pytest.mark.parametrize(
    "examples", [pytest.param(200, marks=pytest.mark.long, id="many"), pytest.param(6, id="few")]
)
def test_tables_of_strangers_stay_whatever_is_loaded(server: Connection, examples: int) -> None:
    @settings(max_examples=examples)
    @given(objects=OBJECTS, first=st.booleans(), intent=INTENTS)
    def stay(objects: list[tuple[str, str, str]], first: bool, intent: Intent | None) -> None:
        connection = new_database(server, "anywhere")
        try:
            run(connection, "CREATE SCHEMA apart")
            if first:
                load(connection, tpcb(), How(connections=1))
            for statement, schema, name in objects:
                with suppress(psycopg.Error):  # something of its name is there
                    run(connection, statement.format(f"{schema}.{name}"))
            before, strangers = database_facts(connection), strangers_facts(connection)
            try:
                load(connection, tpcb(), replace(How(connections=1), intent=intent))
            except DriveError:
                assert database_facts(connection) == before
                count("strangers' tables around loads", "refused")
            else:
                assert strangers_facts(connection) == strangers
                count("strangers' tables around loads", "loaded beside them")
        finally:
            run(server, "DROP DATABASE anywhere")

    stay()
