"""Maps of free space are read, and a row finds a page; what hinders that is found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pgdyno.drills.free_space import free_space
from pgdyno.model.connection import Connection
from pgdyno.session import own_session
from pgdyno.target.cluster import Cluster
from tests.cluster.loading import new_database, run

pytestmark = pytest.mark.cluster
TABLES = """
CREATE TABLE plain AS SELECT i, repeat('x', 100) AS t FROM generate_series(1, 5000) AS i;
CREATE TABLE keyed (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED,
                    own int GENERATED ALWAYS AS IDENTITY, "Odd name" text NOT NULL DEFAULT '');
INSERT INTO keyed (id) SELECT generate_series(1, 5000);
CREATE TABLE child (id int REFERENCES keyed, note text CHECK (note <> ''));
INSERT INTO child SELECT i, 'n' FROM generate_series(1, 50) AS i;
CREATE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'no row is taken'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON child FOR EACH ROW EXECUTE FUNCTION refused();
CREATE TABLE parts (i int) PARTITION BY RANGE (i);
CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (9);
INSERT INTO parts VALUES (1);
CREATE TABLE nothing ();
CREATE TABLE empty (i int);
CREATE MATERIALIZED VIEW seen AS SELECT i FROM plain;
"""


@pytest.fixture
def shop(server_apart: Cluster) -> Iterator[Connection]:
    made = new_database(server_apart.connection(), "space")
    with own_session(made) as session:
        session.execute(TABLES)
        session.execute("DELETE FROM plain WHERE i % 2 = 0")
        session.execute("VACUUM ANALYZE")
    yield made
    run(server_apart.connection(), "DROP DATABASE space")


def test_what_is_whole_is_whole_and_stays_as_it_was(shop: Connection) -> None:
    assert free_space([shop]) == []
    with own_session(shop) as session:
        counts = [session.execute(f"SELECT count(*) FROM {name}".encode()).fetchone()
                  for name in ("plain", "keyed", "child", "part", "nothing", "empty")]  # fmt: skip
    assert counts == [(2500,), (5000,), (50,), (1,), (0,), (0,)]


def test_a_map_that_nobody_can_read_is_found(server_apart: Cluster, shop: Connection) -> None:
    with own_session(shop) as session:
        row = session.execute("SELECT pg_relation_filepath('plain')").fetchone()
    assert row is not None
    path = server_apart.data / f"{row[0]}_fsm"
    path.chmod(0)
    try:
        read, put = free_space([shop])
    finally:
        path.chmod(0o600)
    assert read.startswith("The map of free space of plain cannot be read in space: could not open")
    assert put.startswith("plain takes no further row in space: could not open")
    assert free_space([shop]) == []
