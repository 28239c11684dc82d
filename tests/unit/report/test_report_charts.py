"""Charts draw what the facts hold; what they say to a screen reader has the numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import pgdyno
import pgdyno.report.charts as package
from pgdyno.analysis.facts import Facts, RecoveryFacts, Spread
from pgdyno.analysis.signal_facts import ResponseMap, Signal, SignalLine, SignalUnit
from pgdyno.analysis.timeline_facts import Checkpoint, Mark
from pgdyno.model.units import count_text
from pgdyno.report.charts import charts, look
from pgdyno.report.html import render
from tests.data.imported import FOLDER
from tests.data.miniature import write_miniature
from tests.data.over_time import process_line
from tests.unit.conftest import analysed

SPREAD = Spread(2.0, (1.0, 2.0, 3.0))


def test_every_file_is_a_chart() -> None:
    files = {path.stem for path in Path(package.__path__[0]).glob("*.py")}
    assert set(charts()) == files - {"__init__", "chart", "look", "stacked", "time_axis"}


def test_the_timeline_has_a_panel_for_each_measured_trial(facts: Facts) -> None:
    chart = charts()["timeline"]
    panels = chart.panels(facts)
    assert len(panels) == 9
    assert [panel.title for panel in panels if "invalid" in panel.title] == [
        "async-commit · round 2 · invalid"
    ]
    assert chart.across(facts) == 3


def test_of_recovery_only_the_best_stages_have_names(facts: Facts) -> None:
    """With all of them, one name stood upon the other."""
    told = tuple(
        RecoveryFacts(stage.name, SPREAD, SPREAD, SPREAD, guarded=False, on_front=number == 0)
        for number, stage in enumerate(facts.stages)
    )
    (panel,) = charts()["recovery"].panels(replace(facts, recovery=told))
    modes = [trace.mode for trace in panel.figure.data[1:]]
    assert modes == ["markers+text", *["markers"] * (len(told) - 1)]


def test_active_sessions_have_the_axis_of_throughput(facts: Facts) -> None:
    """Of finished trials only: the numbers of the others may not be used."""
    lines = charts()["timeline"].panels(facts)
    stacks = charts()["active_sessions"].panels(facts)
    assert [one.title for one in stacks] == [
        one.title for one in lines if "invalid" not in one.title
    ]
    for stack in stacks:
        assert stack.figure.layout.xaxis.range == lines[0].figure.layout.xaxis.range
        assert {trace.stackgroup for trace in stack.figure.data} == {"stack 0"}
        assert "WAL 2." in stack.alt


def test_nothing_is_drawn_between_points_between_which_nobody_looked(facts: Facts) -> None:
    first = facts.sessions[0]
    line = replace(first.lines[0], second=(0.5, 1.5, 20.5, 21.5), groups={"wal": (1.0,) * 4})
    told = replace(facts, sessions=(replace(first, lines=(line,)),))
    (stack,) = charts()["active_sessions"].panels(told)
    seconds = [trace.x for trace in stack.figure.data]
    assert seconds == [(0.0, 0.5, 1.5, 2.0), (20.0, 20.5, 21.5, 22.0)], "with the width of a point"
    assert len({trace.stackgroup for trace in stack.figure.data}) == 2

    drawn = SignalLine(line.trial, line.stage, line.second, (1.0, 2.0, 3.0, 4.0))
    told = replace(facts, signals=(Signal("WAL written", "B/s", (drawn,)),))
    (panel,) = charts()["signals"].panels(told)
    assert panel.figure.data[0].y == (1.0, 2.0, None, 3.0, 4.0)


def test_signals_have_a_panel_for_each_stage_and_one_scale_for_each_row(facts: Facts) -> None:
    lines = tuple(
        SignalLine(trial.number, trial.stage, (-1.0, 1.0, 2.0), (0.0, 5.0 + trial.number, 2.0))
        for trial in facts.trials[:3]
    )
    told = replace(facts, signals=(Signal("WAL written", "B/s", lines),))
    chart = charts()["signals"]
    panels = chart.panels(told)
    assert [one.title.split(" · ")[0] for one in panels] == ["WAL written"] * 3
    assert {one.figure.layout.yaxis.range for one in panels} == {(0.0, 8 * 1.06)}
    throughput = charts()["timeline"].panels(told)[0]
    assert panels[0].figure.layout.xaxis.range == throughput.figure.layout.xaxis.range
    assert chart.across(told) == 3


def test_an_axis_of_time_has_a_unit_in_which_it_can_be_read(facts: Facts) -> None:
    first = facts.trials[0]
    for highest, unit, shown in ((0.00004, "µs", 40.0), (0.002, "ms", 2.0), (3.0, "s", 3.0)):
        line = SignalLine(first.number, first.stage, (-1.0, 1.0, 2.0), (0.0, highest, 0.0))
        told = replace(facts, signals=(Signal("vda: time of a flush", "s", (line,)),))
        (panel,) = charts()["signals"].panels(told)
        assert panel.figure.layout.yaxis.title.text == unit
        assert max(panel.figure.data[0].y) == pytest.approx(shown)
        assert panel.alt.endswith(f"0 and {shown:g} {unit}.")


@pytest.mark.parametrize(
    ("unit", "highest", "ticks"),
    [
        ("1", 0.2, "~g"),
        ("1/s", 0.5, "~g"),
        ("1", 3.0, "~g"),
        ("1", 3000.0, "~s"),
        ("B/s", 2e7, "~s"),
        ("share", 0.3, ".0%"),
    ],
)
def test_no_axis_writes_a_tenth_as_a_hundred_m(
    facts: Facts, unit: SignalUnit, highest: float, ticks: str
) -> None:
    first = facts.trials[0]
    line = SignalLine(first.number, first.stage, (-1.0, 1.0, 2.0), (0.0, highest, highest / 2))
    told = replace(facts, signals=(Signal("vda: requests under way", unit, (line,)),))
    (panel,) = charts()["signals"].panels(told)
    assert panel.figure.layout.yaxis.tickformat == ticks


def test_a_checkpoint_is_darker_where_it_flushed_and_that_is_explained(facts: Facts) -> None:
    first = facts.trials[0]
    assert first.timeline is not None
    chart = charts()["timeline"]

    def drawn(checkpoint: Checkpoint) -> tuple[list[tuple[float, float]], set[str]]:
        line = replace(first.timeline, checkpoints=(checkpoint,))
        shown = replace(facts, trials=(replace(first, timeline=line),))
        bands = chart.panels(shown)[0].figure.layout.shapes
        spans = [(one.x0, one.x1) for one in bands if one.fillcolor == look.CHECKPOINT]
        return spans, {key.label for key in chart.keys(shown)}

    spans, keys = drawn(Checkpoint(2.0, 9.0, "time", 6.0, 8.5))
    assert spans == [(2.0, 9.0), (6.0, 8.5)]
    assert {"checkpoint", "its flushes"} <= keys
    spans, keys = drawn(Checkpoint(2.0, 9.0, "time"))
    assert spans == [(2.0, 9.0)]
    assert "its flushes" not in keys


def test_what_the_log_tells_stands_above_the_line_where_it_happened(facts: Facts) -> None:
    waited = Mark("lock_wait", 3.0, 5.5, "ShareLock on <b>712</b>")
    failed = Mark("error", 6.0, 6.001, "ERROR: no")
    first = facts.trials[0]
    assert first.timeline is not None
    marked = replace(first, timeline=replace(first.timeline, marks=(waited, failed)))
    told = replace(facts, trials=(marked, *facts.trials[1:]))

    chart = charts()["timeline"]
    panel = chart.panels(told)[0]
    line, waiting, lock, _, error = panel.figure.data
    assert (waiting.mode, waiting.x, lock.mode) == ("lines", (3.0, 5.5, None), "markers")
    assert (lock.x, error.x) == ((5.5,), (6.001,))
    assert max(line.y) < panel.figure.layout.yaxis.range[1]
    assert (lock.yaxis, lock.y[0]) == ("y2", panel.figure.layout.yaxis2.range[1])
    assert "<b>" not in lock.text[0]
    assert "1 lock wait and 1 error" in panel.alt
    assert {"wait for a lock", "error"} <= {key.label for key in chart.keys(told)}


OVER_TIME = ("timeline", "active_sessions", "signals", "process_cpu", "heat_over_time")


def _all_over_time(facts: Facts) -> Facts:
    """With a signal, who used the CPUs and an error in every trial."""
    failed = Mark("error", 6.0, 6.001, "ERROR: no")
    trials = tuple(
        replace(one, timeline=one.timeline and replace(one.timeline, marks=(failed,)))
        for one in facts.trials
    )
    first = [next(one for one in trials if one.stage == stage.name) for stage in facts.stages]
    lines = tuple(SignalLine(one.number, one.stage, (1.0, 2.0), (0.0, 5.0)) for one in first)
    return replace(
        facts, trials=trials, signals=(Signal("WAL written", "B/s", lines),),
        process_lines=tuple(process_line(one) for one in first),
    )  # fmt: skip


@pytest.mark.parametrize("name", OVER_TIME)
def test_what_happened_stands_above_every_chart_over_time(facts: Facts, name: str) -> None:
    told, chart = _all_over_time(facts), charts()[name]
    for panel in chart.panels(told):
        lasted, ended = [trace for trace in panel.figure.data if trace.yaxis == "y2"]
        assert (lasted.x, ended.x) == ((6.0, 6.001, None), (6.001,))
    assert {"error", "checkpoint"} <= {key.label for key in chart.keys(told)}
    assert all("yaxis2" not in panel.figure.layout for panel in chart.panels(facts))


@pytest.mark.parametrize("name", OVER_TIME)
def test_a_window_that_ends_before_the_longest_is_seen_to_end(facts: Facts, name: str) -> None:
    told, chart = _all_over_time(facts), charts()[name]

    def ends(shown: Facts) -> list[float]:
        shapes = chart.panels(shown)[0].figure.layout.shapes
        return [one.x0 for one in shapes if one.type == "line"]

    first = told.trials[0]
    assert first.timeline is not None
    early = replace(first, timeline=replace(first.timeline, window_s=20.0))
    shorter = replace(told, trials=(early, *told.trials[1:]))
    assert ends(told) == []
    assert ends(shorter) == [20.0]
    labels = [{key.label for key in chart.keys(one)} for one in (told, shorter)]
    assert ["end of a shorter window" in one for one in labels] == [False, True]


def test_roles_of_processes_are_stacked_and_the_small_ones_are_one(facts: Facts) -> None:
    told, chart = _all_over_time(facts), charts()["process_cpu"]
    panels = chart.panels(told)
    assert len(panels) == len(facts.stages)
    stacked = [one for one in panels[0].figure.data if one.stackgroup]
    line = told.process_lines[0]
    assert sum(one.y[4] for one in stacked) == pytest.approx(
        sum(values[3] for values in line.roles.values())
    )
    labels = [key.label for key in chart.keys(told)]
    assert labels[:4] == ["backends", "checkpointer", "WAL writer", "other processes"]
    assert "backends 1.4" in panels[0].alt
    assert chart.panels(facts) == ()


def test_a_page_has_what_happened_in_a_trial_once(facts: Facts) -> None:
    told = _all_over_time(facts)
    panels = sum(len(charts()[name].panels(told)) for name in OVER_TIME)
    page = render(told)
    assert page.count("ERROR: no") <= 3, "of each trial the same, in each of its two points"
    assert page.count('"above":') == panels + 1


def test_bars_begin_at_zero_and_end_at_the_median(facts: Facts) -> None:
    (panel,) = charts()["waterfall"].panels(facts)
    assert panel.figure.layout.xaxis.range[0] == 0
    ends = [
        bar.base[0] + bar.x[0] for bar in panel.figure.select_traces({"type": "bar"}) if bar.base
    ]
    assert ends == pytest.approx([stage.nopm.median for stage in facts.stages if stage.nopm])


def test_whiskers_are_the_interval_of_the_ratio(facts: Facts) -> None:
    (panel,) = charts()["waterfall"].panels(facts)
    whisker = panel.figure.data[-2]
    assert list(whisker.y) == ["tuned", "async-commit"], "the first stage has no interval"
    tuned, first = facts.stages[1].to_first, facts.first.nopm
    assert tuned is not None
    assert tuned.low is not None
    assert tuned.high is not None
    assert first is not None
    assert whisker.x[0] + whisker.error_x.array[0] == pytest.approx(tuned.high * first.median)
    assert whisker.x[0] - whisker.error_x.arrayminus[0] == pytest.approx(tuned.low * first.median)
    assert whisker.x[0] == pytest.approx((tuned.ratio or 0) * first.median), "not its own median"


def test_a_whisker_stays_in_its_interval_where_the_median_does_not(facts: Facts) -> None:
    initdb, tuned, *others = facts.stages
    assert tuned.to_first is not None
    assert initdb.throughput is not None
    apart = replace(tuned.to_first, low=1.9, ratio=2.0, high=2.1)
    stages = (initdb, replace(tuned, to_first=apart), *others)
    (panel,) = charts()["waterfall"].panels(replace(facts, stages=stages))
    whisker = panel.figure.data[-2]
    ends = (-whisker.error_x.arrayminus[0], 0.0, whisker.error_x.array[0])
    drawn = [(whisker.x[0] + end) / initdb.throughput.median for end in ends]
    assert drawn == pytest.approx([1.9, 2.0, 2.1])
    far = replace(apart, ratio=9.0, high=20.0)  # rounds apart: no bar is nearly as long
    stages = (initdb, replace(tuned, to_first=far), *others)
    (panel,) = charts()["waterfall"].panels(replace(facts, stages=stages))
    assert panel.figure.data[-2].x[0] < panel.figure.layout.xaxis.range[1]


def test_an_interval_that_ends_beyond_the_axis_says_so(facts: Facts) -> None:
    first, tuned, *others = facts.stages
    assert tuned.to_first is not None
    wide = replace(tuned, to_first=replace(tuned.to_first, high=1e6))
    for stages, arrows in ((facts.stages, []), ((first, wide, *others), ["tuned"])):
        (panel,) = charts()["waterfall"].panels(replace(facts, stages=stages))
        arrow = panel.figure.data[-1]
        assert list(arrow.y) == arrows
        assert all(0 < x < panel.figure.layout.xaxis.range[1] for x in arrow.x)


def test_the_heat_map_names_every_stage_on_a_telephone(facts: Facts) -> None:
    names = {stage.name: f"{stage.name}-with-more-of-a-name" for stage in facts.stages}
    renamed = replace(
        facts,
        stages=tuple(replace(one, name=names[one.name]) for one in facts.stages),
        trials=tuple(replace(one, stage=names[one.stage]) for one in facts.trials),
    )
    (panel,) = charts()["heat"].panels(renamed)
    axis = panel.figure.layout.xaxis

    assert len(axis.ticktext) == len(names)
    assert axis.ticklabeloverflow == "allow", "plotly leaves out what ends beyond the chart"
    lines = [label.split("<br>") for label in axis.ticktext]
    assert ["".join(one) for one in lines] == list(names.values()), "no letter is lost"
    assert sum(max(map(len, one)) for one in lines) <= 48, "side by side on 300 pixels"


def test_the_heat_map_has_a_column_for_each_finished_trial(facts: Facts) -> None:
    (panel,) = charts()["heat"].panels(facts)
    heat = panel.figure.data[0]
    finished = [one for one in facts.trials if one.state == "finished"]
    assert len(heat.x) == len(finished)
    assert len(heat.y) == len(heat.z) + 1, "cells lie between edges"
    for column in range(len(finished)):
        assert sum(row[column] or 0 for row in heat.z) == pytest.approx(100, abs=0.1)
    assert all(stage.name in panel.alt for stage in facts.stages)


def test_maps_over_time_have_one_scale_and_the_axis_of_throughput(facts: Facts) -> None:
    chart = charts()["heat_over_time"]
    panels = chart.panels(facts)
    line = charts()["timeline"].panels(facts)[0].figure
    assert len(panels) == len(facts.stages)
    ends = set()
    for panel, found in zip(panels, facts.response_maps, strict=True):
        (heat,) = panel.figure.data
        assert panel.figure.layout.meta == {"axis": "time"}, "under the one cursor"
        assert panel.figure.layout.xaxis.range == line.layout.xaxis.range
        assert any(one.fillcolor == look.CHECKPOINT for one in panel.figure.layout.shapes)
        assert (len(heat.x), len(heat.y)) == (len(heat.z[0]) + 1, len(heat.z) + 1), "between edges"
        assert sum(map(sum, heat.customdata)) == sum(map(sum, found.counts)), "of seconds, all"
        assert all(
            (many is None) == (rate == 0)
            for rates, manies in zip(heat.customdata, heat.z, strict=True)
            for rate, many in zip(rates, manies, strict=True)
        )
        ends.add((heat.zmin, heat.zmax, panel.figure.layout.yaxis.range))
    assert len(ends) == 1
    shades = [one.label for one in chart.keys(facts)][:2]
    highest = max(max(row) for one in facts.response_maps for row in one.counts)
    assert shades == ["requests: 1 a second", f"{count_text(highest)} a second"]


def test_a_map_says_where_its_median_lies_and_when_nothing_ended(facts: Facts) -> None:
    trial = next(one for one in facts.trials if one.number == facts.response_maps[0].trial)
    edges_ns = (1_048_576, 1_572_864, 2_097_152, 3_145_728)
    made = ResponseMap(trial.number, trial.round, trial.stage, (-1.0, 0.0, 1.0, 2.0, 3.0, 4.0),
                       edges_ns, ((5, 0, 0, 0, 4), (3, 0, 9, 0, 0), (0, 0, 0, 0, 2)))  # fmt: skip
    (panel,) = charts()["heat_over_time"].panels(replace(facts, response_maps=(made,)))
    assert panel.alt == (
        f"Map of response times in trial {trial.number}, initdb · round {trial.round}: the median"
        " of all its requests lies between 1.57 ms and 2.10 ms, the slowest took between 2.10 ms"
        " and 3.15 ms, the first of them at 3 s; none ended from 0 to 1 s."
    )
    none = replace(facts, response_maps=())
    assert charts()["heat_over_time"].panels(none) == charts()["heat_over_time"].keys(none) == ()


def test_a_chart_stands_where_it_says(facts: Facts) -> None:
    page = render(facts)
    place = page.index('id="latency"')
    assert place < page.index('id="chart-heat-1"') < page.index("<section", place)


def test_descriptions_have_the_numbers(facts: Facts) -> None:
    for chart in charts().values():
        assert all(panel.alt for panel in chart.panels(facts))
    (rounds,) = charts()["rounds"].panels(facts)
    for stage in facts.stages:
        assert stage.nopm is not None
        for value in stage.nopm.rounds:
            assert count_text(value) in rounds.alt


def test_colours_are_names_of_the_style_sheet(facts: Facts) -> None:
    style = (Path(package.__path__[0]).parent / "page" / "report.css").read_text()
    for chart in charts().values():
        colours = {key.colour for key in chart.keys(facts)}
        assert all(f"  {colour[4:-1]}: " in style for colour in colours)


def test_without_trials_there_are_no_panels(tmp_path: Path) -> None:
    nothing = analysed(tmp_path / "run.sqlite", planned=tuple(range(1, 10)), invalid=())
    assert all(chart.panels(nothing) == () for chart in charts().values())


def test_the_first_that_was_measured_of_a_load_begins_at_zero(facts: Facts) -> None:
    initdb, tuned, other = facts.stages
    assert other.to_first is not None
    missed = replace(tuned, to_first=None, throughput=None)
    later = replace(other, to_first=replace(other.to_first, base=missed.name))
    (panel,) = charts()["waterfall"].panels(replace(facts, stages=(initdb, missed, later)))

    bars = list(panel.figure.select_traces({"type": "bar"}))
    assert [bar.y[0] for bar in bars[1:]] == [initdb.name, later.name]
    assert bars[0].x[1] == 0
    assert bars[2].base[0] == 0


def beside(tmp_path: Path, *names: str) -> Facts:
    """A run with results of other tools."""
    run = write_miniature(tmp_path / "run.sqlite")
    pgdyno.import_results([FOLDER / name for name in names], into=run)
    return pgdyno.Run(run).facts


def test_figures_of_other_tools_are_hollow_named_by_tool_and_version_and_have_no_interval(
    tmp_path: Path,
) -> None:
    facts = beside(
        tmp_path, "field-six-stages.txt", "benchmarksql-5.0-console-oracle.txt",
        "hammerdb-4.9-cli.txt",
    )  # fmt: skip
    orders, every = charts()["imported"].panels(facts)
    rounds, medians, *theirs = orders.figure.data
    labels = [label.replace("<br>", " ") for label in orders.figure.layout.yaxis.ticktext]

    assert list(medians.x) == [one.throughput.median for one in facts.stages if one.throughput]
    assert len(rounds.x) == sum(
        len(one.throughput.rounds) for one in facts.stages if one.throughput
    )
    assert labels[:3] == [stage.name for stage in facts.stages]
    assert "○ BenchmarkSQL 5.0 on oracle" in labels
    assert "○ HammerDB 4.9 on PostgreSQL" in labels
    drawn = {value for one in theirs for value in one.x}
    assert {118204.31, 69200.0} <= drawn
    assert all(symbol.endswith("-open") for one in theirs for symbol in one.marker.symbol)
    assert all(one.error_x.array is None for one in orders.figure.data)
    # HammerDB tells orders that were committed, and no transactions of all kinds.
    (hammer,) = [one for one in theirs if "HammerDB" in one.y[0]]
    assert hammer.marker.symbol == ("circle-open",)
    assert not [one for one in every.figure.data if "HammerDB" in one.y[0]]
    assert "BenchmarkSQL 5.0 on oracle 118,204" in orders.alt
    assert {key.mark for key in charts()["imported"].keys(facts)} == {
        "dot", "ring", "frame", "rhomb",
    }  # fmt: skip
    assert 'id="chart-imported-1"' in render(facts)


def test_transactions_of_another_workload_stand_beside_no_orders(tmp_path: Path) -> None:
    """Those of all kinds are of TPC-C's mix: what another workload counts is none of them."""
    facts = beside(tmp_path, "pgbench-18-tpcb.txt", "benchmarksql-5.0-console-oracle.txt")
    (panel,) = charts()["imported"].panels(replace(facts, headline="tps"))

    assert panel.title == "Transactions a second"
    assert [line for one in panel.figure.data for line in one.y if "○" in line] == [
        "○ pgbench 18.6"
    ]


def test_what_means_something_else_stands_beside_none_of_ours(tmp_path: Path) -> None:
    facts = beside(tmp_path, "pgbench-18-tpcb.txt")

    assert charts()["imported"].panels(facts) == ()
    page = render(facts)
    assert "None of their figures means what one of ours means" in page
    assert "chart-imported" not in page


def test_a_chart_has_room_for_every_tool_and_says_how_many_it_leaves_out(tmp_path: Path) -> None:
    facts = beside(tmp_path, "hammerdb-4.9-cli.txt")
    many = tuple(replace(facts.imported[0], version=f"4.{n}") for n in range(30))
    few, full = (replace(facts, imported=some) for some in (many[:2], many))
    chart = charts()["imported"]

    assert chart.height(full) - chart.height(few) == 22 * chart.per_row_px
    (panel,) = chart.panels(full)
    assert panel.title == "New-Orders a minute, the first 24 of 30 tools"
    assert len(panel.figure.layout.yaxis.ticktext) == len(facts.stages) + 24


def test_a_stage_that_begins_afresh_is_no_step_from_its_neighbour(facts: Facts) -> None:
    first, second, third = facts.stages
    for afresh, built_on in ((False, second), (True, first)):
        told = replace(facts, stages=(first, second, replace(third, afresh=afresh)))
        (panel,) = charts()["waterfall"].panels(told)
        step = panel.figure.data[3]
        assert third.throughput is not None
        assert built_on.throughput is not None
        ends = third.throughput.median, built_on.throughput.median
        assert (step.base[0], step.base[0] + step.x[0]) == pytest.approx((min(ends), max(ends)))
