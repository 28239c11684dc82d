"""Steps, databases, outages and deviations: what the run file holds of them, and how it is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pgdyno.analysis.deviations import deviations
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.shape import outages, part_facts, recovery_facts, step_facts
from pgdyno.analysis.trials import trial_facts
from pgdyno.model.description import Description, Deviation, StageDescription
from pgdyno.model.manifest import HostManifest, Installation
from pgdyno.model.run import (
    Counts,
    Gap,
    KindResult,
    PartResult,
    Recovery,
    RunInfo,
    Series,
    StepKind,
    StepResult,
    TrialRecord,
    TrialState,
)
from pgdyno.report.charts.timeline import CHART
from pgdyno.report.document import Table
from pgdyno.report.sections import shape as section
from pgdyno.store.histogram import merged_quantiles
from tests.data.hdr import encode
from tests.data.miniature import CHARACTERS, WINDOW_S, a_result

SECOND_NS = 1_000_000_000
MS = 1_000_000
FAST, SLOW = encode(np.full(100, 2 * MS)), encode(np.full(100, 8 * MS))


def step(factor: float, ended: int, response: str, skipped: int = 0) -> StepResult:
    counts = Counts(due=ended + skipped, succeeded=ended, skipped=skipped)
    kind = StepKind("new_order", counts, response, {})
    return StepResult((0, 10 * SECOND_NS), 10.0, (factor, factor), ended, (kind,))


def part(name: str, orders: int, response: str) -> PartResult:
    kind = KindResult("new_order", Counts(succeeded=orders), Counts(), response, "", {}, {})
    other = replace(kind, kind="payment")
    return PartResult(name, (kind, other))


def trial(number: int, **changed: object) -> TrialRecord:
    result = replace(a_result(), **changed)  # type: ignore[arg-type]
    return TrialRecord(
        number, number, "crowd", f"{number:016x}", TrialState.FINISHED, result=result
    )


def test_steps_of_all_rounds_stand_together() -> None:
    trials = [
        trial(1, steps=(step(0.5, 900, FAST), step(2.0, 3_000, FAST, skipped=7))),
        trial(2, steps=(step(0.5, 1_100, FAST), step(2.0, 3_400, SLOW))),
    ]

    first, second = step_facts(["idle", "crowd"], trials, merged_quantiles)

    assert (first.stage, first.number, first.factor) == ("crowd", 1, (0.5, 0.5))
    assert first.ended_per_s.rounds == (90.0, 110.0)
    assert first.skipped == 0
    assert second.ended_per_s.median == pytest.approx(320.0)
    assert second.skipped == 7
    assert second.percentiles_ns is not None
    p50, *_rest, highest = second.percentiles_ns
    assert p50 == pytest.approx(2 * MS, rel=0.01)
    assert highest == pytest.approx(8 * MS, rel=0.01)


def test_databases_are_told_apart_in_the_metric_of_the_trial() -> None:
    parts = (part("bench", 600, FAST), part("bench_2", 300, SLOW))
    trials = [trial(1, parts=parts), trial(2, parts=parts)]

    first, second = part_facts(["crowd"], trials, merged_quantiles)

    assert first.throughput.rounds == (600 * 60 / WINDOW_S,) * 2
    assert second.name == "bench_2"
    assert second.throughput.median == 300 * 60 / WINDOW_S, "payments are no orders"
    select = [replace(one, result=replace(one.result, nopm=None)) for one in trials if one.result]
    assert part_facts(["crowd"], select, merged_quantiles)[0].throughput.median == 1_200 / WINDOW_S


def test_the_front_are_stages_that_no_other_surpasses_in_speed_and_recovery() -> None:
    points = {"fast": (900, 12.0), "both": (800, 4.0), "slower": (700, 4.0), "soon": (300, 1.0),
              "nowhere": (299, 1.5), "as-both": (800, 4.0)}  # fmt: skip
    trials = [
        replace(
            trial(1, parts=(), nopm=None, recovery=Recovery(ready_s, 0.5, 1_000),
                  kinds=part("bench", orders, FAST).kinds[:1]),
            stage=name,
        )
        for name, (orders, ready_s) in points.items()
    ]  # fmt: skip
    stages = [replace(CHARACTERS[0].stage, name=name, guard=name == "both") for name in points]

    found = {one.stage: one for one in recovery_facts(stages, trials)}

    assert {name for name, one in found.items() if one.on_front} == {
        "fast", "both", "as-both", "soon",
    }  # fmt: skip
    assert [name for name, one in found.items() if one.guarded] == ["both"]
    (alone,) = recovery_facts(stages[:1], trials)
    assert alone.on_front is None


def test_an_outage_is_told_and_drawn(facts: Facts) -> None:
    begin_ns = a_result().window_ns[0]
    gaps = (
        Gap(begin_ns + 4 * SECOND_NS, begin_ns + 6 * SECOND_NS, 8),
        Gap(begin_ns + 29 * SECOND_NS, None, 2),
    )
    record = trial(3, gaps=gaps)

    first, last = outages([record])
    assert (first.trial, first.start_s, first.seconds, first.connections) == (3, 4.0, 2.0, 8)
    assert last.seconds is None

    told = replace(facts, outages=(first, last))
    found = section.section(told)
    assert found is not None
    assert found.title == "Outages"
    (table,) = found.blocks
    assert isinstance(table, Table)
    assert [row[2].text for row in table.rows] == ["2 s", "until the end"]

    line = facts.trials[0].timeline
    assert line is not None
    cut = replace(line, outages=((4.0, 6.0), (29.0, 30.0)))
    panels = CHART.panels(replace(facts, trials=(replace(facts.trials[0], timeline=cut),)))
    assert "2 times without connections" in panels[0].alt
    assert sum(shape.x0 == 4.0 and shape.x1 == 6.0 for shape in panels[0].figure.layout.shapes) == 1


def test_an_outage_is_cut_at_the_ends_of_the_line() -> None:
    record = trial(1)
    assert record.result is not None
    begin_ns, end_ns = record.result.window_ns
    gaps = (
        Gap(begin_ns - 60 * SECOND_NS, begin_ns + SECOND_NS, 1),
        Gap(end_ns - SECOND_NS, None, 1),
        Gap(end_ns + SECOND_NS, None, 1),
    )
    at = np.arange(-2, WINDOW_S) * SECOND_NS + begin_ns
    series = {"driver.committed.new_order": Series("x", "1/s", "rate", at, np.ones(at.size))}
    told = trial_facts(
        replace(record, result=replace(record.result, gaps=gaps)), series, server_on_host=True
    )
    assert told.timeline is not None
    assert told.timeline.outages == ((-2.0, 1.0), (WINDOW_S - 1.0, float(WINDOW_S)))


def test_nothing_divided_and_nothing_lost_has_no_section(facts: Facts) -> None:
    assert section.section(facts) is None


def test_all_three_are_named_in_the_title(facts: Facts) -> None:
    trials = [trial(1, steps=(step(1.0, 10, FAST),), parts=(part("bench", 60, FAST),))]
    told = replace(
        facts,
        steps=step_facts(["crowd"], trials, merged_quantiles),
        parts=part_facts(["crowd"], trials, merged_quantiles),
    )
    found = section.section(told)
    assert found is not None
    assert found.title == "Steps and databases"


def test_deviations_say_which_stages_have_them() -> None:
    keying = Deviation("no keying times", "small", "5.2.5")
    faults = Deviation("deliveries without a limit", "as BenchmarkSQL", "2.7")
    info = RunInfo(
        "id", 0, "0.1.0", "", None, HostManifest(), Installation(),
        Description("tpcc", 2, deviations=(keying,)),
        stages={
            "plain": StageDescription("statement"),
            "old": StageDescription("statement", (faults, keying)),
        },
    )  # fmt: skip

    told = deviations(info, ["plain", "old"])

    assert [(one.what, one.stages) for one in told] == [
        ("no keying times", ()),
        ("deliveries without a limit", ("old",)),
    ]
