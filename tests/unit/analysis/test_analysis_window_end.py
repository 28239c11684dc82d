"""Requests without an answer show in every format of the report, as lower bounds."""

from __future__ import annotations

import io
import json as json_text
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.run import analyse
from pgdyno.model.run import KindResult, TrialResult
from pgdyno.report import html, json, markdown
from pgdyno.report.summary import render
from pgdyno.store import RunFile
from tests.data.miniature import write_miniature

SAID = "had no answer 10.0 s after its end: they count as at least that"
BOUND_NS = 9_000_000


def left_open(kind: KindResult) -> KindResult:
    """With 12 requests that never had an answer, the least of them after 9 ms."""
    window = replace(
        kind.window, due=kind.window.due + 12, unfinished=12, drained=0, unanswered=12
    )  # fmt: skip
    return replace(
        kind, window=window,
        response_ns=kind.response_ns | {"exact_below": BOUND_NS},
        service_ns=kind.service_ns | {"exact_below": BOUND_NS},
        statements=tuple(
            replace(one, ns=one.ns | {"exact_below": BOUND_NS}) for one in kind.statements
        ),
    )  # fmt: skip


def changed(result: TrialResult) -> TrialResult:
    first, *others = result.kinds
    return replace(result, kinds=(left_open(first), *others), given_up_s=10.0)


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """One trial of the stage `tuned` has requests without an answer."""
    path: Path = write_miniature(tmp_path_factory.mktemp("run") / "run.sqlite")
    with RunFile.append(path) as run:
        trial = next(one for one in run.finished() if one.stage == "tuned")
        assert trial.result is not None
        series = run.series(trial.number).values()
        run.put_trial(replace(trial, result=changed(trial.result)), series)
        return analyse(run)


def test_the_stage_and_its_percentiles_say_so(facts: Facts) -> None:
    tuned = next(stage for stage in facts.stages if stage.name == "tuned")
    others = [stage for stage in facts.stages if stage.name != "tuned"]

    assert tuned.window_end is not None
    assert (tuned.window_end.verdict, tuned.window_end.rounds) == ("finding", 1)
    assert SAID in tuned.window_end.fact
    line = tuned.percentiles("new_order")
    assert line is not None
    assert line.exact_below_ns == BOUND_NS
    assert all(one.exact_below_ns is None for one in tuned.latency if one.kind != "new_order")
    assert tuned.statements[0].exact_below_ns == BOUND_NS
    for stage in others:
        assert stage.window_end is not None
        assert stage.window_end.verdict == "clear"
        assert all(one.exact_below_ns is None for one in stage.latency)
    assert "requests of the windows had no answer, or failed (`tuned`)" in facts.answer.limits
    # A mean over requests without an answer is not one to compare.
    costs = {cost.stage: cost.costs for cost in facts.protocol}
    assert "service_us" not in costs["tuned"]
    assert "service_us" in costs["initdb"]


def test_every_format_shows_it(facts: Facts) -> None:
    terminal = io.StringIO()
    Console(file=terminal, width=200).print(render(facts))

    for text in (terminal.getvalue(), markdown.render(facts), html.render(facts)):
        # On the page numbers stay beside their units, within an element of their own.
        assert SAID in " ".join(re.sub("</?span[^>]*>", "", text).split())
        assert "≥ " in text
    raw = json_text.loads(json.render(facts))
    tuned = next(stage for stage in raw["stages"] if stage["name"] == "tuned")
    assert tuned["latency"][0]["exact_below_ns"] == BOUND_NS
    assert tuned["window_end"]["verdict"] == "finding"


def test_every_format_says_that_failed_requests_have_no_time(tmp_path: Path) -> None:
    """As of an outage that a plan with protocol.survive asked for."""
    path: Path = write_miniature(tmp_path / "run.sqlite")
    with RunFile.append(path) as run:
        trial = next(one for one in run.finished() if one.stage == "tuned")
        assert trial.result is not None
        first, *others = trial.result.kinds
        window = replace(first.window, due=first.window.due + 12, failed=12)
        result = replace(trial.result, kinds=(replace(first, window=window), *others))
        run.put_trial(replace(trial, result=result), run.series(trial.number).values())
        facts = analyse(run)
    terminal = io.StringIO()
    Console(file=terminal, width=200).print(render(facts))

    for text in (terminal.getvalue(), markdown.render(facts), html.render(facts)):
        words = " ".join(text.split())
        assert "12 requests due in the window" in words
        assert "failed and have no time: percentiles and maximum are those of the others" in words
        assert "≥ marks" not in words
    assert "requests of the windows had no answer, or failed (`tuned`)" in facts.answer.limits


def test_a_run_without_them_shows_no_mark(tmp_path: Path) -> None:
    with RunFile.read(write_miniature(tmp_path / "run.sqlite")) as run:
        facts = analyse(run)

    assert "≥" not in markdown.render(facts)
    assert "no answer" not in facts.answer.limits
