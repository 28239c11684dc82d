"""Plans of the workload's statements at both ends of the window, so that a changed one is seen.

They are generic plans, for parameters of any value, as the server makes them when it is asked: in
a session of the samplers, with the settings that the driven databases give it. Sessions of the
load keep the plan that they have, until statistics or definitions change; the first five runs of
a statement have plans of their own. Parameters have the types that the load prepares them with:
by others a statement may have another plan, or none. Statements that have no plan (BEGIN, CALL)
are left out; those that the server does not plan have its reason, and are not tried again. Once
somebody keeps a table locked none is tried any more: nobody is waited for in a window.

`shape` is the plan without what statistics change alone: costs, rows, widths. `cost` is the
planner's, in its own unit. Source: PostgreSQL, "EXPLAIN", "PREPARE".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import psycopg

from pgdyno.model.plan_nodes import BELOW, OF_SHAPE, TYPE, Node
from pgdyno.sample.sampler import Column, Found, Label, Snapshot, Subject
from pgdyno.sample.statement_names import Known, known_statements
from pgdyno.sample.table_query import Rows, undisturbed

_PLANNED = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|MERGE|WITH|VALUES)\b", re.IGNORECASE)
_PARAMETER = re.compile(r"\$(\d+)")
_INFERRED = "unknown"
_BUDGET_US = 200_000
_COLUMNS = (
    Label("statement"), Label("kind"), Label("shape"), Label("plan"), Label("error"),
    Column("cost", "1", "gauge"), Column("rows", "1", "gauge"),
)  # fmt: skip
_ESTIMATES = frozenset({"Startup Cost", "Total Cost", "Plan Rows", "Plan Width"})
_GENERIC = "SET LOCAL plan_cache_mode = force_generic_plan"
_NUMBERS = count(1)


def planned(statements: Mapping[str, Known]) -> dict[str, Known]:
    """Those that have a plan, by their text."""
    return {text: known for text, known in statements.items() if _PLANNED.match(text)}


def shape(node: Node) -> str:
    """A plan in one line: its nodes with what they work on, each with those below in parentheses.

    Args:
        node: The topmost, as EXPLAIN (FORMAT JSON) has it.
    """
    words = [node[TYPE], *(str(node[key]) for key in OF_SHAPE if key in node)]
    below = ", ".join(shape(one) for one in node.get(BELOW, ()))
    return " ".join(words) + (f" ({below})" if below else "")


def without_estimates(node: Node) -> Node:
    """The same plan without what new statistics alone change."""
    kept = {key: value for key, value in node.items() if key not in _ESTIMATES}
    if BELOW in kept:
        kept[BELOW] = [without_estimates(one) for one in kept[BELOW]]
    return kept


def _explained(session: psycopg.Connection[Any], text: str, known: Known) -> Node:
    """The generic plan of a statement; nothing of it is executed.

    Args:
        session: In a transaction.
        text: The statement.
        known: What is known of it.

    Raises:
        psycopg.Error: The server does not plan it; the transaction goes on.
    """
    highest = max((int(number) for number in _PARAMETER.findall(text)), default=0)
    types = known.parameters or (_INFERRED,) * highest
    name = f"pgdyno_plan_{next(_NUMBERS)}"  # what failed may stay prepared
    taken, given = _listed(types), _listed(["NULL"] * len(types))
    words = f"""PREPARE {name}{taken} AS {text}
        ; EXPLAIN (FORMAT JSON) EXECUTE {name}{given}; DEALLOCATE {name}"""
    with session.transaction(), session.cursor() as cursor:
        cursor.execute(words.encode(), prepare=False)
        cursor.nextset()
        row = cursor.fetchone()
    assert row is not None
    return dict(row[0][0]["Plan"])


def _listed(words: Sequence[str]) -> str:
    return f"({', '.join(words)})" if words else ""


class Plans:
    """Of a workload's statements, as a session is told them.

    Args:
        session: In autocommit mode.
        statements: Those that have plans, by their text.
    """

    def __init__(self, session: psycopg.Connection[Any], statements: Mapping[str, Known]) -> None:
        self._session = session
        self._statements = statements
        self._refused: dict[str, str] = {}  # text -> why

    def take(self) -> Rows:
        """A row for each statement."""
        with undisturbed(self._session):
            self._session.execute(_GENERIC)
            return list(self._rows())

    def _rows(self) -> Iterator[Node]:
        locked = ""
        for text, known in self._statements.items():
            row: Node = {
                "statement": known.name, "kind": known.kind, "shape": "", "plan": "",
                "error": self._refused.get(text) or locked, "cost": None, "rows": None,
            }  # fmt: skip
            if not row["error"]:
                try:
                    row |= _columns_of(_explained(self._session, text, known))
                except psycopg.errors.LockNotAvailable as error:
                    row["error"] = locked = _first_line(error)
                except psycopg.Error as error:
                    if self._session.closed:
                        raise
                    row["error"] = self._refused[text] = _first_line(error)
            yield row


def _columns_of(top: Node) -> Node:
    return {
        "shape": shape(top),
        "plan": json.dumps(without_estimates(top), separators=(",", ":")),
        "cost": top["Total Cost"],
        "rows": top["Plan Rows"],
    }


def _first_line(error: psycopg.Error) -> str:
    return str(error).partition("\n")[0]


def sampler(subject: Subject) -> Found:
    """The snapshot; None without a session to ask, or statements that have plans."""
    if (session := subject.session) is None or subject.described is None:
        return None
    if not (statements := planned(known_statements(subject.described))):
        return None
    return Snapshot("plans", _COLUMNS, Plans(session, statements).take, budget_us=_BUDGET_US)
