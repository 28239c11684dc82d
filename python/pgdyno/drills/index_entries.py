"""Each index against its table: what a scan of its entries gives, and what one of the table does.

`pg_amcheck` looks whether each row has its entry, and not whether each entry has its row: one that
was left points, after a row took the place of another, to a row of other values.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import psycopg

from pgdyno.model.connection import Connection
from pgdyno.model.wording import plural
from pgdyno.session import own_session

_INDEXES = """
SELECT i.indexrelid, i.indrelid, i.indexrelid::regclass::text, i.indrelid::regclass::text,
       (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
        WHERE attrelid = i.indrelid AND attnum = ANY (i.indkey))
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid
WHERE c.relkind IN ('r', 'm') AND c.oid >= 16384 AND i.indisvalid
  AND i.indpred IS NULL AND i.indexprs IS NULL
ORDER BY 3
"""
_ALONE = "UPDATE pg_index SET indisvalid = false WHERE indrelid = %s AND indexrelid <> %s"
_PLAIN = """
SET LOCAL allow_system_table_mods = on; SET LOCAL max_parallel_workers_per_gather = 0;
SET LOCAL enable_bitmapscan = off
"""
_VALUES = """
SELECT count(*), coalesce(sum(hashtextextended(one::text, 0)), 0)
FROM (SELECT {columns} FROM ONLY {table} OFFSET 0) AS one
"""


def index_entries(databases: Sequence[Connection]) -> list[str]:
    """What is wrong with entries of indexes that can be read without their tables.

    That is those on plain columns of all rows, as far as their method gives the values back (btree
    does, and GiST and SP-GiST of some types).
    """
    found = []
    for database in databases:
        with own_session(database) as session:
            for index, table, name, of, columns in session.execute(_INDEXES).fetchall():
                with session.transaction(force_rollback=True):
                    session.execute(_PLAIN)
                    session.execute(_ALONE, (table, index))
                    wrong = _wrong(session, _VALUES.format(columns=columns, table=of))
                if wrong:
                    found.append(f"Index {name} of {of} in {database.database} {wrong}.")
    return found


def _wrong(session: psycopg.Connection[Any], query: str) -> str | None:
    session.execute("SET LOCAL enable_seqscan = off")
    plan = session.execute(f"EXPLAIN (FORMAT JSON) {query}").fetchone()
    assert plan is not None
    if '"Index Only Scan"' not in json.dumps(plan[0]):
        return None
    entries = session.execute(query).fetchone()
    session.execute("SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off")
    rows = session.execute(query).fetchone()
    assert entries is not None
    assert rows is not None
    if entries == rows:
        return None
    if entries[0] == rows[0]:
        return "gives other values than its table has"
    return f"gives {plural(entries[0], 'row')}, and its table {plural(rows[0], 'row')}"
