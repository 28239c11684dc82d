"""`pgdyno check`: the consistency conditions of a loaded database."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from pgdyno.cli.console import stdout
from pgdyno.cli.endpoint import ConninfoOption, endpoint
from pgdyno.load import loader
from pgdyno.load.consistency import check as check_conditions
from pgdyno.load.consistency import loaded_workload, require


def check(conninfo: ConninfoOption = "") -> None:
    """Run the twelve consistency conditions of TPC-C clause 3.3.2 on a loaded database."""
    connection = endpoint(conninfo)
    described = loader.describe(loaded_workload(connection).spec())
    results = check_conditions(connection, described["conditions"])
    table = Table("no.", "condition", "violations", "seconds", box=None, pad_edge=False)
    for condition in results:
        found = Text(str(condition.violations), "" if condition.ok else "bold red")
        table.add_row(str(condition.number), condition.title, found, f"{condition.seconds:.2f}")
    stdout.print(table)
    require(results)
    stdout.print(f"all {len(results)} conditions hold")
