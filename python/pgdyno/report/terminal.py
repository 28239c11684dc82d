"""Tables of a report for a terminal, and names that a narrow one breaks where a person would."""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table as Printed
from rich.text import Text

from pgdyno.report.document import Table

_PART = re.compile(r"[^-/\s]*[-/\s]?")


class Name:
    """A stage, a path or words, broken after a hyphen, a slash or a space; else if it must be.

    Rich knows spaces alone: `memory-read-write` lost its last letter to the next line.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._parts = _PART.findall(text)
        self._longest = max((cell_len(one.rstrip()) for one in self._parts), default=0)

    def __rich_measure__(self, _console: Console, _options: ConsoleOptions) -> Measurement:
        """From the width below which a part is broken to that of one line."""
        return Measurement(self._longest, cell_len(self._text))

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """As many parts in a line as it holds."""
        lines = [""]
        for part in self._parts:
            if lines[-1] and cell_len((lines[-1] + part).rstrip()) > options.max_width:
                lines.append("")
            lines[-1] += part
        yield Text("\n".join(line.rstrip() for line in lines))


def printed(table: Table) -> Printed:
    """A table of a report, for a terminal."""
    shown = Printed(title=table.caption, title_justify="left", box=None, pad_edge=False)
    for column in table.columns:
        shown.add_column(Name(column.head), justify=column.align, overflow="fold")
    for row in table.rows:
        named, *values = (cell.text for cell in row)
        shown.add_row(Name(named), *values)
    return shown
