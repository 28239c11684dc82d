"""One seed, two servers, one terminal: the same statements and the same database at the end."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest

from pgdyno.drive.driver import drive
from pgdyno.drive.result import Driven
from pgdyno.model.connection import Connection
from pgdyno.model.plan import Protocol
from pgdyno.model.run import Digest
from pgdyno.model.settings import Origin, OriginKind, Rung, Setting
from pgdyno.model.workload import Tpcc, Workload
from tests.cluster.conftest import TARGETS, loaded, opened

pytestmark = pytest.mark.cluster
REQUESTS = 150
PROTOCOL = Protocol(
    rounds=1, warmup_s=0, window_s=900, drain_s=5, prewarm=False, margin=0.05, confidence=0.95,
    lowest_rung=Rung.D0,
)  # fmt: skip
TABLES = (
    "warehouse", "district", "customer", "history", "new_order", "orders", "order_line", "item",
    "stock",
)  # fmt: skip
LOG_ALL = Setting("log_statement", "all", Origin(OriginKind.PLAN, "a test"))

_BEGIN = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC \[\d+\] ", re.MULTILINE)
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?([+-]\d\d)?")


def run(connection: Connection) -> Driven:
    workload = Workload("tpcc", 7, connections=1, terminals=1, requests_max=REQUESTS, tpcc=Tpcc(2))
    return drive(connection, workload, PROTOCOL, None)


def contents(connection: Connection) -> dict[str, tuple[int, int]]:
    """Rows and a sum of their hashes, by table; what the calendar wrote is left out."""
    found = {}
    with psycopg.connect(**connection.arguments()) as session:
        for table in TABLES:
            rows = session.execute(
                "SELECT column_name FROM information_schema.columns WHERE table_name = %s"
                " AND data_type NOT LIKE 'timestamp%%' ORDER BY column_name",
                [table],
            ).fetchall()
            columns = ", ".join(f't."{name}"' for (name,) in rows)
            row = session.execute(
                f"SELECT count(*), sum(('x' || left(md5(ROW({columns})::text), 15))::bit(60)::int8)"
                f" FROM {table} t"
            ).fetchone()
            assert row is not None
            found[table] = (row[0], int(row[1]))
    return found


def statements(log: str) -> list[str]:
    """What was executed, with its parameters, in order; times of the calendar are blanked."""
    entries = (entry.strip() for entry in _BEGIN.split(log))
    carried = [e for e in entries if re.match(r"LOG:  execute|DETAIL:  [Pp]arameters", e)]
    return [_TIME.sub("<time>", entry).replace("Parameters", "parameters") for entry in carried]


@dataclass(frozen=True)
class Seen:
    """What a run left behind on one server."""

    tables: dict[str, tuple[int, int]]
    digest: Digest | None
    stream: list[str]

    @property
    def stream_hash(self) -> str:
        """Of all statements with their parameters."""
        return sha256("\n".join(self.stream).encode()).hexdigest()


def seen(name: str, home: Path) -> Seen:
    """The run on a server of its own."""
    with opened(name, home) as target:
        target.restore(loaded(target).ident)
        connection = target.apply((LOG_ALL,)).connection
        before = contents(connection)

        result = run(connection)

        lines = target.log_lines()
        assert lines is not None
        log = "\n".join(lines)
        after = contents(connection)
    assert (result.outcome, result.errors) == ("complete", ())
    assert {table for table in TABLES if after[table] != before[table]} == set(TABLES) - {"item"}
    return Seen(after, result.stream_digest, statements(log))


@pytest.mark.long
def test_one_seed_gives_two_servers_the_same_statements_and_the_same_database(
    session_home: Path,
) -> None:
    one, other = (seen(name, session_home) for name in sorted(TARGETS))

    assert one.tables == other.tables
    assert one.digest is not None
    assert one.digest.requests == REQUESTS
    assert one.digest == other.digest
    assert len(one.stream) > 20 * REQUESTS
    assert one.stream_hash == other.stream_hash
