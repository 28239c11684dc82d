"""Statements, tables and plans: what PostgreSQL counted in the windows, stages side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.snapshot_facts import (
    PlanByRound,
    PlanChange,
    PlanDifference,
    Plans,
    StatementRow,
    StatementUse,
    TableRow,
    TableUse,
)
from pgdyno.analysis.words import NOTHING
from pgdyno.model.units import bytes_text, digits_text, ns_text
from pgdyno.model.wording import listed, plural
from pgdyno.report.document import Block, Cell, Points, Section, Table, Text, columns

SHOWN_MAX = 12  # rows of a table
_LEAST = 0.01  # blocks of a call, and share of its time: less is left out
_ABOUT = (
    "Statements that lead by calls, WAL, blocks read or temporary blocks are there, too, and say so"
    " by their best place in any stage. Times of planning and of I/O are told where the server"
    " takes them; less than 0.01 blocks, or 1% of the time, is left out."
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
    if changed := [one for one in facts.tables if _moved(one)]:
        yield _tables(changed, names)
    if facts.plans is not None:
        yield from _plans(facts.plans, names)


def _others(left: int, what: str) -> str:
    return f" {plural(left, what)} more are in the run file." if left > 0 else ""


def _statements(rows: Sequence[StatementRow], names: Sequence[str]) -> Table:
    shown = [row for at, row in enumerate(rows) if at < SHOWN_MAX or row.leads]
    caption = (
        "Statements by the sessions that executed them on average, with how often, the mean of a"
        " call and what it read and wrote; from pg_stat_statements."
        + _others(len(rows) - len(shown), "statement")
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
    for blocks, done in (
        (use.read_blocks, "blocks read"), (use.hit_blocks, "hit"),
        (use.dirtied_blocks, "dirtied"), (use.written_blocks, "written"),
        (use.temp_blocks, "temporary blocks"),
    ):  # fmt: skip
        parts += [f"{digits_text(blocks, 2)} {done}"] if blocks and blocks >= _LEAST else []
    parts += [f"{bytes_text(round(use.wal_bytes))} of WAL"] if use.wal_bytes else []
    return Cell(f"{use.sessions:.2f}", note=", ".join(parts))


def _moved(row: TableRow) -> bool:
    return any(
        use is not None
        and (use.changed_per_s or use.grown_bytes or use.vacuums or use.scanned_rows_per_s)
        for use in row.stages
    )


def _tables(rows: Sequence[TableRow], names: Sequence[str]) -> Table:
    shown = rows[:SHOWN_MAX]
    caption = (
        "Tables with their indexes: size at the end of a window, and what became of them in it."
        + _others(len(rows) - len(shown), "table")
    )
    body = tuple((Cell(one.table), *(_table(use) for use in one.stages)) for one in shown)
    return Table(caption, columns("table", *names), body, folded=True)


def _table(use: TableUse | None) -> Cell:
    if use is None:
        return _QUIET
    parts = []
    if use.grown_bytes:
        grown = bytes_text(abs(round(use.grown_bytes)))
        parts.append(f"{grown} {'more' if use.grown_bytes > 0 else 'less'}")
    if use.changed_per_s:
        parts.append(f"{digits_text(use.changed_per_s)} rows/s changed")
    if use.hot_share is not None:
        parts.append(f"{use.hot_share:.0%} of updates HOT")
    if use.dead_rows:
        parts.append(f"{use.dead_rows:,.0f} rows dead")
    if use.vacuums:
        parts.append(f"VACUUM {digits_text(use.vacuums, 2)}×")
    if use.analyzes:
        parts.append(f"ANALYZE {digits_text(use.analyzes, 2)}×")
    if use.scanned_rows_per_s:
        parts.append(f"{digits_text(use.scanned_rows_per_s)} rows/s scanned in sequence")
    return Cell(bytes_text(round(use.bytes)), note=", ".join(parts) or None)


def _plans(plans: Plans, names: Sequence[str]) -> Iterator[Block]:
    for_values = "They are generic plans, for parameters of any value."
    if plans.changes:
        yield Text(
            "The plan of a statement was another one when the window had ended. What was measured"
            f" is a mixture of the two. {for_values}", "warn",
        )  # fmt: skip
        yield Points(tuple(_changes(plans.changes)))
    if plans.by_round:
        yield Text(
            "Rounds of one stage began with other plans of the same statement, so that the numbers"
            " of the stage are of several plans. It is not the stage that decides between these."
            f" {for_values}", "warn",
        )  # fmt: skip
        yield Points(tuple(map(_by_round, plans.by_round)))
    if plans.differences:
        yield Text(f"Stages began with other plans of the same statement. {for_values}")
        yield Points(tuple(_difference(one, names) for one in plans.differences))
    if plans.statements and not (plans.changes or plans.by_round or plans.differences):
        both = plural(plans.statements, "statement")
        yield Text(
            f"The plans of {both} were the same at both ends of every window and in all stages."
            f" {for_values}"
        )
    if plans.refused:
        yield Text("The server made no plan of these statements:", "quiet")
        yield Points(tuple(f"{name}: {why}." for name, why in plans.refused), "quiet")


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
