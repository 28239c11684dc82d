"""`pgdyno knobs`: the catalogue of settings, from the kernel's command line to the client."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated

import typer
from rich.table import Table

from pgdyno import api
from pgdyno.catalog import Entry, layers
from pgdyno.cli.console import stdout
from pgdyno.model.errors import PlanError
from pgdyno.model.wording import plural

NEAR = 5  # names that are offered for a wrong one


def knobs(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A setting, e.g. vm.dirty_background_bytes, or a layer, e.g. sysctl.",
        ),
    ] = None,
) -> None:
    """Tell what pgdyno knows of a setting: versions, range, risk, how to apply and undo it.

    Example: pgdyno knobs wal_sync_method
    """
    known = api.knobs()
    if name is None:
        _overview()
    elif name in layers():
        _list([entry for entry in known.values() if entry.layer == name])
    elif name in known:
        _tell(known[name])
    else:
        near = (
            get_close_matches(name, [*known, *layers()], NEAR)
            or [one for one in known if name in one][:NEAR]
        )
        hint = f"Did you mean {', '.join(near)}?" if near else "`pgdyno knobs` lists the layers."
        raise PlanError(f"no knob or layer is called {name!r}", hint)


def _overview() -> None:
    table = Table("layer", "what", "applied by", "knobs", box=None, pad_edge=False)
    for name, layer in layers().items():
        count = sum(entry.layer == name for entry in api.knobs().values())
        table.add_row(name, layer.title, layer.apply, str(count))
    stdout.print(table)
    stdout.print(f"\n{plural(len(api.knobs()), 'knob')}; `pgdyno knobs LAYER` lists them.")


def _list(found: list[Entry]) -> None:
    table = Table("knob", "default", "risk", "why", box=None, pad_edge=False)
    for entry in found:
        why = f"gone {entry.gone}" if entry.gone else entry.why
        table.add_row(entry.name, entry.default, entry.risk, why)
    stdout.print(table)


def _tell(entry: Entry) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for head, text in knob_lines(entry):
        table.add_row(head, text)
    stdout.print(table)


def knob_lines(entry: Entry) -> list[tuple[str, str]]:
    """What is known of a knob, as (head, text); nothing is left empty."""
    lines = [
        ("knob", entry.name),
        ("layer", f"{entry.layer}: {entry.title}"),
        ("why", entry.why),
        ("gone", entry.gone),
        ("instead", entry.instead),
        ("without effect", entry.useless),
        ("versions", entry.versions),
        ("type", entry.kind),
        ("allowed", entry.allowed),
        ("default", entry.default),
        ("advised", entry.advise),
        ("worth trying", entry.search),
        ("takes effect by", entry.apply),
        ("applied", entry.how),
        ("read back", entry.verify),
        ("undone", entry.undo),
        ("risk", entry.risk),
        ("rung", entry.rung),
        *(
            ("falls", f"{', '.join(one.values) or 'others'}: {one.rung.value}, {one.loses}")
            for one in entry.falls
        ),
        *(("note", note) for note in entry.notes),
        ("field reports", ", ".join(entry.reports)),
        *(("source", source) for source in entry.sources),
    ]
    return [(head, text) for head, text in lines if text]
