"""`pgdyno check`: the consistency conditions of a loaded database."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from pgdyno import api
from pgdyno.cli.console import stdout
from pgdyno.cli.database_option import ConninfoOption, database
from pgdyno.model.wording import plural


def check(conninfo: ConninfoOption = "") -> None:
    """Run the twelve consistency conditions of TPC-C clause 3.3.2 on a loaded database.

    Example: pgdyno check -d 'dbname=tpcc'
    """
    checked = api.check(database(conninfo))
    table = Table("no.", "condition", "violations", "seconds", box=None, pad_edge=False)
    for condition in checked.conditions:
        found = Text(str(condition.violations), "" if condition.ok else "bold red")
        table.add_row(str(condition.number), condition.title, found, f"{condition.seconds:.2f}")
    stdout.print(table)
    checked.require()
    stdout.print(f"all {plural(len(checked.conditions), 'condition')} hold")
