"""What the server's own views tell of the windows, stages side by side; all of it folded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.view_facts import (
    About,
    BufferUse,
    FreezeUse,
    IndexUse,
    IoUse,
    Level,
    LevelRow,
    LevelUnit,
    ProgressUse,
    ServerViews,
    SlotUse,
    SlruUse,
    StandbyUse,
)
from pgdyno.analysis.words import NOTHING, left_out
from pgdyno.model.server_views import SERVER_VIEWS
from pgdyno.model.units import bytes_text, digits_text, ns_text, seconds_text, share_text
from pgdyno.model.wording import capital, listed, plural
from pgdyno.report.document import Block, Cell, Points, Section, Table, Text, columns

SHOWN_MAX = 12  # rows of a table
_AGES_MAX = 5  # tables whose age is shown
_QUIET = Cell(NOTHING, "quiet")
Use = TypeVar("Use")
Names = Sequence[str]


def section(facts: Facts) -> Section | None:
    """None: of none of the views anything is known, nor that it is missing."""
    blocks = tuple(_blocks(facts))
    return Section("views", "What the server's views say", blocks) if blocks else None


def _blocks(facts: Facts) -> Iterator[Block]:
    names = [stage.name for stage in facts.stages]
    views = facts.views
    tables = [one for make in _TABLES for one in make(views, names)]
    if not tables and facts.servers is not None:
        yield Text("The views of several servers are in the run file, by server.", "quiet")
        return
    if tables:
        yield Text(
            "Counters are what they grew by in the windows, by their seconds; sizes are those at"
            " the ends, gauges means of samples. Where several rounds were measured, they are taken"
            " together. Sessions hand in what they counted once a second at most."
        )
    yield from tables
    if unseen := [*_unseen(facts)]:
        yield Text("What these show is not known, which does not mean that it is zero:", "quiet")
        yield Points(tuple(unseen), "quiet")


def _unseen(facts: Facts) -> Iterator[str]:
    """Of the views alone; what else could not be seen has a section of its own."""
    if (found := facts.telemetry) is None:
        return
    for one in found.lacking:
        if one.name in SERVER_VIEWS:
            where = "" if len(one.stages) == len(facts.stages) else f" ({listed(one.stages)})"
            yield f"{capital(one.name)}: {one.reason}{where}."
    rarely = [one.stage for one in found.costs if one.set == "default"]
    if rarely and "buffers" not in facts.views.read:
        yield 'Buffer cache by relation: it is read with `protocol.telemetry = "full"` alone.'


def _row(name: Cell, stages: Iterable[Use | None], cell: Callable[[Use], Cell]) -> tuple[Cell, ...]:
    return (name, *(_QUIET if use is None else cell(use) for use in stages))


def _ops(count: float, what: str) -> str:
    return f"{digits_text(count)} {what}/s"


# -- I/O ------------------------------------------------------------------------------------------


def _io(views: ServerViews, names: Names) -> Iterator[Block]:
    if not views.io:
        return
    shown = views.io[:SHOWN_MAX]
    caption = "I/O by process, object and context (pg_stat_io)." + left_out(
        len(views.io) - len(shown), "row"
    )
    rows = tuple(
        _row(Cell(f"{one.process}: {one.object}", note=one.context), one.stages, _io_cell)
        for one in shown
    )
    yield Table(caption, columns("who, on what and why", *names), rows, folded=True)


_DONE = ("reads", "writes", "extends")
_BESIDES = ("fsyncs", "writebacks", "evictions", "reuses", "hits")


def _io_cell(use: IoUse) -> Cell:
    moved = sum(use.per_s.get(name, 0.0) for name in _DONE)
    parts = [_moved(use, name) for name in (*_DONE, *_BESIDES) if use.per_s.get(name)]
    return Cell(f"{digits_text(moved)}/s" if moved else "0", note=", ".join(parts) or None)


def _moved(use: IoUse, name: str) -> str:
    more = [f"{bytes_text(use.bytes_per_s[name])}/s"] if use.bytes_per_s.get(name) else []
    more += [f"{ns_text(use.mean_s[name] * 1e9)} each"] if use.mean_s.get(name) else []
    return _ops(use.per_s[name], name) + (f" ({', '.join(more)})" if more else "")


def _aio(views: ServerViews, names: Names) -> Iterator[Block]:
    if views.aio:
        rows = tuple(
            _row(Cell(one.operation or "none yet", note=f"{one.state}, {one.target}".strip(", ")),
                 one.stages, lambda level: Cell(digits_text(level) if level else "0"))
            for one in views.aio[:SHOWN_MAX]
        )  # fmt: skip
        yield Table(
            "Reads and writes under way at a moment, on average (pg_aios).",
            columns("operation", *names), rows, folded=True,
        )  # fmt: skip
    elif "aio" in views.read:
        yield Text("No look at pg_aios met a read or write under way.", "quiet")


def _slru(views: ServerViews, names: Names) -> Iterator[Block]:
    if views.slru:
        used = [one for one in views.slru if any(use and _asked(use) for use in one.stages)]
        rows = [_row(Cell(one.cache), one.stages, _slru_cell) for one in used]
        rows += _zero([(one.cache, one.stages) for one in views.slru if one not in used])
        yield Table(
            "Caches of transaction states (pg_stat_slru): pages asked for.",
            columns("cache", *names), tuple(rows), folded=True,
        )  # fmt: skip


def _asked(use: SlruUse) -> float:
    return use.hits_per_s + use.reads_per_s + use.writes_per_s


def _slru_cell(use: SlruUse) -> Cell:
    asked = use.hits_per_s + use.reads_per_s
    parts = [f"{share_text(use.hits_per_s / asked)} in the cache"] if asked else []
    parts += [_ops(use.reads_per_s, "read")] if use.reads_per_s else []
    parts += [_ops(use.writes_per_s, "written")] if use.writes_per_s else []
    return Cell(f"{digits_text(asked)}/s" if asked else "0", note=", ".join(parts) or None)


# -- buffers and indexes --------------------------------------------------------------------------


def _buffers(views: ServerViews, names: Names) -> Iterator[Block]:
    if not views.buffers:
        return
    shown, rest = views.buffers[:SHOWN_MAX], views.buffers[SHOWN_MAX:]
    named = {"unused": "unused", "elsewhere": "other databases"}
    rows = [
        _row(Cell(one.relation or named.get(one.kind, one.kind), note=one.kind),
             one.stages, _buffer_cell)
        for one in shown
    ]  # fmt: skip
    if rest:
        summed = [_rest([row.stages[at] for row in rest]) for at in range(len(names))]
        rows.append(_row(Cell(plural(len(rest), "further relation")), summed, _buffer_cell))
    yield Table(
        "The buffer cache by relation at the end of a window (pg_buffercache).",
        columns("relation", *names), tuple(rows), folded=True,
    )  # fmt: skip


def _rest(uses: Sequence[BufferUse | None]) -> BufferUse | None:
    known = [one for one in uses if one is not None]
    return BufferUse(
        sum(one.begin for one in known), sum(one.end for one in known),
        sum(one.share for one in known), sum(one.dirty for one in known), None,
    ) if known else None  # fmt: skip


def _buffer_cell(use: BufferUse) -> Cell:
    parts = [f"{use.end:,.0f} buffers"]
    parts += [f"{use.dirty:,.0f} dirty"] if use.dirty else []
    if more := round(use.end - use.begin):
        parts.append(f"{abs(more):,} {'more' if more > 0 else 'fewer'} than at the beginning")
    parts += [f"usage {use.usage:.1f}"] if use.usage is not None else []
    return Cell(share_text(use.share), note=", ".join(parts))


def _indexes(views: ServerViews, names: Names) -> Iterator[Block]:
    used = [one for one in views.indexes if not one.unused]
    unused = [one for one in views.indexes if one.unused]
    for found, caption, cell in (
        (used, "Indexes by their scans, with the entries that these returned, rows of the table"
         " that they fetched, size and growth. Scans of the index alone and by bitmaps fetch no row"
         " themselves.", _index_cell),
        (unused, "Indexes that no scan used in any window. That a unique one is checked by every"
         " insertion is not counted as a scan.", _size_cell),
    ):  # fmt: skip
        if found:
            rows = tuple(
                _row(Cell(one.index, note=f"of {one.table}"), one.stages, cell)
                for one in found[:SHOWN_MAX]
            )
            more = left_out(len(found) - SHOWN_MAX, "index", "indexes")
            yield Table(caption + more, columns("index", *names), rows, folded=True)


def _index_cell(use: IndexUse) -> Cell:
    fetched = f"{_ops(use.fetched_per_s, 'rows')} fetched"
    parts = [_ops(use.rows_per_s, "entries"), fetched, *_size(use)]
    return Cell(f"{digits_text(use.scans_per_s)}/s", note=", ".join(parts))


def _size_cell(use: IndexUse) -> Cell:
    size, *grown = _size(use)
    return Cell(size, note=", ".join(grown) or None)


def _size(use: IndexUse) -> list[str]:
    grown = round(use.grown_bytes)
    more = [f"{bytes_text(abs(grown))} {'more' if grown > 0 else 'less'}"] if grown else []
    return [bytes_text(round(use.bytes)), *more]


# -- sessions, transactions, replication ----------------------------------------------------------


def _sessions(views: ServerViews, names: Names) -> Iterator[Block]:
    yield from _levels(
        "sessions", views, names,
        "Sessions and transactions: means, and the most in any sample.",
    )  # fmt: skip


def _replication(views: ServerViews, names: Names) -> Iterator[Block]:
    yield from _levels(
        "replication", views, names,
        "Standbys, slots and archive: means, and the most in any sample, of the one furthest"
        " behind.",
    )  # fmt: skip
    if views.standbys:
        rows = tuple(
            _row(Cell(one.standby or "without a name"), one.stages, _standby)
            for one in views.standbys
        )
        yield Table(
            "Each standby at the end of a window: its lag of replay.",
            columns("standby", *names), rows, folded=True,
        )  # fmt: skip
    if views.slots:
        rows = tuple(_row(Cell(one.slot, note=one.type), one.stages, _slot) for one in views.slots)
        yield Table(
            "WAL that each replication slot keeps at the end of a window.",
            columns("slot", *names), rows, folded=True,
        )  # fmt: skip


def _levels(about: About, views: ServerViews, names: Names, caption: str) -> Iterator[Block]:
    """Those that are above zero; that the others are zero is one row."""
    found = [one for one in views.levels if one.about == about]
    moved = [one for one in found if any(_greatest(level) for level in one.stages)]
    still = [one for one in found if one not in moved]
    if not found:
        return
    rows = [_level_row(one) for one in moved]
    rows += _zero([(one.what, one.stages) for one in still])
    yield Table(caption, columns("what", *names), tuple(rows), folded=True)


def _zero(still: Sequence[tuple[str, Sequence[object | None]]]) -> list[tuple[Cell, ...]]:
    """One row of all that was zero wherever it was read; nothing where there is none."""
    if not still:
        return []
    known = [any(one is not None for one in of_stage)
             for of_stage in zip(*(stages for _, stages in still), strict=True)]  # fmt: skip
    zero = Cell("zero in all windows", note=listed([what for what, _ in still]))
    return [(zero, *(Cell("0") if one else _QUIET for one in known))]


def _greatest(level: Level | None) -> float:
    return 0.0 if level is None else max(level.mean, level.most or 0.0)


def _level_row(row: LevelRow) -> tuple[Cell, ...]:
    def cell(level: Level) -> Cell:
        most = None if level.most is None else f"at most {_value(level.most, row.unit)}"
        return Cell(_value(level.mean, row.unit), note=most)

    return _row(Cell(row.what), row.stages, cell)


def _value(value: float, unit: LevelUnit) -> str:
    match unit:
        case "B":
            return bytes_text(round(value))
        case "s":
            return ns_text(value * 1e9) if value < 60 else seconds_text(value)
        case _:
            return (digits_text(value) if value else "0") + ("/s" if unit == "1/s" else "")


def _standby(use: StandbyUse) -> Cell:
    parts = [use.status] if use.status else []
    for value, what, unit in (
        (use.write_lag_s, "written", "s"), (use.flush_lag_s, "flushed", "s"),
        (use.flush_behind_bytes, "not flushed", "B"),
        (use.replay_behind_bytes, "not replayed", "B"),
    ):  # fmt: skip
        if value is not None:
            told = max(0.0, value)
            parts.append(f"{bytes_text(round(told))} {what}" if unit == "B"
                         else f"{what} after {ns_text(told * 1e9)}")  # fmt: skip
    lag = "not told" if use.replay_lag_s is None else _value(use.replay_lag_s, "s")
    return Cell(lag, note=", ".join(parts) or None)


def _slot(use: SlotUse) -> Cell:
    parts = [use.status] if use.status else []
    if use.grown_bytes:
        more = "more" if use.grown_bytes > 0 else "less"
        parts.append(f"{bytes_text(abs(round(use.grown_bytes)))} {more}")
    if use.xmin_age is not None:
        parts.append(f"keeps rows of {use.xmin_age:,.0f} transactions")
    kept = "none yet" if use.retained_bytes is None else bytes_text(round(use.retained_bytes))
    return Cell(kept, note=", ".join(parts) or None)


# -- maintenance ----------------------------------------------------------------------------------


def _progress(views: ServerViews, names: Names) -> Iterator[Block]:
    if views.progress:
        rows = tuple(
            _row(Cell(one.command.replace("_", " ")), one.stages, _progress_cell)
            for one in views.progress
        )
        yield Table(
            "Commands that were seen to run (pg_stat_progress_*): seconds in all windows.",
            columns("command", *names), rows, folded=True,
        )  # fmt: skip
    elif "progress" in views.read:
        yield Text("No vacuum, analyze, index build, COPY or the like was seen to run in the"
                   " windows: they are looked at once a second.", "quiet")  # fmt: skip


def _progress_cell(use: ProgressUse) -> Cell:
    if not use.seconds:
        return Cell("0 s")
    parts = [
        f"{relation or 'no relation told'}: {phase or 'phase not told'} {seconds:,.0f} s"
        for relation, phase, seconds in use.parts[:_AGES_MAX]
    ]
    left = len(use.parts) - len(parts)
    parts += [f"{plural(left, 'further phase')}"] if left > 0 else []
    parts += [f"at most {share_text(use.furthest)} done"] if use.furthest is not None else []
    return Cell(f"{use.seconds:,.0f} s", note="; ".join(parts))


def _freeze(views: ServerViews, names: Names) -> Iterator[Block]:
    shown = views.freeze[: _AGES_MAX + 1]
    if shown:
        rows = tuple(
            _row(Cell(one.table or "driven databases"), one.stages, _freeze_cell) for one in shown
        )
        yield Table(
            "Transactions since the oldest row may have been frozen, and how far that is to"
            " autovacuum_freeze_max_age." + left_out(len(views.freeze) - len(shown), "table"),
            columns("table", *names), rows, folded=True,
        )  # fmt: skip


def _freeze_cell(use: FreezeUse) -> Cell:
    if use.max_age is None:
        return Cell(f"{use.age:,.0f}", note="how far it may go is not told")
    left = max(0.0, use.max_age - use.age)
    return Cell(
        f"{use.age:,.0f}",
        note=f"{digits_text(100 * use.age / use.max_age, 2)}% of the way, {left:,.0f} to go",
    )


_Made = Callable[[ServerViews, Names], Iterator[Block]]
_TABLES: Sequence[_Made] = (
    _io, _aio, _buffers, _slru, _indexes, _sessions, _replication, _progress, _freeze,
)  # fmt: skip
