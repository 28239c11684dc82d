"""The consistency conditions of the workload, run as SQL; each returns the rows that violate it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import psycopg
from pydantic import TypeAdapter

from pgdyno.model.connection import Connection
from pgdyno.model.description import ConditionSql, Description
from pgdyno.model.errors import CheckError
from pgdyno.model.run import Condition
from pgdyno.model.wording import plural
from pgdyno.model.workload import Schema, Tpcc
from pgdyno.session import own_session
from pgdyno.workload.describe import describe_loaded

_AT_ONCE = 2
_SAMPLES = 1


def check(
    connection: Connection,
    conditions: Sequence[ConditionSql],
    done: Callable[[Condition], None] = lambda _: None,
    *,
    work_mem: str | None = None,
) -> tuple[Condition, ...]:
    """Run conditions (of `describe`), two at a time, and report each as it is done.

    Args:
        connection: The workload's database.
        conditions: Their SQL.
        done: Told of each condition as it ends.
        work_mem: What each may sort and hash in, on a server of ours; None: what is set there.

    Raises:
        CheckError: A condition cannot be run at all, e.g. because a table is missing.
        psycopg.OperationalError: The server ended a session, or lacks memory or disk.
    """

    def one(condition: ConditionSql) -> Condition:
        result = _check_one(connection, condition, work_mem)
        done(result)
        return result

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return tuple(pool.map(one, conditions))


def _check_one(connection: Connection, condition: ConditionSql, work_mem: str | None) -> Condition:
    began = time.monotonic()
    try:
        with own_session(connection) as session:
            session.execute("SET default_transaction_read_only = on")
            if work_mem is not None:
                session.execute("SELECT set_config('work_mem', %s, false)", (work_mem,))
            rows = session.execute(condition.sql.encode()).fetchall()
    except psycopg.OperationalError:
        raise  # the server is gone, or has no memory or disk left: nothing is said of the data
    except psycopg.Error as error:
        raise CheckError(
            f"condition {condition.number} cannot be run: {str(error).strip()}",
            hint="Was the database loaded by `pgdyno load`?",
        ) from error
    sample = "; ".join(str(row) for row in rows[:_SAMPLES]) or None
    seconds = time.monotonic() - began
    return Condition(condition.number, condition.title, len(rows), sample, seconds)


def require(conditions: Sequence[Condition]) -> None:
    """Accept a consistent database only.

    Raises:
        CheckError: Naming every violated condition with its first violating row.
    """
    broken = [c for c in conditions if not c.ok]
    if broken:
        text = "; ".join(
            f"condition {c.number} ({c.title}) is violated by {plural(c.violations, 'row')},"
            f" first {c.sample}"
            for c in broken
        )
        raise CheckError(text, hint="The database must be loaded anew; its numbers are not valid.")


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a database says that it was loaded with: to pgdyno, or to BenchmarkSQL 5."""

    workload: Literal["tpcc"]
    schema: Schema
    warehouses: int
    seed: int | None  # None: rows that do not follow from a seed of ours
    foreign_keys: bool
    c_load: dict[str, int]

    def described(self) -> Description:
        """What the core says of such a database."""
        tpcc = Tpcc(self.warehouses, self.schema, foreign_keys=self.foreign_keys)
        return describe_loaded(tpcc, self.seed, self.c_load)[0]


def loaded_workload(connection: Connection) -> Loaded:
    """Read what a database was loaded with.

    Raises:
        CheckError: It was not loaded by pgdyno, or the load did not end.
    """
    try:
        with psycopg.connect(**connection.arguments(), autocommit=True) as session:
            if theirs := _loaded_by_benchmarksql(session):
                return theirs
            rows = session.execute("SELECT key, value FROM pgdyno_load").fetchall()
    except psycopg.errors.UndefinedTable as error:
        raise CheckError(
            f"database {connection.database} has no table pgdyno_load",
            hint="Load it first: `pgdyno load tpcc --conninfo …`.",
        ) from error
    facts = dict(rows)
    if not facts:
        raise CheckError(
            f"database {connection.database} was loaded in part",
            hint="Continue with `pgdyno load tpcc --resume --conninfo …`, or load it anew with"
            " --drop-ours.",
        )
    return TypeAdapter(Loaded).validate_python(
        {"seed": None, **facts, "c_load": {"c_last": facts["c_last"]}}, extra="ignore"
    )


def _loaded_by_benchmarksql(session: psycopg.Connection[Any]) -> Loaded | None:
    """What BenchmarkSQL 5 wrote into its table bmsql_config; None: it did not load this."""
    found = session.execute(
        "SELECT to_regclass('bmsql_config') IS NOT NULL AND to_regclass('pgdyno_load') IS NULL"
    ).fetchone()
    if found != (True,):
        return None
    facts = dict(session.execute("SELECT cfg_name, cfg_value FROM bmsql_config").fetchall())
    if missing := [name for name in ("warehouses", "nURandCLast") if name not in facts]:
        raise CheckError(
            f"table bmsql_config of BenchmarkSQL does not say {' and '.join(missing)}",
            hint="Did its load end? Load it anew.",
        )
    keys = session.execute(
        "SELECT count(*) > 0 FROM pg_constraint"
        " WHERE contype = 'f' AND conrelid = 'bmsql_order_line'::regclass"
    ).fetchone()
    # Its loader begins to count deliveries at 1, its CSV files at 0: a customer tells which.
    start = session.execute(
        "SELECT c_delivery_cnt - (SELECT count(*) FROM bmsql_oorder"
        " WHERE (o_w_id, o_d_id, o_c_id) = (1, 1, 1) AND o_id > 2100 AND o_carrier_id IS NOT NULL)"
        " FROM bmsql_customer WHERE (c_w_id, c_d_id, c_id) = (1, 1, 1)"
    ).fetchone()
    c_load = {"c_last": int(facts["nURandCLast"]), "c_delivery_cnt": int(start == (1,))}
    return Loaded("tpcc", "bmsql", int(facts["warehouses"]), None, keys == (True,), c_load)
