"""What the WAL of each stage's windows was made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.wal_facts import StageWal, WalPart, WalTransactions
from pgdyno.analysis.words import NOTHING, left_out
from pgdyno.model.units import bytes_text, share_text
from pgdyno.model.wording import listed
from pgdyno.report.document import Block, Cell, Section, Table, Text, columns

_Key = TypeVar("_Key", str, tuple[str, ...])
SHOWN_MAX = 12  # rows of a table
_SHARE_MIN = 0.0005  # of a kind of transaction in any stage: less is told as 0.0%
_NOT_KNOWN = Cell("not known", "quiet")
_OTHERS = (
    ("committed, of other tables", "further"),
    ("rolled back", "rolled_back"),
    ("not ended with the window", "unfinished"),
    ("of no transaction", "outside"),
)


def section(facts: Facts) -> Section | None:
    """Stages side by side; None: of none it is known."""
    if not facts.wal:
        return None
    names = [stage.name for stage in facts.stages]
    known = {one.stage: one for one in facts.wal}
    stages = [known.get(name) for name in names]
    note = Text(
        "Read from the segments after each window, of servers that pgdyno started; what the server"
        " had recycled by then is not in it. A commit is a transaction that wrote WAL and"
        " committed. What a transaction costs, elsewhere in this report, is of the server's own"
        " counters, which come up to a second late: in short windows the two differ by what that"
        " shifts. Relations are named by what the databases held afterwards; what was rewritten or"
        " dropped meanwhile keeps the numbers of its files.",
        "quiet",
    )
    kinds = _parts(stages, names, "kind of record", lambda one: one.kinds,
                   "WAL of a commit by kind of record, with its share of the stage's WAL and full"
                   " page images.")  # fmt: skip
    relations = _parts(stages, names, "relation", lambda one: one.relations,
                       "WAL of a commit by the relation that it changes.")  # fmt: skip
    blocks: tuple[Block, ...] = (
        _stages(stages, names),
        *_transactions(stages, names),
        kinds,
        relations,
        note,
    )
    return Section("wal", "What WAL is made of", blocks)


def _stages(stages: Sequence[StageWal | None], names: Sequence[str]) -> Table:
    heads = columns("stage", "WAL of a commit", "records", "full page images", "share of images",
                    "windows", "read")  # fmt: skip
    rows = tuple(
        (Cell(name), *(_figures(one) if one else (_NOT_KNOWN, *(Cell(NOTHING),) * 5)))
        for name, one in zip(names, stages, strict=True)
    )
    caption = (
        "WAL by committed transaction: bytes, records and full page images, the share of bytes that"
        " are such images, and how much of the windows' WAL was still there to be read."
    )
    return Table(caption, heads, rows)


def _figures(one: StageWal) -> tuple[Cell, ...]:
    return (
        Cell(bytes_text(round(one.bytes))), Cell(f"{one.records:.1f}"), Cell(f"{one.images:.2f}"),
        Cell(share_text(one.image_share)), Cell(str(one.windows)), Cell(share_text(one.share)),
    )  # fmt: skip


def _transactions(stages: Sequence[StageWal | None], names: Sequence[str]) -> tuple[Table, ...]:
    """By kind of transaction; none where no window told them."""
    found = [{part.tables: part for part in one.transactions} if one else {} for one in stages]
    one_of = {tables: part for of_stage in found for tables, part in of_stage.items()}
    if not one_of:
        return ()
    most = _most({tables: part.share for tables, part in of_stage.items()} for of_stage in found)
    shown = [tables for tables, share in most.items() if share >= _SHARE_MIN][:SHOWN_MAX]
    caption = (
        "WAL of one transaction by its kind, with the kind's share of the stage's WAL and full page"
        " images. WAL does not name kinds: transactions are told apart by the tables whose rows"
        " they change, and have the name of the workload's transaction that changes just these."
    )
    caption += left_out(len(most) - len(shown), "row")
    rows = [
        (_named(one_of[tables]), *(
            _kind(of_stage.get(tables), one) for of_stage, one in zip(found, stages, strict=True)
        ))
        for tables in shown
    ]  # fmt: skip
    rows += [
        (Cell(name), *(
            Cell(NOTHING, note=share_text(getattr(one.others, field))) if one and one.others
            else _NOT_KNOWN
            for one in stages
        ))
        for name, field in _OTHERS
        if any(one and one.others and getattr(one.others, field) for one in stages)
    ]  # fmt: skip
    return (Table(caption, columns("kind of transaction", *names), tuple(rows)),)


def _most(found: Iterable[Mapping[_Key, float]]) -> dict[_Key, float]:
    """The largest of any stage by key, the largest first."""
    most: dict[_Key, float] = {}
    for of_stage in found:
        for key, value in of_stage.items():
            most[key] = max(value, most.get(key, 0.0))
    return dict(sorted(most.items(), key=lambda one: (-one[1], one[0])))


def _named(part: WalTransactions) -> Cell:
    tables = listed(part.tables) if part.tables else "rows of no table"
    return Cell(listed(part.kinds, "or"), note=tables) if part.kinds else Cell(tables)


def _kind(part: WalTransactions | None, stage: StageWal | None) -> Cell:
    if stage is None or not stage.transactions:
        return _NOT_KNOWN
    if part is None:
        return Cell(NOTHING, "quiet")
    notes = [share_text(part.share)]
    notes += [f"{share_text(part.image_bytes / part.bytes)} of it images"] if part.images else []
    return Cell(bytes_text(round(part.bytes)), note=", ".join(notes))


def _parts(
    stages: Sequence[StageWal | None],
    names: Sequence[str],
    head: str,
    parts: Callable[[StageWal], Sequence[WalPart]],
    caption: str,
) -> Table:
    found = [{part.name: part for part in parts(one)} if one else None for one in stages]
    most = _most({name: part.bytes for name, part in (one or {}).items()} for one in found)
    shown = [*most][:SHOWN_MAX]
    caption += left_out(len(most) - len(shown), "row")
    rows = tuple(
        (
            Cell(name),
            *(
                _part(of_stage.get(name), one) if of_stage is not None and one else _NOT_KNOWN
                for of_stage, one in zip(found, stages, strict=True)
            ),
        )
        for name in shown
    )
    return Table(caption, columns(head, *names), rows)


def _part(part: WalPart | None, stage: StageWal) -> Cell:
    if part is None:
        return Cell(NOTHING, "quiet")
    notes = [share_text(part.bytes / stage.bytes)]
    notes += [f"{share_text(part.image_bytes / part.bytes)} of it images"] if part.images else []
    return Cell(bytes_text(round(part.bytes)), note=", ".join(notes))
