"""The page of a load-latency curve."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.curve import curve_facts
from pgdyno.model.knee import Curve, Knee
from pgdyno.model.record_json import from_json, to_json
from pgdyno.report.curve import figure, render_html, verdict
from tests.data.curves import CURVE


@pytest.mark.parametrize(
    ("knee", "words"),
    [
        (Knee("found", 400, 420, 0), "keeps to 50.0 ms up to a load between 400 and 420 requests/"),
        (Knee("found", 400, 420, 1), "; 1 of 4 windows contradict it"),
        (Knee("above", 420, None, 0), "up to 420 requests/s, the highest load tried"),
        (Knee("below", None, 400, 0), "breaks 50.0 ms already at 400 requests/s, the lowest"),
        (Knee("unsettled", 400, 420, 0), "not settled within 4 windows: p99 keeps at 400 and"),
        (Knee("unsettled", None, 420, 0), "p99 breaks at 420 requests/s (50.0 ms)"),
    ],
)
def test_the_verdict_says_what_was_found(knee: Knee, words: str) -> None:
    assert words in verdict(replace(CURVE, knee=knee))


def test_terminals_are_called_terminals() -> None:
    assert "420 terminals" in verdict(replace(CURVE, by="terminals"))


def test_the_page_holds_every_window_and_the_chart() -> None:
    page = render_html(curve_facts(CURVE))

    assert page.count("90.0 ms") >= 2
    assert 'id="chart-curve-1"' in page
    assert "http://" not in page.split("<script")[0]


def test_the_chart_marks_limit_and_bracket_and_every_window() -> None:
    drawing = figure(CURVE)

    kinds = [shape.type for shape in drawing.layout.shapes]
    assert kinds == ["line", "rect"]
    assert [len(trace.x) for trace in drawing.data if trace.mode == "markers"] == [4, 4]
    assert list(drawing.data[2].y) == [9.0, 90.0]
    assert len(figure(replace(CURVE, points=())).data[0].x) == 0


def test_a_curve_comes_back_from_json() -> None:
    assert from_json(Curve, to_json(CURVE)) == CURVE
