"""Checkpoint cycles of the stages, what anchors tell of them, and what autovacuum took."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.analysis import words
from pgdyno.analysis.cycle_facts import CycleFacts, VacuumFacts, VacuumTable
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.vacuum import THRESHOLDS
from pgdyno.model.units import bytes_text, count_text, seconds_text
from pgdyno.model.wording import listed, plural
from pgdyno.report.document import Block, Cell, Column, Points, Section, Table, Text

_PART = 0.01  # of the time of all tables: less is told together
_FOLLOWS = {"ignore": "by the clock", "cycles": "whole cycles", "anchors": "anchors"}


def section(facts: Facts) -> Section | None:
    """How long cycles are, and what of them and of vacuum the windows hold."""
    if not any(one.windows for one in facts.cycles):
        return None
    blocks: list[Block] = [_cycles(facts)]
    if invalid := [f"`{one.stage}`: {text}." for one in facts.cycles for text in one.invalid]:
        blocks += [
            Text("Anchors that do not show what whole cycles do:", "warn"),
            Points(tuple(invalid)),
        ]
    if any(one.anchors for one in facts.cycles):
        blocks.append(_anchors(facts))
        blocks.append(
            Text(
                "Latencies are those of anchors alone: what the end of a checkpoint does to them"
                " cannot be carried over to short windows."
            )
        )
    return Section("cycles", "Checkpoints and vacuum", (*blocks, *_vacuum(facts)))


def _cycles(facts: Facts) -> Table:
    return Table(
        "Checkpoint cycles, each from one start to the next, and the windows that hold whole ones.",
        (
            Column("stage", align="left"),
            Column("windows", align="left"),
            Column("cycle as seen"),
            Column("by settings and WAL rate"),
            Column("WAL", "per s"),
            Column("of whole cycles"),
        ),
        tuple(
            (
                Cell(one.stage),
                Cell(_FOLLOWS[one.follows]),
                Cell(_lengths(one)),
                Cell(words.NOTHING if one.expected_s is None else seconds_text(one.expected_s)),
                Cell(bytes_text(one.wal_bytes_per_s) if one.wal_bytes_per_s else words.NOTHING),
                Cell(_whole(one)),
            )
            for one in facts.cycles
        ),
    )


def _lengths(one: CycleFacts) -> str:
    if not one.cycles_s:
        return "none ended under the load" if one.windows else words.NOTHING
    low, high = min(one.cycles_s), max(one.cycles_s)
    return f"{low:.0f} s" if round(low) == round(high) else f"{low:.0f} to {high:.0f} s"


def _whole(one: CycleFacts) -> str:
    if one.follows == "anchors":
        return plural(len(one.anchors), "anchor")
    return f"{one.whole_windows} of {one.windows}"


def _anchors(facts: Facts) -> Table:
    return Table(
        f"Anchors: {facts.headline} over a whole cycle, and in the phase that short windows have.",
        (
            Column("trial", align="left"),
            Column("round"),
            Column("cycle", "s"),
            Column("whole cycle"),
            Column("short window"),
            Column("short is off by"),
            Column("left by a checkpoint's writes"),
            Column("first cycle in tenths"),
        ),
        tuple(
            (
                Cell(f"{one.trial} {stage.stage}"),
                Cell(str(one.round)),
                Cell(f"{one.cycle_s:.0f}"),
                Cell(count_text(one.whole)),
                Cell(count_text(one.short)),
                Cell(f"{one.short / one.whole - 1:+.1%}" if one.whole else words.NOTHING),
                Cell(f"{one.writes_leave:.0%}"),
                Cell(_tenths(one.curve)),
            )
            for stage in facts.cycles
            for one in stage.anchors
        ),
        folded=True,
    )


def _tenths(curve: tuple[float, ...]) -> str:
    pairs = [sum(curve[at : at + 2]) / 2 for at in range(0, len(curve), 2)]
    return ", ".join(count_text(value) for value in pairs)


def _read(facts: Facts) -> bool:
    """Whether the log of a server that is not ours was read: by SQL, as a snapshot."""
    found = facts.telemetry
    return found is not None and any(one.name == "log" for one in found.sampled.tables)


def _vacuum(facts: Facts) -> list[Block]:
    known = [(one, one.vacuum) for one in facts.cycles if one.vacuum is not None]
    if not known:
        if facts.server and not _read(facts):
            return [
                Text("When autovacuum ran, and what it did, is not known: the log is not read.")
            ]
        none = "No autovacuum ended while a load ran, as far as the server's log shows"
        if facts.server:  # those of ours log all of them
            none += ": it tells those alone that took log_autovacuum_min_duration"
        return [Text(f"{none}.")]
    blocks: list[Block] = []
    lines = tuple(
        f"`{one.stage}`: {unlike_text(vacuum)}." for one, vacuum in known if vacuum.unlike
    )
    if lines:
        blocks += [
            Text("Windows hold more or less of autovacuum than the load does:", "warn"),
            Points(lines),
        ]
    blocks.append(_charged([(one.stage, vacuum) for one, vacuum in known]))
    blocks.append(Text(THRESHOLDS, "quiet"))
    blocks.append(
        Table(
            "Autovacuum by table, finished rounds together: where its episodes fell. Those that had"
            " not ended when a trial did are not in the log.",
            (
                Column("stage and table", align="left"),
                Column("episodes"),
                Column("time in the load"),
                Column("of it in windows"),
                Column("WAL"),
            ),
            tuple(
                (
                    Cell(f"{one.stage}: {table.table}"),
                    Cell(str(table.episodes)),
                    Cell(seconds_text(table.run_s)),
                    Cell(seconds_text(table.window_s)),
                    Cell(words.NOTHING if table.wal_bytes is None else bytes_text(table.wal_bytes)),
                )
                for one, vacuum in known
                for table in _gathered(vacuum.tables)
            ),
            folded=True,
        )
    )
    return blocks


def _gathered(tables: Sequence[VacuumTable]) -> list[VacuumTable]:
    """Those that took a part of the time, and all others in one line: mostly of the catalogue."""
    least_s = _PART * sum(one.run_s for one in tables)
    shown = [one for one in tables if one.run_s >= least_s]
    others = [one for one in tables if one.run_s < least_s]
    if len(others) < 2:
        return list(tables)
    wal = [one.wal_bytes for one in others]
    return [
        *shown,
        VacuumTable(
            table=plural(len(others), "other"),
            episodes=sum(one.episodes for one in others),
            run_s=sum(one.run_s for one in others),
            window_s=sum(one.window_s for one in others),
            wal_bytes=None if None in wal else sum(one for one in wal if one is not None),
        ),
    ]


def _charged(known: Sequence[tuple[str, VacuumFacts]]) -> Table:
    return Table(
        "What autovacuum takes of a transaction: over the whole load, warm-up and anchors included,"
        " and in the windows. Windows that were charged less than the load show too much.",
        (
            Column("stage", align="left"),
            Column("WAL, load"),
            Column("WAL, windows"),
            Column("CPU, load", "µs"),
            Column("CPU, windows", "µs"),
        ),
        tuple(
            (
                Cell(stage),
                *(
                    Cell(words.NOTHING if one.wal_bytes is None else bytes_text(one.wal_bytes))
                    for one in (vacuum.cost, vacuum.window_cost)
                ),
                *(
                    Cell(words.NOTHING if one.cpu_us is None else f"{one.cpu_us:,.1f}")
                    for one in (vacuum.cost, vacuum.window_cost)
                ),
            )
            for stage, vacuum in known
        ),
    )


def unlike_text(vacuum: VacuumFacts) -> str:
    """What windows hold of vacuum, against what the load does."""
    text = (
        f"autovacuum ran for {vacuum.time_share:.0%} of the load and"
        f" {vacuum.window_time_share:.0%} of the windows"
    )
    if vacuum.wal_share is not None and vacuum.window_wal_share is not None:
        text += f", and wrote {vacuum.wal_share:.0%} and {vacuum.window_wal_share:.0%} of the WAL"
    if vacuum.cpu_s is not None and vacuum.window_cpu_s is not None:
        text += f" with {vacuum.cpu_s:.1f} s and {vacuum.window_cpu_s:.1f} s of CPU"
    if vacuum.missed_rounds:
        rounds = listed([str(one) for one in vacuum.missed_rounds])
        one, many = f"window of round {rounds} holds", f"windows of rounds {rounds} hold"
        text += f"; the {one if len(vacuum.missed_rounds) == 1 else many} nothing of it"
    return text
