"""All that was sampled is shown: each series once, the median of trials, and nothing made up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.sampled import OTHERS, group_of, sampled
from pgdyno.analysis.telemetry_facts import (
    Sampled,
    SampledGroup,
    SampledLevel,
    SampledSeries,
    SampledTable,
    TelemetryFacts,
)
from pgdyno.model.run import Series, SnapshotColumn, SnapshotRows, TrialRecord, TrialState
from pgdyno.report.document import Table
from pgdyno.report.sections.sampled import section
from tests.data.met import USUAL, sessions
from tests.data.miniature import a_result

NS = 1_000_000_000
RESULT = a_result()
BEGIN, END = RESULT.window_ns
SECONDS = RESULT.window_s


def trial(number: int, **per_s: float) -> TrialRecord:
    deltas = {name.replace("__", "."): value * SECONDS for name, value in per_s.items()}
    result = replace(RESULT, deltas=deltas)
    return TrialRecord(number, number, "one", "x", TrialState.FINISHED, result=result)


def counter(name: str, unit: str = "1", per_s: float = 1.0) -> Series:
    times = np.arange(BEGIN - NS, END + 2 * NS, NS)
    return Series(name, unit, "counter", times, per_s * (times - times[0]) / NS)


def gauge(name: str, *values: float) -> Series:
    times = np.linspace(BEGIN, END, len(values)).astype(np.int64)
    return Series(name, "B", "gauge", times, np.array(values))


def named(*series: Series) -> dict[str, Series]:
    return {one.name: one for one in series}


def of(found: Sampled) -> dict[str, SampledSeries]:
    series = [one for group in found.groups for one in group.series]
    assert len({one.name for one in series}) == len(series), "each is told once"
    return {one.name: one for one in series}


def test_a_stage_is_the_median_of_its_trials_and_the_greatest_of_all_samples() -> None:
    trials = [trial(n, vm__faults=rate) for n, rate in ((1, 5.0), (2, 100.0), (3, 7.0))]
    levels = {1: (10.0, 30.0), 2: (1.0, 2.0), 3: (40.0, 80.0)}
    series = {
        n: named(counter("vm.faults"), gauge("memory.dirty_bytes", *levels[n])) for n in levels
    }
    found = of(sampled(["one", "two"], trials, series, {}, {}))
    rate, level = found["vm.faults"].stages[0], found["memory.dirty_bytes"].stages[0]
    assert rate is not None
    assert (rate.mean, rate.greatest) == (pytest.approx(7.0), None)
    assert level == SampledLevel(20.0, 80.0)
    assert found["vm.faults"].stages[1] is None, "nothing was sampled there"


def test_what_was_zero_or_is_not_known_is_named_apart() -> None:
    series = named(counter("vm.oom_kills"), gauge("memory.huge_total_bytes", 0.0, 0.0),
                   counter("vm.swap_in_pages"), counter("vm.faults"))  # fmt: skip
    record = trial(1, vm__oom_kills=0.0, vm__faults=3.0)
    (group,) = sampled(["one"], [record], {1: series}, {}, {}).groups
    assert [one.name for one in group.series] == ["vm.faults"]
    assert set(group.zero) == {"vm.oom_kills", "memory.huge_total_bytes"}
    assert group.unknown == ("vm.swap_in_pages",), "it began anew: its growth is not zero"


def test_of_several_servers_each_has_its_own() -> None:
    names = ("a:5432: wal.bytes", "b:5432: wal.records")
    series = named(counter(names[0], "B", 100.0), counter(names[1], per_s=4.0))
    columns = tuple(SnapshotColumn(one, "", "label") for one in ("view", "reset_unix_s"))
    resets = [
        SnapshotRows("b:5432: resets", "begin", BEGIN, columns,
                     ({"view": "pg_stat_wal", "reset_unix_s": 1.0},)),
        SnapshotRows("b:5432: resets", "end", END, columns,
                     ({"view": "pg_stat_wal", "reset_unix_s": 2.0},)),
    ]  # fmt: skip
    found = sampled(["one"], [trial(1)], {1: series}, {}, {1: resets})
    (group,) = (one for one in found.groups)
    assert (group.title, group.unknown) == ("WAL", (names[1],)), "its view was reset meanwhile"
    (level,) = of(found)[names[0]].stages
    assert level is not None
    assert level.mean == pytest.approx(100.0)


def test_of_hundreds_of_members_the_others_are_added_up() -> None:
    names = [f"device.sd{n:03}.{what}" for n in range(100) for what in ("reads", "busy_s")]
    names += [f"cpu.{n}.busy_s" for n in range(40)]
    result = replace(RESULT, deltas=dict.fromkeys(names, 2.0 * SECONDS))
    record = TrialRecord(1, 1, "one", "x", TrialState.FINISHED, result=result)
    series = named(
        *map(counter, names), *(gauge(f"device.sd{n:03}.in_flight", 1, 2) for n in range(100))
    )
    found = of(sampled(["one"], [record], {1: series}, {}, {}))
    further = {name: one.stages[0] for name, one in found.items() if "further" in name}
    assert {name: level.mean for name, level in further.items() if level} == {
        "device.<88 further devices>.reads": pytest.approx(176.0),
        "device.<88 further devices>.busy_s": pytest.approx(176.0),
        "cpu.<24 further CPUs>.busy_s": pytest.approx(48.0),
    }
    assert len(found) == 3 * 12 + 16 + 3


def test_cpus_stand_in_the_order_of_their_numbers() -> None:
    names = [f"cpu.{n}.busy_s" for n in (10, 2, 1)]
    result = replace(RESULT, deltas=dict.fromkeys(names, 1.0))
    record = TrialRecord(1, 1, "one", "x", TrialState.FINISHED, result=result)
    found = of(sampled(["one"], [record], {1: named(*map(counter, names))}, {}, {}))
    assert list(found) == ["cpu.1.busy_s", "cpu.2.busy_s", "cpu.10.busy_s"]


def test_tallies_and_tables_are_named_with_their_size() -> None:
    columns = (SnapshotColumn("slot", "", "label"),)
    looks = [
        SnapshotRows("slots", "begin", BEGIN, columns, ()),
        SnapshotRows("slots", "end", END, columns, ({"slot": "a"}, {"slot": "b"})),
    ]
    met = {1: {"sessions": sessions(BEGIN // NS, 5)}}
    found = sampled(["one", "two"], [trial(1)], {}, met, {1: looks})
    assert found.tables == (
        SampledTable("sessions", "tally", met[1]["sessions"].dimensions, (len(USUAL), None)),
        SampledTable("slots", "snapshot", ("slot",), (2, None)),
    )


def test_what_no_group_has_is_shown_all_the_same(facts: Facts) -> None:
    assert group_of("cpu.frequency_hz") != group_of("cpu.user_s") != OTHERS
    assert group_of("somebody.else") == OTHERS
    series = {1: named(counter("somebody.else"))}
    found = sampled(["one"], [trial(1, somebody__else=2.0)], series, {}, {})
    assert [(one.title, len(one.series)) for one in found.groups] == [(OTHERS, 1)]


def test_the_page_has_groups_that_are_folded_with_units(facts: Facts) -> None:
    names = [stage.name for stage in facts.stages]
    rest = (None,) * (len(names) - 1)
    group = SampledGroup(
        "WAL",
        (
            SampledSeries("wal.bytes", "B", "counter", (SampledLevel(2048.0, None), *rest)),
            SampledSeries("wal.unflushed_bytes", "B", "gauge", (SampledLevel(10.0, 4096.0), *rest)),
            SampledSeries("wal.write_s", "s", "counter", (SampledLevel(0.25, None), *rest)),
        ),
        ("wal.fpi",), (), 7,
    )  # fmt: skip
    told = TelemetryFacts((), (), (), sampled=Sampled((group,)))
    page = section(replace(facts, telemetry=told))
    assert page is not None
    tables = [one for one in page.blocks if isinstance(one, Table)]
    assert all(one.folded for one in tables)
    assert tables[0].caption == "WAL: 10 series. 3 of them are shown."
    cells = [[(cell.text, cell.note) for cell in row[:3]] for row in tables[0].rows]
    assert cells == [
        [("wal.bytes", None), ("B/s", None), ("2.00 KiB", None)],
        [("wal.unflushed_bytes", None), ("B", None), ("10 B", "most 4.00 KiB")],
        [("wal.write_s", None), ("s/s", None), ("0.25", None)],
    ]
    assert [cell.text for cell in tables[1].rows[0]] == ["WAL", "wal.fpi"]
    assert section(replace(facts, telemetry=None)) is None
