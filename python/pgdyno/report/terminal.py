"""Tables of a report for a terminal."""

from __future__ import annotations

from rich.table import Table as Printed

from pgdyno.report.document import Table


def printed(table: Table) -> Printed:
    """A table of a report, for a terminal."""
    shown = Printed(title=table.caption, title_justify="left", box=None, pad_edge=False)
    for column in table.columns:
        shown.add_column(column.head, justify=column.align, overflow="fold")
    for row in table.rows:
        shown.add_row(*(cell.text for cell in row))
    return shown
