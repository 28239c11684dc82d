"""Writes docs/reference/run-file.md: what SQL finds in a run file, and in its Parquet files."""

from __future__ import annotations

from pgdyno.api.parquet import TABLES
from pgdyno.store.views import VIEWS, Column

_HEAD = """\
# Tables of a run file

Written by `make reference` from `store/views.py` and `api/parquet.py`. The guide:
[many runs](../guides/many-runs.md).

A run file is a SQLite database. Those of the tables below that are called views are in it, for any
tool that reads SQLite; `pgdyno export RUN --parquet` writes all of them as files, also of run files
of earlier formats. `run` comes first in each, so that rows of many runs can stand together. What
was not measured is null, never 0. A trial that was measured again counts in `trials` alone.
"""


def page() -> str:
    """The page."""
    return "\n".join([_HEAD, *(_table(*one) for one in TABLES)])


def _table(name: str, meaning: str, columns: tuple[Column, ...]) -> str:
    kind = "view" if name in {one.name for one in VIEWS} else "Parquet alone"
    rows = "\n".join(_row(one) for one in columns)
    head = "| column | type | what it is |\n|---|---|---|"
    return f"## {name}\n\n{meaning} ({kind})\n\n{head}\n{rows}\n"


def _row(column: Column) -> str:
    return f"| `{column.name}` | {column.type} | {column.meaning} |"


if __name__ == "__main__":
    print(page(), end="")
