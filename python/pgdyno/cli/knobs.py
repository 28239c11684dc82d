"""`pgdyno knobs`: the catalogue of settings, from the kernel's command line to the client."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.table import Table

from pgdyno import api
from pgdyno.catalog import Entry, layers
from pgdyno.cli.console import stdout
from pgdyno.model.wording import plural


def _known(incomplete: str) -> list[str]:
    """What a shell may complete to."""
    return [name for name in (*layers(), *api.knobs()) if name.startswith(incomplete)]


def knobs(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A setting, e.g. vm.dirty_background_bytes, or a layer, e.g. sysctl.",
            autocompletion=_known,
        ),
    ] = None,
) -> None:
    """Tell what pgdyno knows of a setting: versions, range, risk, how to apply and undo it.

    Example: pgdyno knobs wal_sync_method
    """
    if name is None:
        _overview()
    elif name in layers():
        _list(api.knobs(name).values())
    else:
        _tell(api.knob(name))


def _overview() -> None:
    table = Table("layer", "what", "applied by", "knobs", box=None, pad_edge=False)
    for name, layer in layers().items():
        table.add_row(name, layer.title, layer.apply, str(len(api.knobs(name))))
    stdout.print(table)
    stdout.print(f"\n{plural(len(api.knobs()), 'knob')}; `pgdyno knobs LAYER` lists them.")


def _list(found: Iterable[Entry]) -> None:
    table = Table("knob", "default", "risk", "why", box=None, pad_edge=False)
    for entry in found:
        why = f"gone {entry.gone}" if entry.gone else entry.why
        table.add_row(entry.name, entry.default, entry.risk, why)
    stdout.print(table)


def _tell(entry: Entry) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for head, text in entry.lines():
        table.add_row(head, text)
    stdout.print(table)
