"""Verdicts need whole checkpoint cycles where stages differ in what shapes them."""

from __future__ import annotations

import io
import json as text_json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from pgdyno.analysis.facts import Comparison, Facts
from pgdyno.analysis.run import analyse
from pgdyno.analysis.trials import per_second
from pgdyno.analysis.vacuum import vacuum_facts
from pgdyno.model.cycle import Followed, Spacing
from pgdyno.model.event_detail import EventDetail
from pgdyno.model.plan import Stage
from pgdyno.model.run import (
    Cell,
    Event,
    Series,
    SnapshotColumn,
    SnapshotRows,
    TrialRecord,
    TrialResult,
)
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.report import json, markdown, summary
from pgdyno.report.sections.cycles import unlike_text
from pgdyno.store import RunFile
from tests.data.miniature import CHARACTERS, SECOND_NS, Character, write_miniature

ORIGIN = Origin(OriginKind.PLAN, "plans/demo.toml: stage tuned")
WAL = Setting("max_wal_size", "16GB", ORIGIN)
WHOLE = (-5.0, 0.0, 15.0, 30.0)  # checkpoints since the window's begin: two cycles of 15 s
SPACING = Spacing(100.0, float(64 << 30), 0.9)
CYCLE_S = 100
Change = Callable[[TrialResult], TrialResult]


def characters(
    checkpoint_at_s: tuple[float, ...] | None = None, setting: Setting = WAL, **stage: object
) -> tuple[Character, ...]:
    """The first stage as it is; the others change a setting that shapes checkpoint cycles."""
    return tuple(
        replace(
            one,
            stage=_with(one.stage, (setting,) if number else (), **stage),
            checkpoint_at_s=one.checkpoint_at_s if checkpoint_at_s is None else checkpoint_at_s,
        )
        for number, one in enumerate(CHARACTERS)
    )


def _with(stage: Stage, settings: tuple[Setting, ...], **changes: object) -> Stage:
    given = (*stage.settings, *settings)
    return replace(stage, settings=given, **changes)  # type: ignore[arg-type]


def facts_of(path: Path) -> Facts:
    with RunFile.read(path) as run:
        return analyse(run)


def compared(facts: Facts, stage: str) -> Comparison:
    found = next(one.to_first for one in facts.stages if one.name == stage)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "setting",
    [
        Setting("max_wal_size", "16GB", ORIGIN),
        Setting("checkpoint_timeout", "15min", ORIGIN),
        Setting("full_page_writes", "off", ORIGIN),
        Setting("wal_compression", "lz4", ORIGIN),
        Setting("bgwriter_delay", "50ms", ORIGIN),
        Setting("min_wal_size", "4GB", ORIGIN),
    ],
    ids=lambda one: one.name,
)
def test_no_verdict_without_whole_cycles(tmp_path: Path, setting: Setting) -> None:
    mine = characters(setting=setting)
    path = write_miniature(tmp_path / "run.sqlite", rounds=5, invalid=(), characters=mine)
    facts = facts_of(path)

    told = compared(facts, "tuned")
    assert told.verdict == "not judged"
    assert told.reason.startswith("the windows hold no whole checkpoint cycle")
    assert setting.name in told.reason
    assert told.reason.endswith("ratio and interval are of the windows only")
    assert told.ratio is not None
    assert told.low is not None
    assert told.rounds_needed is None
    before = next(one.to_previous for one in facts.stages if one.name == "async-commit")
    assert before is not None
    assert before.verdict == "better", "both have it: the windows are alike"
    assert "not judged" in facts.answer.limits
    (doubt,) = (one for one in facts.answer.doubts if one.text.startswith("not judged"))
    assert doubt.stages == ("tuned", "async-commit"), "it stands in the boxes of these alone"
    assert "is not judged, its windows alone show" in facts.answer.finding


def test_every_format_says_so(tmp_path: Path) -> None:
    path = write_miniature(tmp_path / "run.sqlite", rounds=5, characters=characters())
    facts = facts_of(path)
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(summary.render(facts))
    terminal = " ".join(console.export_text().split())
    marked = " ".join(markdown.render(facts).split())
    for text in (terminal, marked):
        assert "not judged" in text
        assert "hold no whole checkpoint cycle" in text
        assert "ratio and interval are of the windows only" in text
    stages = text_json.loads(json.render(facts))["stages"]
    assert stages[1]["to_first"]["verdict"] == "not judged"
    assert stages[1]["to_first"]["ratio"] > 1


def test_a_setting_at_its_default_is_no_change(tmp_path: Path) -> None:
    default = characters(setting=Setting("full_page_writes", "on", ORIGIN))
    facts = facts_of(write_miniature(tmp_path / "run.sqlite", rounds=5, characters=default))
    assert compared(facts, "tuned").verdict == "better"


def test_windows_of_whole_cycles_are_judged(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    write_miniature(path, rounds=5, invalid=(), characters=characters(WHOLE))
    facts = facts_of(path)
    assert compared(facts, "tuned").verdict == "better"
    cycles = {one.stage: one for one in facts.cycles}
    assert (cycles["tuned"].whole_windows, cycles["tuned"].windows) == (5, 5)
    assert cycles["tuned"].cycles_s == pytest.approx([35 / 3] * 5)


def test_a_window_that_ends_late_by_a_second_is_whole_and_one_in_the_first_cycle_is_not(
    tmp_path: Path,
) -> None:
    late = facts_of(
        write_miniature(tmp_path / "a.sqlite", characters=characters((-5.0, -0.5, 14.0, 29.0)))
    )
    assert compared(late, "tuned").verdict != "not judged"
    first = facts_of(
        write_miniature(tmp_path / "b.sqlite", characters=characters((0.5, 15.0, 29.0)))
    )
    assert compared(first, "tuned").verdict == "not judged"


def anchored(path: Path, second: float = 0.8, anchors: int = 2, **stage: Any) -> Path:
    """A run of five rounds whose first ones are anchors of 130 s, with a cycle of 100 s."""
    mine = characters(checkpoint_at_s=(), checkpoints="anchors", **stage)
    write_miniature(path, rounds=5, invalid=(), characters=mine)
    with RunFile.append(path) as run:
        for trial in run.trials():
            if trial.round <= anchors:
                # The first stage pays twice as much for what its checkpoints write.
                left = 2 * second - 1 if trial.stage == "initdb" else second
                run.put_trial(*_as_anchor(trial, left, run.series(trial.number)))
    return path


def _as_anchor(
    trial: TrialRecord, left: float, series: dict[str, Series]
) -> tuple[TrialRecord, list[Series]]:
    result = trial.result
    assert result is not None
    begin_ns = result.window_ns[0] - 10 * SECOND_NS
    shape = np.where(np.arange(131) < CYCLE_S, 1.0, left)
    unix_ns = begin_ns + np.arange(131, dtype=np.int64) * SECOND_NS
    rows = [
        replace(one, unix_ns=unix_ns, values=float(one.values[15:35].mean()) * shape)
        for name, one in series.items()
        if name.startswith("driver.")
    ]
    window_ns = (result.window_ns[0], begin_ns + 131 * SECOND_NS)
    event = Event("checkpoint", begin_ns + CYCLE_S * SECOND_NS, None, EventDetail(cause="time"))
    followed = Followed(None, (event.start_ns,), (begin_ns, window_ns[1]), SPACING)
    long = replace(result, window_ns=window_ns, window_s=121.0, events=(event,), followed=followed)
    return replace(trial, result=long), rows


def test_anchors_correct_short_windows(tmp_path: Path) -> None:
    facts = facts_of(anchored(tmp_path / "run.sqlite"))
    told = compared(facts, "tuned")
    assert told.verdict == "better"
    assert "anchors" in told.method
    # Whole cycles: 0.9 * 0.6 + 0.1 of the first stage's, 0.9 * 0.8 + 0.1 of the other's.
    assert told.ratio == pytest.approx(33_500 / 27_000 * 0.82 / 0.64, rel=0.04)
    assert told.low is not None
    assert told.high is not None
    assert told.low < 33_500 / 27_000 * 0.82 / 0.64 < told.high
    cycles = {one.stage: one for one in facts.cycles}
    assert [one.round for one in cycles["tuned"].anchors] == [1, 2]
    assert cycles["tuned"].anchors[0].writes_leave == pytest.approx(0.8)
    assert cycles["initdb"].anchors[0].whole == pytest.approx(
        0.64 * cycles["initdb"].anchors[0].short, rel=0.02
    )
    stage = next(one for one in facts.stages if one.name == "initdb")
    assert stage.throughput is not None
    assert stage.throughput.median == pytest.approx(27_000 * 0.64, rel=0.05)
    assert stage.checkpoint_cycle is not None
    assert stage.checkpoint_cycle.verdict == "clear"


def test_latencies_are_those_of_anchors(tmp_path: Path) -> None:
    facts = facts_of(anchored(tmp_path / "run.sqlite"))
    with RunFile.read(tmp_path / "run.sqlite") as run:
        held = sum(
            kind.window.succeeded + kind.window.rolled_back
            for trial in run.trials()
            if trial.stage == "tuned" and trial.round <= 2 and trial.result
            for kind in trial.result.kinds
            if kind.kind == "new_order"
        )
    line = next(one for one in facts.stages if one.name == "tuned").percentiles("new_order")
    assert line is not None
    assert line.n == held


def test_one_anchor_is_too_few(tmp_path: Path) -> None:
    told = compared(facts_of(anchored(tmp_path / "run.sqlite", anchors=1)), "tuned")
    assert told.verdict == "not judged"
    assert told.reason.startswith("1 of 2 anchors")


def changed(path: Path, change: Change, stage: str = "tuned", rounds: int = 2) -> Comparison:
    """The comparison of a stage once its trials of the first rounds are changed."""
    with RunFile.append(path) as run:
        for trial in run.trials():
            if trial.stage == stage and trial.round <= rounds and trial.result:
                series = list(run.series(trial.number).values())
                run.put_trial(replace(trial, result=change(trial.result)), series)
    return compared(facts_of(path), stage)


def _more(event: Event) -> Change:
    return lambda result: replace(result, events=(*result.events, event))


def test_anchors_are_invalid_where_sessions_write(tmp_path: Path) -> None:
    written = {"io.client_writes": 10.0, "checkpoints.buffers": 90.0, "bgwriter.buffers": 0.0}
    told = changed(
        anchored(tmp_path / "run.sqlite"),
        lambda result: replace(result, deltas=result.deltas | written),
    )
    assert told.verdict == "not judged"
    assert "sessions wrote 10% of the pages" in told.reason
    assert 'protocol.checkpoints = "cycles"' in told.reason


@pytest.mark.parametrize("lacking", ["checkpoints.buffers", "bgwriter.buffers"])
def test_pages_that_nobody_counted_are_not_taken_for_none(tmp_path: Path, lacking: str) -> None:
    """As after a reset of the checkpointer's statistics: sessions did not write all of them."""

    def reset(result: TrialResult) -> TrialResult:
        written = {"io.client_writes": 10.0, "checkpoints.buffers": 900.0, "bgwriter.buffers": 0.0}
        known = {name: count for name, count in (result.deltas | written).items()
                 if name != lacking}  # fmt: skip
        return replace(result, deltas=known)

    assert "sessions wrote" not in changed(anchored(tmp_path / "run.sqlite"), reset).reason


@pytest.mark.parametrize(
    ("name", "told"),
    [("archive.behind_bytes", "archiving"), ("replication.behind_bytes", "a standby")],
)
def test_anchors_are_invalid_where_what_follows_the_wal_falls_behind(
    tmp_path: Path, name: str, told: str
) -> None:
    path = anchored(tmp_path / "run.sqlite")
    with RunFile.append(path) as run:
        trial = next(one for one in run.trials() if one.stage == "tuned")
        known = run.series(trial.number)
        at = np.array([0, SECOND_NS])
        more = [
            Series(name, "B", "gauge", at, np.array([0.0, 200e6])),
            Series("wal.bytes", "B", "counter", at, np.array([1e9, 2e9])),
        ]
        others = [one for one in known.values() if one.name not in (name, "wal.bytes")]
        run.put_trial(trial, [*others, *more])
    comparison = compared(facts_of(path), "tuned")
    assert comparison.verdict == "not judged"
    assert f"{told} fell behind by 191 MiB" in comparison.reason


def test_anchors_are_invalid_where_vacuum_begins_late(tmp_path: Path) -> None:
    path = anchored(tmp_path / "run.sqlite")
    with RunFile.read(path) as run:
        trial = next(one for one in run.trials() if one.stage == "tuned")
    assert trial.result is not None
    assert trial.result.followed is not None
    begin_ns = trial.result.followed.load_ns[0]
    late = Event(
        "autovacuum",
        begin_ns + 105 * SECOND_NS,
        begin_ns + 125 * SECOND_NS,
        EventDetail(table="order_line"),
    )
    told = changed(path, _more(late), rounds=1)
    assert told.verdict == "not judged"
    assert "autovacuum of order_line began only after the first cycle" in told.reason


def looks(result: TrialResult, changed: int) -> list[SnapshotRows]:
    """At a table, whose rows the load changes."""
    columns = ("bytes", "index_bytes", "dead_rows", "inserted", "updated", "hot_updated", "deleted",
               "seq_rows_read", "vacuums", "analyzes", "freeze_age")  # fmt: skip
    row: dict[str, Cell] = {"relation": "order_line", **dict.fromkeys(columns, 0)}
    told = tuple(SnapshotColumn(name, "1", "counter") for name in row)
    begin_ns, end_ns = result.window_ns
    return [
        SnapshotRows("tables", "begin", begin_ns, told, (row,)),
        SnapshotRows("tables", "end", end_ns, told, ({**row, "updated": changed},)),
    ]


def with_vacuum_before_windows(
    path: Path, updated: int = 9, wal_bytes: float = 2e8, **options: Any
) -> Path:
    """A run in whose stage `tuned` autovacuum does all its work before the windows."""
    write_miniature(path, rounds=3, invalid=(), **options)

    def before_the_window(result: TrialResult) -> TrialResult:
        begin_ns = result.window_ns[0]
        detail = EventDetail(table="order_line", wal_bytes=50_000_000, cpu_s=2.0)
        event = Event("autovacuum", begin_ns - 10 * SECOND_NS, begin_ns - SECOND_NS, detail)
        small = [
            Event("autovacuum", begin_ns - SECOND_NS, begin_ns - SECOND_NS + 10_000_000,
                  EventDetail(table=name, wal_bytes=1000, cpu_s=0.0))
            for name in ("pg_type", "pg_class")
        ]  # fmt: skip
        return replace(result, events=(*result.events, event, *small))

    with RunFile.append(path) as run:
        for trial in run.trials():
            if trial.stage == "tuned" and trial.result:
                series = list(run.series(trial.number).values())
                begin_ns, end_ns = series[0].unix_ns[0], trial.result.window_ns[1]
                first_ns = begin_ns + SECOND_NS // 2  # the driver counts by whole seconds
                times = np.arange(first_ns, end_ns + 2 * SECOND_NS, SECOND_NS)
                written = wal_bytes * (times - begin_ns) / (end_ns - begin_ns)
                wal = Series("wal.bytes", "B", "counter", times, written)
                run.put_trial(
                    replace(trial, result=before_the_window(trial.result)), [*series, wal],
                    snapshots=looks(trial.result, updated),
                )  # fmt: skip
    return path


def test_windows_of_a_load_that_only_reads_need_hold_nothing_of_a_vacuum(tmp_path: Path) -> None:
    mine = [replace(one, wal_bytes_per_tx=1.0) for one in CHARACTERS]
    path = tmp_path / "run.sqlite"
    facts = facts_of(with_vacuum_before_windows(path, updated=0, characters=mine))

    vacuum = next(one.vacuum for one in facts.cycles if one.stage == "tuned")
    assert vacuum is not None
    assert (vacuum.unlike, vacuum.missed_rounds) == (False, (1, 2, 3)), "it is told, and no doubt"
    assert [one for one in facts.answer.doubts if "autovacuum" in one.text] == []


def after(path: Path, changed: int, *, wal_per_tx: float, vacuum_bytes: int = 0) -> Facts:
    """Windows without a checkpoint, whose load changes so many rows and writes so much WAL."""
    mine = tuple(
        replace(one, wal_bytes_per_tx=wal_per_tx) for one in characters(checkpoint_at_s=())
    )
    write_miniature(path, rounds=5, invalid=(), characters=mine)
    detail = EventDetail(table="order_line", wal_bytes=vacuum_bytes, cpu_s=0.0)
    with RunFile.append(path) as run:
        for trial in run.trials():
            assert trial.result is not None
            begin_ns, end_ns = trial.result.window_ns
            vacuum = Event("autovacuum", begin_ns, end_ns, detail)
            silent = Event("autoanalyze", begin_ns, end_ns, EventDetail(table="t"))
            grown = trial.result.deltas | {"checkpoints.timed": 0.0, "checkpoints.requested": 0.0}
            if vacuum_bytes:
                grown["wal.bytes"] += vacuum_bytes
            result = replace(
                trial.result, events=(vacuum, silent) if vacuum_bytes else (), deltas=grown
            )
            run.put_trial(
                replace(trial, result=result), list(run.series(trial.number).values()),
                snapshots=looks(result, changed),
            )  # fmt: skip
    return facts_of(path)


@pytest.mark.parametrize(
    ("changed", "wal_per_tx", "vacuum_bytes", "only_reads"),
    [(0, 1.0, 0, True), (0, 1.0, 900_000_000, True), (9, 1.0, 0, False), (0, 20_000.0, 0, False)],
    ids=["reads", "reads, and a vacuum of what others left", "writes little", "writes elsewhere"],
)
def test_no_checkpoint_is_due_from_a_load_that_only_reads(
    tmp_path: Path, changed: int, wal_per_tx: float, vacuum_bytes: int, *, only_reads: bool
) -> None:
    facts = after(
        tmp_path / "run.sqlite", changed, wal_per_tx=wal_per_tx, vacuum_bytes=vacuum_bytes
    )

    briefly = [one for one in facts.answer.doubts if "checkpoint cycle" in one.text]
    assert {one.only_reads for one in facts.cycles} == {only_reads}
    assert (briefly == []) == only_reads
    verdicts = {one.checkpoint_cycle.verdict for one in facts.stages if one.checkpoint_cycle}
    assert verdicts == {"clear" if only_reads else "finding"}
    told = compared(facts, "tuned")
    assert (told.verdict == "not judged") != only_reads, "settings of checkpoints change nothing"
    assert not any(one.ident == "E4" and one.verdict == "finding" for one in facts.mistakes) or (
        not only_reads
    )


@pytest.mark.parametrize(
    ("name", "verdict"),
    [("autovacuum_naptime", "not judged"), ("vacuum_cost_limit", "not judged"),
     ("work_mem", "better")],
)  # fmt: skip
def test_stages_that_vacuum_otherwise_get_no_verdict_from_windows_without_it(
    tmp_path: Path, name: str, verdict: str
) -> None:
    first, second, *_ = CHARACTERS
    setting = Setting(name, "77", ORIGIN)
    tuned = replace(second, stage=_with(second.stage, (setting,)))
    path = with_vacuum_before_windows(tmp_path / "run.sqlite", characters=(first, tuned))

    found = compared(facts_of(path), "tuned")

    assert found.verdict == verdict
    assert ("another share of autovacuum's work" in found.reason) == (verdict == "not judged")


def test_vacuum_is_no_share_of_next_to_no_wal(tmp_path: Path) -> None:
    """Who only reads has windows whose WAL is vacuum's alone: 97% and 0% were a red light."""
    times = np.array([0, 100 * SECOND_NS])
    write_miniature(tmp_path / "run.sqlite")
    with RunFile.read(tmp_path / "run.sqlite") as run:
        some = next(one.result for one in run.trials() if one.result)

    def share(wal_bytes: int, all_bytes: float) -> float | None:
        grown = Series("wal.bytes", "B", "counter", times, np.array([0.0, all_bytes]))
        detail = EventDetail(table="t", wal_bytes=wal_bytes, cpu_s=0.0)
        event = Event("autovacuum", 10 * SECOND_NS, 20 * SECOND_NS, detail)
        result = replace(some, events=(event,), window_ns=(0, 50 * SECOND_NS))
        found = vacuum_facts([(1, result, {"wal.bytes": grown}, (0, 100 * SECOND_NS))])
        assert found is not None
        return found.wal_share

    assert share(900_000_000, 1e9) == pytest.approx(0.9)
    assert share(90_000, 1e5) is None, "1,000 bytes a second are next to none"
    assert share(2_000_000_000, 1e9) is None, "more than all is no share"


def test_vacuum_that_windows_missed_is_named(tmp_path: Path) -> None:
    path = with_vacuum_before_windows(tmp_path / "run.sqlite")
    facts = facts_of(path)
    assert facts.answer.confidence == "low"
    (doubt,) = (one for one in facts.answer.doubts if "autovacuum" in one.text)
    assert (doubt.grave, doubt.stages) == (True, ("tuned",))
    vacuum = next(one.vacuum for one in facts.cycles if one.stage == "tuned")
    assert vacuum is not None
    assert vacuum.unlike
    assert vacuum.missed_rounds == (1, 2, 3)
    assert vacuum.wal_share == pytest.approx(0.25, abs=0.01)
    assert vacuum.window_wal_share == 0
    assert (vacuum.window_cost.wal_bytes, vacuum.window_cost.cpu_us) == (0, 0)
    with RunFile.read(path) as run:
        loads = [per_second(run.series(t.number))[1] for t in run.trials() if t.stage == "tuned"]
    transactions = sum(float(load.sum()) for load in loads)
    assert vacuum.cost.wal_bytes == pytest.approx(1.5e8 / transactions, rel=0.02)
    assert vacuum.cost.cpu_us == pytest.approx(6e6 / transactions, rel=0.02)
    assert vacuum.tables[0].episodes == 3
    told = " ".join(markdown.render(facts).split())
    assert "wrote 25% and 0% of the WAL with 6.0 s and 0.0 s of CPU" in told
    assert "the windows of rounds 1, 2 and 3 hold nothing of it" in told
    assert "the window of round 2 holds nothing of it" in unlike_text(
        replace(vacuum, missed_rounds=(2,))
    )
    assert (
        "or a load writes less than 100 kB/s, from 25 points of the time on. Each is a threshold"
        " that is chosen, not measured."
    ) in told
    assert "| tuned: 2 others | 6 |" in told
    assert "pg_type" not in told
