"""`pgdyno wal`: what a range of WAL was made of."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from pgdyno import api
from pgdyno.cli.api_defaults import defaults
from pgdyno.cli.console import stderr, stdout
from pgdyno.model.errors import PlanError
from pgdyno.model.units import bytes_text, count_text
from pgdyno.model.wal import TransactionKind, WalRelation, WalSummary
from pgdyno.model.wording import plural

_PLACE = r"([0-9A-Fa-f]+/[0-9A-Fa-f]+)?"
_WINDOW = re.compile(rf"(?=.*/){_PLACE}\.\.{_PLACE}")
_HERE: str = defaults(api.wal)["folder"]
_KINDS_MAX = 20
_RELATIONS_MAX = 20  # of the text; JSON has all


class Form(StrEnum):
    """How it is printed."""

    text = "text"
    json = "json"


def wal(
    folder: Annotated[
        str,
        typer.Argument(
            metavar="[FOLDER]", help="A data directory, its pg_wal, or an archive of segments."
        ),
    ] = _HERE,
    window: Annotated[
        str | None,
        typer.Argument(
            metavar="[FROM..TO]",
            help="Records that begin at FROM or later and before TO; either may be left out.",
        ),
    ] = None,
    timeline: Annotated[
        int | None, typer.Option(help="The timeline to follow; the newest unless said.")
    ] = None,
    form: Annotated[
        Form, typer.Option("--format", help="Tables for people, or all of it as JSON.")
    ] = Form.text,
) -> None:
    """Tell what a range of WAL was made of: by kind of record, by relation, full page images.

    While the server runs, name the end: what pg_current_wal_flush_lsn() says.

    Example: pgdyno wal /var/lib/postgresql/18/main 0/1000028..0/3000000
    """
    if window is None and _WINDOW.fullmatch(folder):
        folder, window = _HERE, folder
    if window is not None and not _WINDOW.fullmatch(window):
        raise PlanError(
            f"what names a range of WAL is FROM..TO, not {window!r}",
            "Write it as 0/1000028..0/3000000, or 0/1000028..",
        )
    first, _, last = (window or "").partition("..")
    with stderr.status("reading") as status:
        found = api.wal(
            Path(folder), first or None, last or None, timeline=timeline, on_event=status.update
        )
    if form is Form.json:
        stdout.print_json(json.dumps(asdict(found)))
        return
    _tell(found)


def _tell(found: WalSummary) -> None:
    stdout.print(
        f"PostgreSQL {found.major}, timeline {found.timeline}, {found.first_lsn or found.from_lsn}"
        f" to {found.end_lsn}: {bytes_text(found.bytes)} of WAL"
    )
    stdout.print(
        f"{plural(found.records, 'record', thousands=True)} of {bytes_text(found.record_bytes)},"
        f" {plural(found.images, 'full page image', thousands=True)} of"
        f" {bytes_text(found.image_bytes)} ({found.share(found.image_bytes):.1%})"
    )
    each = found.bytes_per_commit
    rate = "" if each is None else f", {bytes_text(each)} of WAL for each commit"
    stdout.print(f"{count_text(found.commits)} committed, {count_text(found.aborts)} aborted{rate}")
    stdout.print(
        f"blocks touched first by an image: {count_text(found.blocks_image)}, made anew:"
        f" {count_text(found.blocks_init)}, changed in place: {count_text(found.blocks_plain)}"
    )
    if found.overwritten:
        stdout.print(f"{plural(found.overwritten, 'record')} cut by a crash")
    if found.ended is not None:
        stdout.print(f"WAL ends in {found.ended.file} at {found.ended.lsn}: {found.ended.why}")
    stdout.print()
    stdout.print(_kinds(found))
    stdout.print()
    stdout.print(_transactions(found))
    left = found.transactions.committed[_KINDS_MAX:]
    if left:
        stdout.print(f"{plural(len(left), 'set')} of tables more; JSON has all")
    stdout.print()
    stdout.print(_relations(found, found.relations[:_RELATIONS_MAX]))
    if found.relations[_RELATIONS_MAX:]:
        count = plural(len(found.relations), "relation", thousands=True)
        stdout.print(f"the largest {_RELATIONS_MAX} of {count}; JSON has all")


def _table(first: str, *further: str) -> Table:
    table = Table(first, box=None, pad_edge=False)
    for name in further:
        table.add_column(name, justify="right")
    return table


def _kinds(found: WalSummary) -> Table:
    table = _table("kind of record", "records", "bytes", "share", "images", "bytes of images")
    for one in found.kinds:
        table.add_row(
            f"{one.manager} {one.kind}", count_text(one.records), bytes_text(one.bytes),
            f"{found.share(one.bytes):.1%}", count_text(one.images), bytes_text(one.image_bytes),
        )  # fmt: skip
    return table


def _transactions(found: WalSummary) -> Table:
    """By the tables whose rows they changed: WAL does not name kinds of transactions."""
    table = _table(
        "transactions that changed rows of", "transactions", "bytes of each", "share",
        "images of each",
    )  # fmt: skip
    sums = found.transactions
    rows = [(_tables(kind), kind.used) for kind in sums.committed[:_KINDS_MAX]]
    others = (
        ("further sets of tables", sums.further), ("(rolled back)", sums.rolled_back),
        ("(not ended within the range)", sums.unfinished), ("(no transaction)", sums.outside),
    )  # fmt: skip
    for name, used in (*rows, *((name, used) for name, used in others if used.records)):
        each, images = used.bytes_each, used.images_each
        table.add_row(
            name, "" if each is None else count_text(used.transactions),
            "" if each is None else bytes_text(each), f"{found.share(used.bytes):.1%}",
            "" if images is None else f"{images:.2f}",
        )  # fmt: skip
    return table


def _tables(kind: TransactionKind) -> str:
    """Tables of one database one after the other, the database named once."""
    by_place: dict[str, list[str]] = {}
    for one in kind.tables:
        by_place.setdefault(f"{one.tablespace}/{one.database}", []).append(str(one.relfilenode))
    return " ".join(f"{place}/{' '.join(nodes)}" for place, nodes in by_place.items()) or "no table"


def _relations(found: WalSummary, shown: Iterable[WalRelation]) -> Table:
    table = _table(
        "tablespace/database/relfilenode", "records", "bytes", "share", "images", "bytes of images",
        "blocks",
    )  # fmt: skip
    for one in shown:
        table.add_row(
            one.name, count_text(one.records), bytes_text(one.bytes),
            f"{found.share(one.bytes):.1%}", count_text(one.images), bytes_text(one.image_bytes),
            count_text(one.blocks),
        )  # fmt: skip
    return table
