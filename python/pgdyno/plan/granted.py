"""Rights of a role as the dry run shows them, with what grants those that are missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from pgdyno.model.rights import Right


def granted(found: Sequence[Right]) -> Iterator[RenderableType]:
    """Rights one by one, and what grants those that are missing."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for one in found:
        absent = ("missing", "bold red") if one.is_needed else ("optional", "")
        absent = ("not known", "yellow") if one.unknown else absent
        word, style = ("held", "green") if one.is_held else absent
        why = f": {one.unknown}, so that the first database of the run tells" * bool(one.unknown)
        without = f"\nwithout it: {one.otherwise}" if one.otherwise and not one.is_held else ""
        table.add_row(Text(word, style=style), Text(one.what + why + without))
    yield table
    if missing := [one for one in found if not one.is_held]:
        unknown = ", or not known," if any(one.unknown for one in missing) else ""
        yield Text(f"\nA superuser grants what is missing or optional{unknown} with psql:\n")
        for one in missing:
            lines = [f"-- first, {one.before}"] * bool(one.before)
            # No padding, which cuts what is wider than the terminal.
            script = "\n".join(f"  {line}" for line in (*lines, *one.grant))
            yield Text(script, no_wrap=True, overflow="ignore")
