"""Which databases of a server are pgdyno's, as the guide tells an administrator to drop them."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from pgdyno.target.server_owner import LIMIT, Database

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
