"""A small load whose every commit is written down: transfers as TPC-B has them.

The ledger lies in the memory of the test, outside of the server and of what is recorded. It knows
when each commit was asked for and when it was acknowledged, by the clock that the record has.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field

import psycopg

from pgdyno.model.connection import Connection

CLIENTS = 4
_ACCOUNTS = 20_000
_SCHEMA = f"""
CREATE TABLE branches (bid int PRIMARY KEY, balance bigint NOT NULL);
CREATE TABLE tellers (tid int PRIMARY KEY, balance bigint NOT NULL);
CREATE TABLE accounts (aid int PRIMARY KEY, balance bigint NOT NULL, filler char(84));
CREATE TABLE history (client int, number int, delta bigint NOT NULL, filler char(22));
CREATE INDEX ON history (client, number);
INSERT INTO branches SELECT n, 0 FROM generate_series(1, {CLIENTS}) n;
INSERT INTO tellers SELECT n, 0 FROM generate_series(1, 10) n;
INSERT INTO accounts SELECT n, 0, '' FROM generate_series(1, {_ACCOUNTS}) n;
CHECKPOINT;
"""
_TRANSFER = """
WITH account AS (UPDATE accounts SET balance = balance + %(delta)s WHERE aid = %(aid)s),
     teller AS (UPDATE tellers SET balance = balance + %(delta)s WHERE tid = %(tid)s),
     branch AS (UPDATE branches SET balance = balance + %(delta)s WHERE bid = %(bid)s)
INSERT INTO history VALUES (%(client)s, %(number)s, %(delta)s)
"""
_SUMS = """
SELECT (SELECT sum(balance) FROM accounts), (SELECT sum(balance) FROM tellers),
       (SELECT sum(balance) FROM branches), (SELECT coalesce(sum(delta), 0) FROM history)
"""


@dataclass
class Ledger:
    """Commits by client and number: when asked for, and when acknowledged."""

    asked_ns: dict[tuple[int, int], int] = field(default_factory=dict)
    acknowledged_ns: dict[tuple[int, int], int] = field(default_factory=dict)


def prepare(connection: Connection) -> None:
    """Make the tables, and have them on the disk."""
    with psycopg.connect(**connection.arguments(), autocommit=True) as session:
        for statement in _SCHEMA.split(";\n"):
            if statement.strip():
                session.execute(statement)


def load(connection: Connection, seconds: float, checkpoint_s: float) -> Ledger:
    """Transfer for so long, with a checkpoint every so often."""
    ledger, end = Ledger(), time.monotonic() + seconds
    clients = [
        threading.Thread(target=_client, args=(connection, ledger, client, end))
        for client in range(1, CLIENTS + 1)
    ]
    for one in clients:
        one.start()
    with psycopg.connect(**connection.arguments(), autocommit=True) as session:
        while time.monotonic() < end:
            time.sleep(checkpoint_s)
            session.execute("CHECKPOINT")
    for one in clients:
        one.join()
    return ledger


def _client(connection: Connection, ledger: Ledger, client: int, end: float) -> None:
    number, state = 0, client
    with psycopg.connect(**connection.arguments(), autocommit=True) as session:
        while time.monotonic() < end:
            number += 1
            state = (state * 1_103_515_245 + 12_345) % 2**31
            key = (client, number)
            values = {
                "client": client, "number": number, "delta": state % 9999 - 4999,
                "aid": state % _ACCOUNTS + 1, "tid": state % 10 + 1, "bid": client,
            }  # fmt: skip
            ledger.asked_ns[key] = time.monotonic_ns()
            session.execute(_TRANSFER, values)
            ledger.acknowledged_ns[key] = time.monotonic_ns()


def objections(connection: Connection, ledger: Ledger, instant_ns: int) -> list[str]:
    """What a server that came back owes, by the ledger at an instant."""
    with psycopg.connect(**connection.arguments(), autocommit=True) as session:
        rows = session.execute("SELECT client, number FROM history").fetchall()
        session.execute("SET enable_indexscan = off; SET enable_bitmapscan = off")
        sums = session.execute(_SUMS).fetchone()
    assert sums is not None
    there = Counter((client, number) for client, number in rows)
    acknowledged = {key for key, at in ledger.acknowledged_ns.items() if at <= instant_ns}
    asked = {key for key, at in ledger.asked_ns.items() if at <= instant_ns}
    found = []
    if lost := acknowledged - set(there):
        found.append(f"{len(lost)} of {len(acknowledged)} acknowledged commits are lost")
    if twice := [key for key, times in there.items() if times > 1]:
        found.append(f"{len(twice)} commits are there more than once")
    if unasked := set(there) - asked:
        found.append(f"{len(unasked)} commits are there that nobody had asked for")
    if len(set(sums)) != 1:
        found.append(f"sums of accounts, tellers, branches and history differ: {sums}")
    return found
