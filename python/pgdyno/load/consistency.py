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
from pgdyno.model.errors import CheckError
from pgdyno.model.run import Condition

_AT_ONCE = 2
_SAMPLES = 1


def check(
    connection: Connection,
    conditions: Sequence[dict[str, Any]],
    done: Callable[[Condition], None] = lambda _: None,
) -> tuple[Condition, ...]:
    """Run conditions (of `describe`), two at a time, and report each as it is done.

    Args:
        connection: The workload's database.
        conditions: `number`, `title` and `sql` of each.
        done: Told of each condition as it ends.

    Raises:
        CheckError: A condition cannot be run at all, e.g. because a table is missing.
    """

    def one(condition: dict[str, Any]) -> Condition:
        result = _check_one(connection, condition)
        done(result)
        return result

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return tuple(pool.map(one, conditions))


def _check_one(connection: Connection, condition: dict[str, Any]) -> Condition:
    began = time.monotonic()
    try:
        with psycopg.connect(**connection.arguments(), autocommit=True) as session:
            session.execute("SET work_mem = '256MB'; SET default_transaction_read_only = on")
            rows = session.execute(condition["sql"]).fetchall()
    except psycopg.Error as error:
        raise CheckError(
            f"condition {condition['number']} cannot be run: {str(error).strip()}",
            hint="Was the database loaded by `pgdyno load`?",
        ) from error
    sample = "; ".join(str(row) for row in rows[:_SAMPLES]) or None
    seconds = time.monotonic() - began
    return Condition(condition["number"], condition["title"], len(rows), sample, seconds)


def require(conditions: Sequence[Condition]) -> None:
    """Accept a consistent database only.

    Raises:
        CheckError: Naming every violated condition with its first violating row.
    """
    broken = [c for c in conditions if not c.ok]
    if broken:
        text = "; ".join(
            f"condition {c.number} ({c.title}) is violated by {c.violations} rows, first {c.sample}"
            for c in broken
        )
        raise CheckError(text, hint="The database must be loaded anew; its numbers are not valid.")


@dataclass(frozen=True, slots=True)
class Loaded:
    """What `pgdyno load` wrote into a database about itself (table `pgdyno_load`)."""

    workload: Literal["tpcc"]
    schema: Literal["spec"]
    warehouses: int
    seed: int
    foreign_keys: bool
    c_load: dict[str, int]

    def spec(self) -> dict[str, Any]:
        """The workload's parameters that shape the data (`TpccSpec`)."""
        return {
            "kind": self.workload,
            "schema": self.schema,
            "warehouses": self.warehouses,
            "seed": self.seed,
            "foreign_keys": self.foreign_keys,
        }


def loaded_workload(connection: Connection) -> Loaded:
    """Read what a database was loaded with.

    Raises:
        CheckError: It was not loaded by pgdyno, or the load did not end.
    """
    try:
        with psycopg.connect(**connection.arguments()) as session:
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
            hint="Load it anew: `pgdyno load tpcc --drop-ours --conninfo …`.",
        )
    return TypeAdapter(Loaded).validate_python(
        {**facts, "c_load": {"c_last": facts["c_last"]}}, extra="ignore"
    )
