"""Plans of the workload's statements at both ends of the window, so that a changed one is seen.

They are generic plans, for parameters of any value, as the server makes them when it is asked: in
a session of the samplers, with the settings that the driven databases give it. Sessions of the
load keep the plan that they have, until statistics or definitions change; the first five runs of
a statement have plans of their own. Statements that have no plan (BEGIN, CALL) are left out;
those that cannot be prepared without the types of their parameters have the server's reason.

`shape` is the plan without what statistics change alone: costs, rows, widths. `cost` is the
planner's, in its own unit. Source: PostgreSQL, "EXPLAIN", "PREPARE".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import sql

from pgdyno.sample.sampler import Column, Found, Label, Snapshot, Subject
from pgdyno.sample.table_query import Rows
from pgdyno.workload.statement_names import Known, known_statements

_PLANNED = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|MERGE|WITH|VALUES)\b", re.IGNORECASE)
_PARAMETER = re.compile(r"\$(\d+)")
_NAME = sql.Identifier("pgdyno sampler")
_BUDGET_US = 200_000
_COLUMNS = (
    Label("statement"), Label("kind"), Label("shape"), Label("plan"), Label("error"),
    Column("cost", "1", "gauge"), Column("rows", "1", "gauge"),
)  # fmt: skip
_ESTIMATES = frozenset({"Startup Cost", "Total Cost", "Plan Rows", "Plan Width"})
_OF_SHAPE = ("Operation", "Join Type", "Relation Name", "Index Name", "Strategy")
_BEFORE = ("SET LOCAL plan_cache_mode = force_generic_plan", "SET LOCAL lock_timeout = '1s'")

Node = dict[str, Any]


def planned(statements: Mapping[str, Known]) -> dict[str, Known]:
    """Those that have a plan, by their text."""
    return {text: known for text, known in statements.items() if _PLANNED.match(text)}


def shape(node: Node) -> str:
    """A plan in one line: its nodes with what they work on, each with those below in parentheses.

    Args:
        node: The topmost, as EXPLAIN (FORMAT JSON) has it.
    """
    words = [node["Node Type"], *(str(node[key]) for key in _OF_SHAPE if key in node)]
    below = ", ".join(shape(one) for one in node.get("Plans", ()))
    return " ".join(words) + (f" ({below})" if below else "")


def without_estimates(node: Node) -> Node:
    """The same plan without what new statistics alone change."""
    kept = {key: value for key, value in node.items() if key not in _ESTIMATES}
    if "Plans" in kept:
        kept["Plans"] = [without_estimates(one) for one in kept["Plans"]]
    return kept


def _explained(session: psycopg.Connection[Any], text: str) -> Node:
    """The generic plan of a statement; nothing of it is executed.

    Raises:
        psycopg.Error: The server does not plan it.
    """
    arguments = max((int(number) for number in _PARAMETER.findall(text)), default=0)
    nulls = sql.SQL(", ").join([sql.SQL("NULL")] * arguments)
    call = sql.SQL("EXECUTE {}").format(_NAME)
    if arguments:
        call += sql.SQL("({})").format(nulls)
    try:
        with session.transaction(force_rollback=True):
            for setting in _BEFORE:
                session.execute(setting)
            session.execute(b"PREPARE " + _NAME.as_bytes(session) + b" AS " + text.encode())
            row = session.execute(sql.SQL("EXPLAIN (FORMAT JSON) ") + call).fetchone()
            assert row is not None
            return dict(row[0][0]["Plan"])
    finally:
        with suppress(psycopg.errors.InvalidSqlStatementName):  # it was not prepared
            session.execute(sql.SQL("DEALLOCATE {}").format(_NAME))


def _rows(session: psycopg.Connection[Any], statements: Mapping[str, Known]) -> Iterator[Node]:
    for text, known in statements.items():
        row: Node = {"statement": known.name, "kind": known.kind, "shape": "", "plan": "",
                     "error": "", "cost": None, "rows": None}  # fmt: skip
        try:
            top = _explained(session, text)
        except psycopg.Error as error:
            if session.closed:
                raise
            row["error"] = str(error).partition("\n")[0]
        else:
            row |= {
                "shape": shape(top),
                "plan": json.dumps(without_estimates(top), separators=(",", ":")),
                "cost": top["Total Cost"],
                "rows": top["Plan Rows"],
            }
        yield row


def sampler(subject: Subject) -> Found:
    """The snapshot; None without a session to ask, or statements that have plans."""
    if (session := subject.session) is None or subject.described is None:
        return None
    if not (statements := planned(known_statements(subject.described))):
        return None

    def take() -> Rows:
        return list(_rows(session, statements))

    return Snapshot("plans", _COLUMNS, take, budget_us=_BUDGET_US)
