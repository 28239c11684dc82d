"""Statements, tables and plans: what PostgreSQL counted in the windows, stages side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.snapshot_facts import (
    PlanByRound,
    PlanChange,
    PlanDifference,
    PlanEstimate,
    PlanRow,
    Plans,
    StatementRow,
    StatementUse,
    TableRow,
    TableUse,
)
from pgdyno.analysis.words import NOTHING, left_out
from pgdyno.model.units import bytes_text, digits_text, ns_text, seconds_text
from pgdyno.model.wording import listed, plural
from pgdyno.report.document import Block, Cell, Column, Points, Section, Table, Text, columns

SHOWN_MAX = 12  # rows of a table
PLANS_MAX = 100
_LEAST = 0.01  # blocks or rows of a call, and share of its time: less is left out
_ABOUT = (
    "Statements that lead by calls, WAL, blocks read or temporary blocks are there, too, and say so"
    " by their best place in any stage. Rows are those that a call returned or changed. Times of"
    " planning and of I/O are told where the server takes them; less than 0.01 blocks, rows or"
    " records, or 1% of the time, is left out."
)
_TEXT_MAX = 80  # characters of a statement that has no name
_QUIET = Cell(NOTHING, "quiet")


def section(facts: Facts) -> Section | None:
    """What was read at both ends of the windows; None: nothing was."""
    blocks = tuple(_blocks(facts))
    return Section("statements", "Statements, tables and plans", blocks) if blocks else None


def _blocks(facts: Facts) -> Iterator[Block]:
    names = [stage.name for stage in facts.stages]
    if facts.statements:
        yield _statements(facts.statements, names)
        yield Text(_ABOUT, "quiet")
    for told in _OF_TABLES:
        if rows := [one for one in facts.tables if _is_told(one, told[1])]:
            yield _tables(rows, names, *told)
    if facts.plans is not None:
        yield from _plans(facts.plans, names)


def _statements(rows: Sequence[StatementRow], names: Sequence[str]) -> Table:
    shown = [row for at, row in enumerate(rows) if at < SHOWN_MAX or row.leads]
    caption = (
        "Statements by the sessions that executed them on average, with how often, the mean of a"
        " call and what it read and wrote; from pg_stat_statements."
        + left_out(len(rows) - len(shown), "statement", where="the run file")
    )
    body = tuple((_named(one), *(_statement(use) for use in one.stages)) for one in shown)
    return Table(caption, columns("statement", *names), body)


def _named(row: StatementRow) -> Cell:
    leads = [f"no. {place} by {measure}" for measure, place in row.leads.items()]
    note = "; ".join(part for part in (row.kind.replace("_", " "), ", ".join(leads)) if part)
    return Cell(_shortened(row.statement), note=note or None)


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _TEXT_MAX else f"{words[:_TEXT_MAX]}…"


def _statement(use: StatementUse | None) -> Cell:
    if use is None:
        return _QUIET
    parts = [f"{digits_text(use.calls_per_s)}/s"]
    parts += [f"of {ns_text(use.mean_s * 1e9)}"] if use.mean_s is not None else []
    for seconds, what in ((use.io_s, "I/O"), (use.plan_s, "planning")):
        told = seconds is not None and seconds >= _LEAST * (use.mean_s or 0.0)
        parts += [f"{what} {ns_text((seconds or 0.0) * 1e9)}"] if told else []
    parts += _some(use.rows, "rows", "row")
    for count, what in (
        (use.read_blocks, "blocks read"), (use.hit_blocks, "hit"),
        (use.dirtied_blocks, "dirtied"), (use.written_blocks, "written"),
        (use.temp_blocks, "temporary blocks"),
    ):  # fmt: skip
        parts += _some(count, what)
    if use.wal_bytes:
        parts.append(f"{bytes_text(round(use.wal_bytes))} of WAL")
        parts += [*_some(use.wal_records, "WAL records", "WAL record")]
        parts += _some(use.wal_fpi, "full page images", "full page image")
    return Cell(f"{use.sessions:.2f}", note=", ".join(parts))


def _some(count: float | None, many: str, one: str | None = None) -> list[str]:
    """Of one call."""
    if not count or count < _LEAST:
        return []
    text = digits_text(count, 2)
    return [f"{text} {one if one and text == '1' else many}"]


# -- tables ---------------------------------------------------------------------------------------


def _is_told(row: TableRow, parts_of: Callable[[TableUse], list[str]]) -> bool:
    return any(use is not None and parts_of(use) for use in row.stages)


def _tables(
    rows: Sequence[TableRow],
    names: Sequence[str],
    caption: str,
    parts_of: Callable[[TableUse], list[str]],
    value_of: Callable[[TableUse], str],
) -> Table:
    """Those of which there is something to tell."""
    shown = rows[:SHOWN_MAX]

    def cell(use: TableUse | None) -> Cell:
        if use is None:
            return _QUIET
        return Cell(value_of(use), note=", ".join(parts_of(use)) or None)

    body = tuple((Cell(one.table), *(cell(use) for use in one.stages)) for one in shown)
    told = caption + left_out(len(rows) - len(shown), "table", where="the run file")
    return Table(told, columns("table", *names), body, folded=True)


def _became(use: TableUse) -> list[str]:
    parts = []
    if use.grown_bytes:
        grown = bytes_text(abs(round(use.grown_bytes)))
        parts.append(f"{grown} {'more' if use.grown_bytes > 0 else 'less'}")
    if use.changed_per_s:
        parts.append(f"{digits_text(use.changed_per_s)} rows/s changed")
    if use.hot_share is not None:
        parts.append(f"{use.hot_share:.0%} of updates HOT")
    if use.moved_per_s:
        parts.append(f"{digits_text(use.moved_per_s)} updates/s onto another page")
    if parts and use.live_rows:
        parts.append(_rows(use.live_rows, "live"))
    return parts


def _rows(rows: float, which: str) -> str:
    return f"{plural(round(rows), 'row', thousands=True)} {which}"


def _read(use: TableUse) -> list[str]:
    parts = []
    if use.index_scans_per_s:
        parts.append(f"{digits_text(use.index_scans_per_s)}/s by index")
    if use.sequential_scans_per_s:
        parts.append(f"{digits_text(use.sequential_scans_per_s)}/s in sequence")
    if use.scanned_rows_per_s:
        parts.append(f"{digits_text(use.scanned_rows_per_s)} rows/s read in sequence")
    return parts


def _scans(use: TableUse) -> str:
    scans_per_s = (use.index_scans_per_s or 0.0) + (use.sequential_scans_per_s or 0.0)
    return f"{digits_text(scans_per_s)}/s" if scans_per_s else "0"


def _cleaned(use: TableUse) -> list[str]:
    parts = []
    for what, times, took_s, ago_s in (
        ("VACUUM", use.vacuums, use.vacuum_s, use.since_vacuum_s),
        ("ANALYZE", use.analyzes, use.analyze_s, use.since_analyze_s),
    ):
        done = f"{what} {digits_text(times, 2)}×"
        took = [f"took {ns_text(took_s * 1e9)}"] if took_s else []
        ago = f"{seconds_text(max(0.0, ago_s))} ago" if ago_s is not None else None
        if times:
            parts += [" ".join((done, *took)), *([f"the last {ago}"] if ago else [])]
        elif ago:
            parts.append(f"last {what} {ago}")
    for rows, since in (
        (use.inserted_since_vacuum, "inserted since a VACUUM"),
        (use.modified_since_analyze, "changed since an ANALYZE"),
    ):
        parts += [_rows(rows, since)] if rows else []
    return parts


_OF_TABLES: Sequence[
    tuple[str, Callable[[TableUse], list[str]], Callable[[TableUse], str]]
] = (
    (
        "Tables with their indexes: size at the end of a window, and what became of them in it. An"
        " update is HOT where it changed no index; one that found no room goes onto another page.",
        _became, lambda use: bytes_text(round(use.bytes)),
    ),
    (
        "How tables were read: scans a second. One in sequence reads all of a table, unless a"
        " limit ends it; one by index reads what it looks for.",
        _read, _scans,
    ),
    (
        "Dead rows of tables at the end of a window, with what VACUUM and ANALYZE did in it, when"
        " they last ended, and the rows since, by which autovacuum decides when they are due.",
        _cleaned, lambda use: f"{use.dead_rows:,.0f}",
    ),
)  # fmt: skip


# -- plans ----------------------------------------------------------------------------------------


_ASKED_FOR = (
    "They are generic plans, for parameters of any value, which the server made when it was asked:"
    " a session of the load keeps the one that it has made until statistics or definitions change,"
    " and may read a small table that has grown otherwise than by these plans."
)


def _plans(plans: Plans, names: Sequence[str]) -> Iterator[Block]:
    if plans.changes:
        yield Text(
            "The plan of a statement was another one when the window had ended. What was measured"
            f" is a mixture of the two. {_ASKED_FOR}", "warn",
        )  # fmt: skip
        yield Points(tuple(_changes(plans.changes)))
    if plans.by_round:
        yield Text(
            "Rounds of one stage began with other plans of the same statement, so that the numbers"
            " of the stage are of several plans. It is not the stage that decides between these."
            f" {_ASKED_FOR}", "warn",
        )  # fmt: skip
        yield Points(tuple(map(_by_round, plans.by_round)))
    if plans.differences:
        yield Text(f"Stages began with other plans of the same statement. {_ASKED_FOR}")
        yield Points(tuple(_difference(one, names) for one in plans.differences))
    if plans.statements and not (plans.changes or plans.by_round or plans.differences):
        both = plural(plans.statements, "statement")
        yield Text(
            f"The plans of {both} were the same at both ends of every window and in all stages."
            f" {_ASKED_FOR}"
        )
    if plans.refused:
        yield Text("The server made no plan of these statements:", "quiet")
        yield Points(tuple(f"{name}: {why}." for name, why in plans.refused), "quiet")
    if plans.rows:
        yield _whole_plans(plans.rows, names)


def _whole_plans(rows: Sequence[PlanRow], names: Sequence[str]) -> Table:
    shown = rows[:PLANS_MAX]
    caption = (
        "Plans in full, with the cost of each stage as the planner expects it, in its own unit,"
        " where a page read in sequence is 1 by default, and the rows. An arrow leads from the"
        " beginning of a window to its end."
        + left_out(len(rows) - len(shown), "plan", where="the run file")
    )
    body = tuple(
        (
            Cell(one.statement, note=one.kind.replace("_", " ") or None),
            Cell(one.shape, note="; ".join(one.nodes) or None),
            *(_expected(use) for use in one.stages),
        )
        for one in shown
    )
    heads = (Column("statement", align="left"), Column("plan", align="left"))
    return Table(caption, (*heads, *map(Column, names)), body, folded=True)


def _expected(use: PlanEstimate | None) -> Cell:
    if use is None:
        return _QUIET
    rows = _between(use.begin_rows, use.end_rows)
    last = use.begin_rows if use.end_rows is None else use.end_rows
    noun = "row" if last is not None and digits_text(last) == "1" else "rows"
    return Cell(_between(use.begin_cost, use.end_cost), note=f"{rows} {noun}")


def _between(begin: float | None, end: float | None) -> str:
    first, last = (NOTHING if one is None else digits_text(one) for one in (begin, end))
    return first if first == last else f"{first} → {last}"


def _changes(changes: Sequence[PlanChange]) -> Iterator[str]:
    """One sentence for all rounds of a stage in which the same happened."""
    rounds: dict[tuple[str, str, str, str], list[int]] = {}
    for one in changes:
        alike = rounds.setdefault((one.statement, one.stage, one.before, one.after), [])
        alike.append(one.round)
    for (statement, stage, before, after), found in rounds.items():
        yield f"{statement} in {_rounds(found)} of {stage}: from `{before}` to `{after}`."


def _by_round(one: PlanByRound) -> str:
    said = "; ".join(f"`{shape}` in {_rounds(rounds)}" for shape, rounds in one.shapes)
    return f"{one.statement} in {one.stage}: {said}."


def _rounds(numbers: Sequence[int]) -> str:
    return f"{'round' if len(numbers) == 1 else 'rounds'} {listed(list(map(str, numbers)))}"


def _difference(one: PlanDifference, names: Sequence[str]) -> str:
    stages: dict[str, list[str]] = {}
    for name, shape in zip(names, one.shapes, strict=True):
        if shape is not None:
            stages.setdefault(shape, []).append(name)
    said = "; ".join(f"`{shape}` in {listed(found)}" for shape, found in stages.items())
    return f"{one.statement}: {said}."
