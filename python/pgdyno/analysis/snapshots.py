"""Statements, tables and plans of the windows, from what was read at both ends of each.

Counters count what they grew by from the begin to the end; what was reset between, or was read long
after one of them, is left out for that trial, which has a note of it. What was added up over trials
is divided by their seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from statistics import fmean
from typing import Any

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
from pgdyno.analysis.timeline_facts import Mark
from pgdyno.model.plan_nodes import BELOW, OF_SHAPE, TYPE, Node
from pgdyno.model.record_json import json_value
from pgdyno.model.resets import DATABASES, began_anew
from pgdyno.model.run import Cell, SnapshotRows, TrialRecord
from pgdyno.model.sampler_gaps import in_time
from pgdyno.model.statement_counts import MOST, StatementGrowth, statement_growth

NS = 1e9
Row = Mapping[str, Cell]
Key = tuple[str, str]
SnapshotsByTrial = Mapping[int, Sequence[SnapshotRows]]


@dataclass(frozen=True, slots=True)
class Ends:
    """A snapshot at both ends of a trial's window."""

    record: TrialRecord
    seconds: float  # between the two
    begin: Sequence[Row]
    end: Sequence[Row]


def ends_of(
    name: str, stage: str, trials: Sequence[TrialRecord], snapshots: SnapshotsByTrial
) -> list[Ends]:
    """Those of a stage that were read at both ends."""
    found = []
    for one in trials:
        if one.stage != stage or one.result is None:
            continue
        looks = in_time(snapshots.get(one.number, ()), one.result.window_ns)
        at = {rows.at: rows for rows in looks if rows.name == name}
        if "begin" not in at or "end" not in at:
            continue
        seconds = (at["end"].unix_ns - at["begin"].unix_ns) / NS
        if seconds > 0:
            found.append(Ends(one, seconds, at["begin"].rows, at["end"].rows))
    return found


def grown_by(before: Row | None, after: Row) -> dict[str, float]:
    """What each number grew by, gauges too; what was not there before began at zero."""
    grown = {}
    for name, value in after.items():
        if not is_number(value):
            continue
        then = before.get(name) if before else 0.0
        grown[name] = number(value) - (number(then) if is_number(then) else 0.0)
    return grown


def is_number(value: Cell) -> bool:
    """Whether a cell is measured; labels are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def number(value: Cell) -> float:
    """A cell that `is_number`."""
    assert isinstance(value, int | float)
    return float(value)


# -- statements -----------------------------------------------------------------------------------


def statement_rows(
    stages: Sequence[str], trials: Sequence[TrialRecord], snapshots: SnapshotsByTrial
) -> tuple[StatementRow, ...]:
    """What each statement took, the most expensive first.

    Args:
        stages: Their names, in the order of the plan.
        trials: Those whose numbers may be used.
        snapshots: Of each trial, by its number.
    """
    uses = [_statement_uses(_windows(one, trials, snapshots)) for one in stages]
    keys = dict.fromkeys(key for of_stage in uses for key in of_stage)
    rows = [
        StatementRow(key[0], key[1], tuple(of_stage.get(key) for of_stage in uses)) for key in keys
    ]
    return _with_leads(sorted(rows, key=lambda one: -_most(one.stages)), len(stages))


LEADS_MAX = 3  # statements that lead by something
_LED_BY: Mapping[str, Callable[[StatementUse], float | None]] = {
    "calls": lambda use: 1.0,
    "WAL": lambda use: use.wal_bytes,
    "blocks read": lambda use: use.read_blocks,
    "temporary blocks": lambda use: use.temp_blocks,
}  # of one call


def _with_leads(rows: Sequence[StatementRow], stages: int) -> tuple[StatementRow, ...]:
    leads: list[dict[str, int]] = [{} for _ in rows]
    for measure, of_a_call in _LED_BY.items():
        for stage in range(stages):
            found = [
                (_in_a_second(row.stages[stage], of_a_call), at) for at, row in enumerate(rows)
            ]
            first = sorted(found, key=lambda one: (-one[0], one[1]))[:LEADS_MAX]
            for place, (value, at) in enumerate(first, 1):
                if value > 0:
                    leads[at][measure] = min(place, leads[at].get(measure, place))
    return tuple(replace(row, leads=led) for row, led in zip(rows, leads, strict=True))


def _in_a_second(
    use: StatementUse | None, of_a_call: Callable[[StatementUse], float | None]
) -> float:
    return 0.0 if use is None else use.calls_per_s * (of_a_call(use) or 0.0)


def _most(uses: Iterable[StatementUse | None]) -> float:
    return max((one.sessions for one in uses if one is not None), default=0.0)


def _windows(
    stage: str, trials: Sequence[TrialRecord], snapshots: SnapshotsByTrial
) -> list[StatementGrowth]:
    of = (
        in_time(snapshots.get(one.number, ()), one.result.window_ns)
        for one in trials
        if one.stage == stage and one.result
    )
    return [one for one in map(statement_growth, of) if one is not None]


def _statement_uses(windows: Sequence[StatementGrowth]) -> dict[Key, StatementUse]:
    seconds = sum(one.seconds for one in windows)
    added: dict[Key, dict[str, float]] = {}
    for row, grown in chain.from_iterable(window.grown for window in windows):
        key = str(row["statement"] or row["query"]), str(row["kind"])
        total = added.setdefault(key, {})
        for name, value in grown.items():
            total[name] = total.get(name, 0.0) + value
    return {key: _statement_use(total, seconds) for key, total in added.items()}


def _statement_use(total: Mapping[str, float], seconds: float) -> StatementUse:
    calls = total["calls"]

    def of_a_call(*names: str) -> float | None:
        known = all(name in total for name in names)
        return sum(total[name] for name in names) / calls if known else None

    return StatementUse(
        sessions=total["exec_s"] / seconds,
        calls_per_s=calls / seconds,
        mean_s=of_a_call("exec_s"),
        rows=of_a_call("rows"),
        read_blocks=of_a_call("shared_blks_read"),
        wal_bytes=of_a_call("wal_bytes"),
        hit_blocks=of_a_call("shared_blks_hit"),
        dirtied_blocks=of_a_call("shared_blks_dirtied"),
        written_blocks=of_a_call("shared_blks_written"),
        temp_blocks=of_a_call("temp_blks_read", "temp_blks_written"),
        plan_s=of_a_call("plan_s") or None,
        io_s=of_a_call("read_s", "write_s") or None,
        wal_records=of_a_call("wal_records"),
        wal_fpi=of_a_call("wal_fpi"),
    )


# -- tables ---------------------------------------------------------------------------------------


def table_rows(
    stages: Sequence[str], trials: Sequence[TrialRecord], snapshots: SnapshotsByTrial
) -> tuple[TableRow, ...]:
    """What became of each table, the largest first; see `statement_rows`."""
    counted = [one for one in trials if DATABASES not in began_anew(snapshots.get(one.number, ()))]
    uses = [_table_uses(ends_of("tables", one, counted, snapshots)) for one in stages]
    names = dict.fromkeys(name for of_stage in uses for name in of_stage)
    rows = [TableRow(name, tuple(of_stage.get(name) for of_stage in uses)) for name in names]
    return tuple(
        sorted(rows, key=lambda one: -max(use.bytes for use in one.stages if use is not None))
    )


def changes_rows(record: TrialRecord, snapshots: Sequence[SnapshotRows]) -> bool | None:
    """Whether the load of a trial changes any row of its tables; None: nobody looked."""
    found = table_rows([record.stage], [record], {record.number: snapshots})
    uses = [row.stages[0] for row in found]
    known = [use.changed_per_s > 0 for use in uses if use is not None]
    return any(known) if known else None


_COUNTED = ("inserted", "updated", "hot_updated", "deleted", "vacuums", "analyzes",
            "seq_rows_read", "seq_scans", "index_scans", "moved_updated", "vacuum_s",
            "analyze_s")  # fmt: skip


def _table_uses(windows: Sequence[Ends]) -> dict[str, TableUse]:
    found: dict[str, list[TableUse]] = {}
    for window in windows:
        before = {str(row["relation"]): row for row in window.begin}
        for row in window.end:
            grown = grown_by(before.get(str(row["relation"])), row)
            if str(row["relation"]) not in before and len(before) >= MOST:
                continue  # whether it is new, or was not among those that were read, nobody knows
            if all(grown.get(name, 0.0) >= 0 for name in _COUNTED):
                use = _table_use(row, grown, window.seconds)
                found.setdefault(str(row["relation"]), []).append(use)
    return {name: _mean(uses) for name, uses in found.items()}


def _table_use(row: Row, grown: Mapping[str, float], seconds: float) -> TableUse:
    updated = grown["updated"]

    def in_a_second(name: str) -> float | None:
        return grown[name] / seconds if name in grown else None

    return TableUse(
        bytes=number(row["bytes"]) + number(row["index_bytes"]),
        grown_bytes=grown["bytes"] + grown["index_bytes"],
        changed_per_s=(grown["inserted"] + updated + grown["deleted"]) / seconds,
        hot_share=grown["hot_updated"] / updated if updated else None,
        dead_rows=number(row["dead_rows"]),
        vacuums=grown["vacuums"],
        analyzes=grown["analyzes"],
        scanned_rows_per_s=grown["seq_rows_read"] / seconds,
        moved_per_s=in_a_second("moved_updated"),
        sequential_scans_per_s=in_a_second("seq_scans"),
        index_scans_per_s=in_a_second("index_scans"),
        vacuum_s=grown.get("vacuum_s"),
        analyze_s=grown.get("analyze_s"),
        **{name: _level(row, name) for name in _LEVELS},
    )


_LEVELS = ("freeze_age", "live_rows", "since_vacuum_s", "since_analyze_s",
           "inserted_since_vacuum", "modified_since_analyze")  # fmt: skip


def _level(row: Row, name: str) -> float | None:
    """None: a version does not have it, or there is none."""
    value = row.get(name)
    return number(value) if is_number(value) else None


def _mean(uses: Sequence[TableUse]) -> TableUse:
    names = (one.name for one in fields(TableUse))
    means: dict[str, Any] = {
        name: mean_of_known([getattr(one, name) for one in uses]) for name in names
    }
    return TableUse(**means)


def mean_of_known(values: Sequence[float | None]) -> float | None:
    """None: none is."""
    known = [one for one in values if one is not None]
    return fmean(known) if known else None


def analyze_marks(record: TrialRecord, snapshots: Sequence[SnapshotRows]) -> Iterator[Mark]:
    """When tables were last analyzed or vacuumed in a window, where no log tells of it.

    The server keeps the moment of the last time alone, and by whom it was done is not asked.
    """
    assert record.result is not None
    begin, end = record.result.window_ns
    told = [
        (one.start_ns, one.end_ns or one.start_ns, one.detail.table)
        for one in record.result.events
        if one.kind in ("autovacuum", "autoanalyze")
    ]
    for rows in snapshots:
        if rows.name != "tables" or rows.at != "end":
            continue
        for row in rows.rows:
            for kind, column in _LAST.items():
                ago = row.get(column)
                if not is_number(ago):
                    continue
                at = rows.unix_ns - int(number(ago) * NS)
                if begin <= at <= end and not _is_told(at, str(row["relation"]), told):
                    second = (at - begin) / NS
                    yield Mark(kind, second, second, str(row["relation"]))


_LAST = {"analyze": "since_analyze_s", "vacuum": "since_vacuum_s"}
_NEAR_NS = 2_000_000_000  # what the log tells and what the server keeps differ by less


def _is_told(at: int, table: str, told: Sequence[tuple[int, int, str | None]]) -> bool:
    return any(
        start - _NEAR_NS <= at <= end + _NEAR_NS and _last_part(name or "") == _last_part(table)
        for start, end, name in told
    )


def _last_part(name: str) -> str:
    """Of a table's name, which the log has with database and schema."""
    return name.rsplit(".", maxsplit=1)[-1].strip('"')


# -- plans ----------------------------------------------------------------------------------------


def plan_facts(
    stages: Sequence[str], trials: Sequence[TrialRecord], snapshots: SnapshotsByTrial
) -> Plans | None:
    """Plans that changed in a window, or differ between rounds of a stage or between stages.

    None: none was looked at.
    """
    by_stage = {one: ends_of("plans", one, trials, snapshots) for one in stages}
    windows = [window for of_stage in by_stage.values() for window in of_stage]
    if not windows:
        return None
    begun = {stage: _begun_with(of_stage) for stage, of_stage in by_stage.items()}
    refused = {
        _name(row): str(row["error"])
        for window in windows
        for row in (*window.begin, *window.end)
        if row["error"]
    }
    known = {_name(row) for window in windows for row in window.begin if row["shape"]}
    return Plans(
        statements=len(known),
        changes=tuple(change for window in windows for change in _changes(window)),
        differences=tuple(_differences(sorted(known), tuple(begun.values()))),
        refused=tuple(sorted((name, why) for name, why in refused.items() if name not in known)),
        by_round=tuple(
            PlanByRound(name, stage, tuple((shape, tuple(rounds)) for shape, rounds in found))
            for stage, of_stage in begun.items()
            for name, shapes in sorted(of_stage.items())
            if len(found := shapes.items()) > 1
        ),
        rows=tuple(_plan_rows(by_stage)),
    )


def _name(row: Row) -> str:
    return str(row["statement"])


def _changes(window: Ends) -> Iterator[PlanChange]:
    before = {_name(row): str(row["shape"]) for row in window.begin if row["shape"]}
    for row in window.end:
        then, now = before.get(_name(row)), str(row["shape"])
        if then and now and then != now:
            record = window.record
            yield PlanChange(_name(row), record.stage, record.round, then, now)


def _differences(
    names: Sequence[str], begun: Sequence[Mapping[str, Mapping[str, Sequence[int]]]]
) -> Iterator[PlanDifference]:
    for name in names:
        shapes = tuple(_only(of_stage.get(name, {})) for of_stage in begun)
        if len({one for one in shapes if one is not None}) > 1:
            yield PlanDifference(name, shapes)


def shapes_of(
    stage: str, trials: Sequence[TrialRecord], snapshots: SnapshotsByTrial
) -> dict[str, str]:
    """The plans that a stage's windows began with, by statement; several where rounds differ."""
    begun = _begun_with(ends_of("plans", stage, trials, snapshots))
    return {name: _SHAPES_APART.join(sorted(shapes)) for name, shapes in begun.items()}


_SHAPES_APART = ", in other rounds "


def _begun_with(windows: Sequence[Ends]) -> dict[str, dict[str, list[int]]]:
    """By statement the plans that windows of a stage began with, and in which rounds.

    Rounds begin on the same data, and yet not always with the same plan: statistics are a sample,
    and a server that is not ours goes on between them.
    """
    found: dict[str, dict[str, list[int]]] = {}
    for window in windows:
        for row in window.begin:
            if row["shape"]:
                shapes = found.setdefault(_name(row), {})
                shapes.setdefault(str(row["shape"]), []).append(window.record.round)
    return found


def _only(shapes: Mapping[str, Sequence[int]]) -> str | None:
    """The plan of all rounds; None: not known, or it is not the stage that decides which it is."""
    return next(iter(shapes)) if len(shapes) == 1 else None


def _plan_rows(by_stage: Mapping[str, Sequence[Ends]]) -> Iterator[PlanRow]:
    """Each plan that was met at an end of a window, with what the planner expected of it there."""
    met: dict[tuple[str, str, str, str], dict[str, tuple[list[Row], list[Row]]]] = {}
    for stage, windows in by_stage.items():
        for window in windows:
            for side, rows in enumerate((window.begin, window.end)):
                for row in filter(lambda one: one["shape"], rows):
                    kind, plan = str(row["kind"]), str(row.get("plan", ""))
                    key = _name(row), kind, str(row["shape"]), plan
                    met.setdefault(key, {}).setdefault(stage, ([], []))[side].append(row)
    for (statement, kind, shape, plan), stages in sorted(met.items()):
        uses = (_estimate(*stages[one]) if one in stages else None for one in by_stage)
        yield PlanRow(statement, kind, shape, tuple(_nodes(plan)), tuple(uses))


def _estimate(begin: Sequence[Row], end: Sequence[Row]) -> PlanEstimate:
    costs, rows = (
        [mean_of_known([_level(row, name) for row in side]) for side in (begin, end)]
        for name in ("cost", "rows")
    )
    return PlanEstimate(*costs, *rows)


def _nodes(plan: str) -> Iterator[str]:
    """The nodes from the top, with what the plan's one line does not tell of them."""
    nodes: list[Node] = [json_value(plan)] if plan else []
    while nodes:
        node = nodes.pop(0)
        nodes = [*node.get(BELOW, ()), *nodes]
        told = [
            f"{name} {', '.join(map(str, value)) if isinstance(value, list) else value}"
            for name, value in node.items()
            if name not in (TYPE, BELOW, *OF_SHAPE) and value not in (False, None)
        ]
        if told:
            yield f"{node[TYPE]}: {', '.join(told)}"
