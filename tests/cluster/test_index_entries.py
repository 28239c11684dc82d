"""Indexes are held against their tables, whatever their kind; one entry that was left is found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pgdyno.drills.controls import ENTRY_LEFT
from pgdyno.drills.index_entries import index_entries
from pgdyno.model.connection import Connection
from pgdyno.session import own_session
from pgdyno.target.cluster import Cluster
from tests.cluster.loading import new_database, run

pytestmark = pytest.mark.cluster
TABLES = """
CREATE TABLE one (id int PRIMARY KEY, n int, t text COLLATE "C", b box, p point, a int[]);
INSERT INTO one SELECT i, nullif(i % 7, 3), md5(i::text), box(point(i, 1), point(2, i)),
                       point(i, i), ARRAY[i, i % 9] FROM generate_series(1, 3000) AS i;
DELETE FROM one WHERE id % 5 = 0;
UPDATE one SET n = -n WHERE id % 11 = 0;
CREATE INDEX one_n ON one (n); CREATE INDEX one_n_t ON one (n DESC, t) INCLUDE (id);
CREATE INDEX one_t ON one (t); CREATE INDEX one_again ON one (n);
CREATE INDEX one_b ON one USING gist (b); CREATE INDEX one_p ON one USING spgist (p);
CREATE INDEX one_a ON one USING gin (a); CREATE INDEX one_h ON one USING hash (t);
CREATE INDEX one_r ON one USING brin (id); CREATE INDEX one_some ON one (n) WHERE id > 7;
CREATE INDEX one_shown ON one (upper(t));
CREATE MATERIALIZED VIEW seen AS SELECT n, count(*) FROM one GROUP BY n;
CREATE UNIQUE INDEX seen_n ON seen (n);
"""


@pytest.fixture
def shop(server_apart: Cluster) -> Iterator[Connection]:
    made = new_database(server_apart.connection(), "indexes")
    yield made
    run(server_apart.connection(), "DROP DATABASE indexes")


def test_what_is_whole_is_whole(shop: Connection) -> None:
    with own_session(shop) as session:
        session.execute(TABLES)
        assert index_entries([shop]) == []
        session.execute("VACUUM ANALYZE one")
        assert index_entries([shop]) == []
        told = session.execute("SELECT count(*) FROM pg_index WHERE NOT indisvalid").fetchone()
    assert told == (0,), "what it sets aside is back"


def test_an_entry_that_was_left_for_another_row_is_found(shop: Connection) -> None:
    with own_session(shop) as session:
        session.execute(TABLES)
        for statement in ENTRY_LEFT:
            session.execute(statement)
    (said,) = index_entries([shop])
    assert said == (
        "Index pgdyno_left_n of pgdyno_left in indexes gives other values than its table has."
    )


def test_an_entry_of_no_row_is_counted(shop: Connection) -> None:
    """As where WAL of the table came back, and WAL of the index did not."""
    with own_session(shop) as session:
        for statement in ENTRY_LEFT[:5]:
            session.execute(statement)
        session.execute("INSERT INTO pgdyno_left VALUES (7)")
        session.execute(ENTRY_LEFT[-2])
    (said,) = index_entries([shop])
    assert said.endswith("gives 1 row, and its table 2 rows.")
