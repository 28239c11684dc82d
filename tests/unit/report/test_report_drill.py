"""A drill on a page, as Markdown, as JSON and in a terminal: the same figures everywhere."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from rich.console import Console

from pgdyno.analysis.drill import drill_facts
from pgdyno.analysis.drill_facts import DrillFacts
from pgdyno.analysis.judged import plan_in
from pgdyno.model.drill import Drilled
from pgdyno.model.record_json import from_json, to_json
from pgdyno.report import drill as report
from pgdyno.store import RunFile
from tests.data.drills import INFO, drill
from tests.data.miniature import write_miniature
from tests.data.page_text import page_text


@pytest.fixture(scope="module")
def drilled(tmp_path_factory: pytest.TempPathFactory) -> Drilled:
    with RunFile.read(write_miniature(tmp_path_factory.mktemp("run") / "run.sqlite")) as run:
        return drill(plan_in(run.info()))


@pytest.fixture(scope="module")
def facts(drilled: Drilled) -> DrillFacts:
    return drill_facts(drilled, INFO)


def test_every_stage_and_disaster_is_in_every_form(facts: DrillFacts) -> None:
    console = Console(file=StringIO(), width=100, no_color=True, force_terminal=False)
    console.print(report.summary(facts))
    assert isinstance(console.file, StringIO)
    page = page_text(report.render_html(facts))
    for text in (console.file.getvalue(), report.render_md(facts), page):
        for one in facts.rows:
            assert one.stage in text
            assert one.disaster in text
        assert "crash took up to 40.0 ms of commits in 2 of 4" in " ".join(text.split())


def test_each_cut_can_be_made_again_by_its_seed(facts: DrillFacts) -> None:
    text = report.render_md(facts)
    for one in facts.cuts:
        assert f"{one.stage}, {one.disaster} {one.number}" in text
        assert str(one.seed) in text
    assert "FATAL:  invalid page in block 7" in report.render_html(facts)


def test_the_smallest_harm_names_its_page(facts: DrillFacts) -> None:
    for text in (report.render_md(facts), report.render_html(facts)):
        assert "base/5/16401 page 7 (9 of 16 sectors)" in text
        assert "412" in text


def test_the_json_has_numbers_and_reads_back(facts: DrillFacts, drilled: Drilled) -> None:
    told = json.loads(report.render_json(facts))
    assert told["schema"] == "pgdyno.experiment.drill/1"
    assert (told["rows"][-1]["harmed"]["of"], told["rows"][-1]["harmed"]["n"]) == (3, 4)
    assert from_json(Drilled, to_json(drilled)) == drilled
