"""Which databases of a server are pgdyno's, as the guide tells an administrator to drop them."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest

from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.target import running_target
from pgdyno.target.running_target import ask_server
from pgdyno.target.server_owner import LIMIT, OWNER, Database

GUIDE = Path(__file__).parents[3] / "docs/guides/installed-and-running-servers.md"


def _guide_drops(limit: int, comment: str) -> bool:
    """Whether the condition of its `DROP DATABASE` holds, which SQLite can judge as well."""
    text = GUIDE.read_text().partition("SELECT format('DROP DATABASE %I', datname)")[2]
    condition = text.partition("WHERE ")[2].partition("\\gexec")[0]
    condition = condition.replace("'engineer'::regrole", "'engineer'")
    condition = re.sub(r"shobj_description\(.*?\)", "comment", condition)
    query = (
        "SELECT count(*) FROM (SELECT 'engineer' AS datdba, ? AS datconnlimit, ? AS comment)"
        f" WHERE {condition}"
    )
    with sqlite3.connect(":memory:") as session:
        (found,) = session.execute(query, (limit, comment or None)).fetchone()
    return bool(found)


@pytest.mark.parametrize("limit", [LIMIT, -1, -2, 5])
@pytest.mark.parametrize("comment", ["", "pgdyno trial", "of the shop"])
def test_the_guide_drops_what_pgdyno_would_drop_and_nothing_else(limit: int, comment: str) -> None:
    found = Database("pgdyno_trial", limit, comment, "engineer", is_our_roles=True)

    assert _guide_drops(limit, comment) == found.is_ours


class Session:
    """A session with a server on which one name is somebody else's database."""

    def __init__(self, stranger: str) -> None:
        self.stranger = stranger

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def execute(self, query: str, names: tuple[str, ...]) -> Self:
        assert "WHERE datname = %s" in query, "asked before anything else"
        (self.asked,) = names
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        return (self.asked, -1, "", "her", False) if self.asked == self.stranger else None


@pytest.mark.parametrize("name", [OWNER, running_target.TRIAL])
def test_a_stranger_of_a_name_that_is_needed_is_told_before_anything_is_touched(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Connection("localhost", 5432, "engineer", "postgres")
    monkeypatch.setattr(running_target, "reach", lambda _: there)
    monkeypatch.setattr(psycopg, "connect", lambda **_: Session(name))

    with pytest.raises(TargetError, match=f"database {name} exists and is not marked as ours"):
        ask_server("host=localhost user=engineer dbname=postgres", knocks=True)
