"""A climb as an article: what was seen, believed, done and got at each step, and how it ended."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

from rich.console import Console

from pgdyno.model.climb import Climbed
from pgdyno.model.record_json import from_json, to_json
from pgdyno.report import climb as report
from tests.data.climbs import MADE, a_climb, broken_off


def said(found: Climbed) -> str:
    console = Console(file=StringIO(), width=400, no_color=True, force_terminal=False)
    console.print(report.summary(found))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_every_try_is_in_every_form_with_what_was_believed_and_got() -> None:
    found = a_climb()
    for text in (said(found), report.render_md(found, MADE), report.render_html(found, MADE)):
        for step in found.steps:
            for one in step.tried:
                assert one.move in text
                assert str(one.predicted) in text
                assert one.found is not None
                assert f"×{one.found.ratio:.3f}" in text
    told = json.loads(report.render_json(found, MADE))
    assert told["schema"] == "pgdyno.experiment.climb/1"
    assert told["steps"][0]["tried"][0]["found"]["ratio"] == 1.12


def test_the_answer_rests_on_the_fresh_rounds_alone() -> None:
    first, *_ = report.sentences(a_climb())
    assert first == (
        "With larger-buffers the throughput is ×1.21 (1.19 to 1.23) that of initdb, by 8 fresh"
        " rounds: better."
    )
    text = "\n".join(report.sentences(a_climb()))
    assert "That of profile tuned is ×1.140 (1.117 to 1.163) beside it: better." in text
    assert "It ended there: The limit is the flush" in text
    assert "the mean error is -3.4%" in text
    assert "Beyond rung D0: async-commit (rung D2) is believed to bring ×1.41" in text


def test_what_is_not_missed_and_what_did_not_help_are_told() -> None:
    text = report.render_md(a_climb(), MADE)
    assert "Flush-by-write is not missed, and left out from here on." in text
    assert "Profile pgtune is not beside it: the disk has not enough room." in text
    futile = text[text.index("What did not help") :]
    assert futile.count("group-commit") == 2


def test_one_that_was_broken_off_says_how_far_it_came() -> None:
    found = broken_off()
    assert said(found).startswith("The climb was broken off after 2 steps.")
    text = report.render_md(found, MADE)
    assert "It did not end." in text
    assert "not measured" in text
    assert report.render_html(found, MADE)


def test_one_that_found_nothing_says_so() -> None:
    whole = a_climb()
    found = replace(whole, steps=whole.steps[2:], kept=(), without=None, final=None, beyond=())
    assert said(found).startswith("Nothing that was tried is shown to be better than initdb.")


def test_the_record_comes_back_as_it_was_written() -> None:
    for one in (a_climb(), broken_off()):
        assert from_json(Climbed, to_json(one)) == one
