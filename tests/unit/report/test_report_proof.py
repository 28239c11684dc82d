"""A proof on a page, as Markdown, as JSON and in a terminal: the same figures everywhere."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from pgdyno.analysis.judged import plan_in
from pgdyno.analysis.proof import proof_facts
from pgdyno.analysis.proof_facts import ProofFacts
from pgdyno.model.proof import Proved
from pgdyno.model.record_json import from_json, to_json
from pgdyno.report import proof as report
from pgdyno.store import RunFile
from tests.data.miniature import write_miniature
from tests.data.proofs import DESIGN, INFO, proof


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> Proved:
    with RunFile.read(write_miniature(tmp_path_factory.mktemp("run") / "run.sqlite")) as run:
        return proof(plan_in(run.info()))


@pytest.fixture(scope="module")
def facts(proved: Proved) -> ProofFacts:
    return proof_facts(proved, INFO)


def test_every_probe_is_in_every_form(facts: ProofFacts) -> None:
    console = Console(file=StringIO(), width=100, no_color=True, force_terminal=False)
    console.print(report.summary(facts))
    assert isinstance(console.file, StringIO)
    for text in (console.file.getvalue(), report.render_md(facts), report.render_html(facts)):
        for one in facts.probes:
            assert one.probe.name in text
            assert one.effect is not None
            assert f"×{one.effect.ratio:.3f}" in text


def test_both_charts_are_on_the_page_and_what_is_lost_is_said(facts: ProofFacts) -> None:
    page = report.render_html(facts)
    assert 'id="chart-free-1"' in page
    assert 'id="chart-dearer-1"' in page
    assert "what is free here loses data" in page
    text = report.render_md(facts)
    assert "On a real server this risks: pages torn by a power cut." in text
    assert "`data-flush-free`: fsync is off: nothing is flushed." in text
    assert "the flush of WAL limits it" in text


def test_figures_of_the_json_are_numbers(facts: ProofFacts) -> None:
    told = json.loads(report.render_json(facts))
    assert told["schema"] == "pgdyno.experiment.prove/1"
    cpu = next(one for one in told["probes"] if one["probe"]["name"] == "cpu")
    assert cpu["effect"]["ratio"] == pytest.approx(0.86, rel=0.01)
    assert cpu["effect"]["factor"] == pytest.approx(1.2)
    assert told["sum"]["state"] == "missing"


def test_prices_together_are_a_table(proved: Proved) -> None:
    asked = replace(proved.asked, design=replace(DESIGN, prices=True))
    facts = proof_facts(proof(asked.plan, design=asked.design), INFO)
    text = report.render_md(facts)
    assert "Prices together" in text
    assert "12 times" in text
    assert "commit-free" in text.split("Prices together")[1]


def test_a_proof_comes_back_from_json(proved: Proved) -> None:
    assert from_json(Proved, to_json(proved)) == proved
