"""Stages with a pooler: which, and what does not go with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.model.pooler import Pooler
from pgdyno.model.wording import plural
from pgdyno.model.workload import Workload
from pgdyno.plan.schema.plan_file import StageTable

_KEY = "pooler"


def poolers(tables: Sequence[StageTable]) -> tuple[Pooler | None, ...]:
    """That of each stage; one that builds on the stage before takes that one's."""
    found: list[Pooler | None] = []
    for table in tables:
        before = found[-1] if found and not table.afresh else None
        found.append(before if table.pooler is None else _asked(table))
    return tuple(found)


def _asked(table: StageTable) -> Pooler | None:
    assert table.pooler is not None
    if table.pooler.mode == "none":
        return None
    assert table.pooler.sessions is not None, "its table asks for them"
    return Pooler(table.pooler.mode, table.pooler.sessions)


def server_sessions(workload: Workload, pooler: Pooler | None) -> int:
    """Sessions that the load has with the server, at most."""
    if pooler is None:
        return workload.sessions
    return min(workload.sessions, pooler.sessions * workload.databases)


def pooler_problems(
    pooler: Pooler, workload: Workload, kind: str
) -> Iterator[tuple[str, str, str | None]]:
    """What keeps a stage from having it: key, text, hint.

    Args:
        pooler: What it does.
        workload: Of the stage.
        kind: Of the target.
    """
    if kind == "running":
        text = f"{pooler.shown}, and the server runs already: pgdyno puts none in front of it"
        yield _KEY, text, "`bench` works through a pooler of yours, named by its conninfo."
    if pooler.mode == "session" and workload.connections > pooler.sessions:
        waiting = plural(workload.connections - pooler.sessions, "connection")
        text = (
            f"{pooler.shown}, and the load has {plural(workload.connections, 'connection')}:"
            f" {waiting} would wait until the end"
        )
        yield _KEY, text, 'Write mode = "transaction", or as many sessions as connections.'
