"""What could not be seen is told once, with where and what would add it; looking has a price."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.telemetry import telemetry_facts
from pgdyno.analysis.telemetry_facts import Lacking, Looks, TelemetryCost, TelemetryFacts
from pgdyno.model.run import Missing, SamplerCost, TelemetryReport, TrialRecord, TrialState
from pgdyno.report.document import Table, Text
from pgdyno.report.sections.telemetry import section
from tests.data.miniature import a_result

GRANT = "GRANT pg_monitor TO bench;"
OTHERS = Missing("sessions of others", "the role bench may not read what other roles do", GRANT)
OFF = Missing("times of WAL I/O", "track_wal_io_timing is off", "Set track_wal_io_timing = on.")
READ = SamplerCost("disk", "series", 90, 10, 0.2, 1000.0)
ENDED = SamplerCost("slru", "series", 10, 0, 0.1, 1000.0, "server closed the connection")


def trial(number: int, stage: str, report: TelemetryReport | None) -> TrialRecord:
    result = replace(a_result(), telemetry=report)
    return TrialRecord(number, number, stage, "x", TrialState.FINISHED, result=result)


def told(*missing: Missing, samplers: tuple[SamplerCost, ...] = (READ,)) -> TelemetryReport:
    return TelemetryReport("default", 20.0, 0.4, samplers, missing)


def test_what_is_missing_is_told_once_with_its_stages() -> None:
    trials = [
        trial(1, "one", told(OTHERS)), trial(2, "two", told(OTHERS, OFF)),
        trial(3, "one", told(OTHERS)), trial(4, "two", told(OTHERS, samplers=(READ, ENDED))),
    ]  # fmt: skip
    found = telemetry_facts(["one", "two"], trials)

    assert found is not None
    assert found.lacking == (
        Lacking(OTHERS.name, OTHERS.reason, GRANT, ("one", "two")),
        Lacking(OFF.name, OFF.reason, OFF.remedy, ("two",)),
        Lacking("sampler slru", "it stopped: server closed the connection", "", ("two",)),
    )


def test_a_sampler_that_paused_is_told_with_its_seconds() -> None:
    paused = replace(READ, gap_s=4.25, gap_reason="server closed the connection")
    found = telemetry_facts(["one"], [trial(1, "one", told(samplers=(READ, paused)))])

    assert found is not None
    assert found.lacking == (
        Lacking("sampler disk", "told nothing for 4.2 s: server closed the connection", "",
                ("one",)),
    )  # fmt: skip


def test_looking_is_told_by_processor_and_second() -> None:
    found = telemetry_facts(["one", "two"], [trial(1, "one", told()), trial(2, "two", None)])

    assert found is not None
    assert found.costs == (TelemetryCost("one", "default", 0.4 / 20, 90 / 20, 10 / 100),)
    assert telemetry_facts(["two"], [trial(2, "two", None)]) is None


def test_looks_are_told_by_tally_as_due_and_as_reached() -> None:
    """Each by the seconds in which it was read; what nobody reached in time is lost."""
    sessions = SamplerCost("sessions", "tally", 200, 600, 0.1, 1000.0, seconds=16.0)
    at_the_ends = SamplerCost("slots", "snapshot", 2, 0, 0.1, 1000.0)
    one = told(samplers=(READ, replace(READ, name="memory"), sessions, at_the_ends))
    other = told(samplers=(READ, replace(sessions, takes=600, lost=200)))
    found = telemetry_facts(["one"], [trial(1, "one", one), trial(2, "one", other)])

    assert found is not None
    assert found.looks == (
        Looks("one", "sessions", 1, 50.0, 25.0, 0.5),
        Looks("one", "series", 2, 7.5, 6.75, 0.1),
    )


def test_a_look_is_told_beside_its_budget(facts: Facts) -> None:
    names = [stage.name for stage in facts.stages]
    dear = SamplerCost("sessions", "tally", 100, 0, 0.15, 1000.0)
    never = SamplerCost("slots", "snapshot", 0, 0, 0.0, 20_000.0)
    half = told(samplers=(READ, replace(dear, takes=300, cpu_s=0.05), never))
    trials = [trial(1, names[0], told(samplers=(READ, dear))), trial(2, names[1], half)]
    found = telemetry_facts(names, trials)

    assert found is not None
    third = (None,) * (len(names) - 2)
    us = {one.name: one.stages for one in found.samplers}
    assert us == {
        "disk": pytest.approx((0.2e6 / 90, 0.2e6 / 90, *third)),
        "sessions": pytest.approx((1500.0, 0.05e6 / 300, *third)),
        "slots": (None, None, *third),
    }
    assert [one.name for one in found.samplers if one.exceeded] == ["disk", "sessions"]
    said = section(replace(facts, telemetry=found))
    assert said is not None
    (over,) = [one for one in said.blocks if isinstance(one, Text) and "budget" in one.text]
    assert (
        over.text == "The samplers disk and sessions took more CPU time a look than their budget."
    )
    one_over = tuple(one for one in found.samplers if one.name != "sessions")
    alone = section(replace(facts, telemetry=replace(found, samplers=one_over)))
    assert alone is not None
    (over,) = [one for one in alone.blocks if isinstance(one, Text) and "budget" in one.text]
    assert over.text == "The sampler disk took more CPU time a look than its budget."
    (table,) = [one for one in said.blocks if isinstance(one, Table) and "budget" in one.caption]
    assert table.folded
    row = next(row for row in table.rows if row[0].text == "sessions")
    assert [(cell.text, cell.note) for cell in row[:4]] == [
        ("sessions", None), ("1,000", None), ("1,500", "over it"), ("167", None),
    ]  # fmt: skip
    cheap = telemetry_facts(names, [trial(1, names[0], told(samplers=(never,)))])
    assert cheap is not None
    calm = section(replace(facts, telemetry=cheap))
    assert calm is not None
    assert [one.text for one in calm.blocks if isinstance(one, Text) and "budget" in one.text] == [
        "No sampler took more CPU time a look than its budget."
    ]


def test_the_report_names_what_was_missing_and_the_grant_that_adds_it(facts: Facts) -> None:
    names = [stage.name for stage in facts.stages]
    assert section(replace(facts, telemetry=None)) is None
    costs = (TelemetryCost(names[0], "default", 0.0123, 37.5, 0.0),)
    looks = (Looks(names[0], "series", 21, 20.5, 20.25, 0.012),)
    lacking = (
        Lacking(OTHERS.name, OTHERS.reason, GRANT, tuple(names)),
        Lacking("sampler slru", "it stopped: server closed the connection", "", (names[0],)),
    )
    one = section(replace(facts, telemetry=TelemetryFacts(costs, looks, lacking)))

    assert one is not None
    missing, cost, often, _ = one.blocks
    assert isinstance(missing, Table)
    assert isinstance(cost, Table)
    assert isinstance(often, Table)
    assert [cell.text for cell in often.rows[0]] == [
        names[0], "series of 21 samplers", "20.5", "20.2", "1.2",
    ]  # fmt: skip
    assert [[cell.text for cell in row] for row in missing.rows] == [
        [OTHERS.name, OTHERS.reason, GRANT, "all"],
        ["sampler slru", "it stopped: server closed the connection", "–", names[0]],
    ]
    assert [cell.text for cell in cost.rows[0]] == [names[0], "default", "1.23", "37.5", "0"]
    nothing = (TelemetryCost(names[0], "none", 0.0, 0.0, None),)
    off = section(replace(facts, telemetry=TelemetryFacts(nothing, (), ())))
    assert off is not None
    said, spent, _ = off.blocks
    assert isinstance(said, Text)
    assert said.text.startswith("Nothing was looked at")
    assert isinstance(spent, Table)
    assert spent.rows[0][-1].text == "–", "none was due, so that none was lost or reached"
    whole = section(replace(facts, telemetry=TelemetryFacts(costs, (), ())))
    assert whole is not None
    assert isinstance(whole.blocks[0], Text)
