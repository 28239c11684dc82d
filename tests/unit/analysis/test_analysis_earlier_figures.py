"""Reported and measured: ratios within each, each metric with itself, nothing absolute."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.earlier_figures import reported_and_measured
from pgdyno.analysis.facts import Facts
from pgdyno.model.plan import EarlierReport, Plan
from pgdyno.model.run import TrialRecord, TrialState
from pgdyno.report.document import Section, Table, Text
from pgdyno.report.sections.earlier import section
from tests.data.miniature import CHARACTERS, a_plan, a_result

THEN = ({"tpm_total": 256195.32, "nopm": 102494.46}, {"tpm_total": 453058.64}, {})
NOPM = {"initdb": (100.0, 110.0, 105.0), "tuned": (130.0, 141.0, 137.0)}


def plan_with(figures: tuple[dict[str, float], ...] = THEN) -> Plan:
    base = a_plan(CHARACTERS, 3)
    stages = zip(base.stages, figures, strict=True)
    return replace(
        base,
        stages=tuple(replace(stage, earlier=dict(figures)) for stage, figures in stages),
        earlier=EarlierReport("a field report", "16 cores", 1),
    )


def trials(plan: Plan) -> list[TrialRecord]:
    result = a_result()
    return [
        TrialRecord(
            t.number, t.round, t.stage, t.ident, TrialState.FINISHED,
            result=replace(
                result, nopm=NOPM[t.stage][t.round - 1], tpm_total=3 * NOPM[t.stage][t.round - 1]
            ),
        )
        for t in plan.trials
        if t.stage in NOPM
    ]  # fmt: skip


def test_ratios_are_to_the_first_stage_that_has_the_figure() -> None:
    plan = plan_with()
    told = reported_and_measured(plan, trials(plan))

    assert told is not None
    lines = {(line.metric, line.stage): line for line in told.figures}
    assert set(lines) == {("nopm", "initdb"), ("tpm_total", "initdb"), ("tpm_total", "tuned")}
    tuned = lines["tpm_total", "tuned"]
    assert (tuned.base, tuned.now) == ("initdb", 3 * 137.0)
    assert tuned.earlier_ratio == pytest.approx(1.7684, abs=1e-4)
    assert tuned.now_ratio == pytest.approx(1.30, abs=0.01)
    assert tuned.low is not None
    assert tuned.high is not None
    assert tuned.low < tuned.now_ratio < tuned.high


def test_a_stage_without_trials_has_the_reported_figures_only() -> None:
    plan = plan_with()

    told = reported_and_measured(plan, [])

    assert told is not None
    assert [line.now for line in told.figures] == [None, None, None]
    assert [line.now_ratio for line in told.figures] == [None, None, None]


def test_a_plan_without_an_earlier_report_has_no_section(facts: Facts) -> None:
    assert reported_and_measured(a_plan(CHARACTERS, 3), []) is None
    assert section(replace(facts, earlier=None)) is None


def test_the_section_says_where_the_figures_come_from(facts: Facts) -> None:
    plan = plan_with()
    found = section(replace(facts, earlier=reported_and_measured(plan, trials(plan))))

    assert isinstance(found, Section)
    nopm, total, note = found.blocks
    assert isinstance(nopm, Table)
    assert isinstance(total, Table)
    assert (nopm.caption, total.caption) == (
        "NOPM of initdb = 1, reported and measured.",
        "tpmTotal of initdb = 1, reported and measured.",
    )  # fmt: skip
    assert [cell.text for cell in total.rows[1]][:4] == ["tuned", "453,059", "411", "×1.768"]
    assert total.rows[1][-1].text == "it gained more in the report"
    assert isinstance(note, Text)
    assert "a field report, on 16 cores; 1 run behind each figure" in note.text
