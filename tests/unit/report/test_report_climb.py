"""A climb as an article: what was seen, believed, done and got at each step, and how it ended."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from pgdyno.model.climb import Climbed
from pgdyno.model.record_json import from_json, to_json
from pgdyno.report import climb as report
from tests.data.climbs import MADE, a_climb, broken_off
from tests.data.climbs import found as found_of


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
    first, second, third, *_ = report.sentences(a_climb())
    assert first == "`climbed` is 21% faster than `initdb`, and nothing is lost."
    assert second == (
        "`climbed` is `initdb` with larger-buffers: ×1.21 (1.19 to 1.23) by 8 fresh rounds, better."
    )
    assert third == "`climbed` is 6% faster than `tuned`: ×1.061 (1.040 to 1.082)."
    text = "\n".join(report.sentences(a_climb()))
    assert "The climb ended there: The limit is the flush" in text
    assert "In the mean of 4 tries, throughput was 3.4% less than predicted." in text
    assert "Below rung D0, async-commit (rung D2) is predicted to bring ×1.41" in text
    assert "`" not in said(a_climb()), "a terminal has no such letters"


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        ("worse", "`climbed` is slower than `tuned`: ×0.900 (0.882 to 0.918)."),
        ("equivalent", "`climbed` is as fast as `tuned`: ×0.900 (0.882 to 0.918)."),
        ("undecided", "Whether `climbed` is faster than `tuned` is not known yet: ×0.900 (0.882 to"
                      " 0.918)."),
    ],
)  # fmt: skip
def test_what_people_would_take_instead_is_never_left_out(verdict: str, sentence: str) -> None:
    whole = a_climb()
    assert whole.final is not None
    final = replace(whole.final, beside=(found_of("tuned", 0.9, verdict),))
    assert sentence in list(report.sentences(replace(whole, final=final)))


def test_why_a_profile_beside_it_is_not_judged_is_told() -> None:
    whole = a_climb()
    assert whole.final is not None
    one = replace(found_of("tuned", 0.9, "not judged"), reason="autovacuum worked more")
    final = replace(whole.final, beside=(one,))
    text = report.render_md(replace(whole, final=final), MADE)
    table = text[text.index("Beside what people would take instead") :]
    assert "| tuned | ×0.900 (0.882 to 0.918) | not judged (autovacuum worked more)" in table


def test_what_is_not_missed_and_what_did_not_help_are_told() -> None:
    text = report.render_md(a_climb(), MADE)
    assert "Flush-by-write is not missed, and left out from here on." in text
    assert "Profile pgtune is not beside it: the disk has not enough room." in text
    futile = text[text.index("What was not kept") :]
    assert futile.count("group-commit") == 2


def test_a_step_has_its_proof_what_was_cleared_and_what_a_transaction_costs_then() -> None:
    text = report.render_md(a_climb(), MADE)
    step = text[text.index("1. Flush-by-write") : text.index("2. Larger-buffers")]
    assert "Proof: the flush of WAL at commit: in flushes of WAL 41%" in step
    assert "Cleared: the client and reading pages." in step
    assert "Not known: dead rows that vacuum leaves." in step
    assert (
        "A transaction with flush-by-write: server CPU 290 µs (before 312 µs); WAL 4.00 KiB (before"
        " 5.00 KiB); p99 of New-Order 19.8 ms (before 25.6 ms)."
    ) in step
    assert "63 trials in 51 min 30 s" in text, (
        "3 where it begins, 12 in each step, and 24 at the end"
    )


def test_what_is_pinned_is_told_as_every_page_has_it() -> None:
    whole = a_climb()
    limits = replace(whole.asked.limits, pinned=("max_wal_size", "checkpoint_timeout"))
    pinned = replace(whole, asked=replace(whole.asked, limits=limits))
    for text in (report.render_md(pinned, MADE), report.render_html(pinned, MADE)):
        assert "no stage changes max_wal_size and checkpoint_timeout" in text


def test_what_no_setting_reaches_is_told_at_the_end() -> None:
    text = report.render_md(a_climb(), MADE)
    assert "Against it, and no setting of the server: more connections and WAL on a device" in text
    assert "Nothing but settings is known to be against it." in text
    assert "no setting reaches" not in report.render_md(broken_off(), MADE)


def test_where_nothing_helped_people_learn_whether_the_profiles_do() -> None:
    whole = a_climb()
    assert whole.final is not None
    final = replace(
        whole.final, stages=("initdb", "tuned"), found=(found_of("initdb", 1.1, "better"),),
        plain=(), beside=(),
    )  # fmt: skip
    nothing = tuple(replace(one, accepted=None) for one in whole.steps)
    first, second, third, *_ = report.sentences(replace(whole, steps=nothing, final=final))
    assert first == "Nothing that was tried is shown to be better than initdb."
    assert second == "`tuned` is 10% faster than `initdb`: ×1.100 (1.078 to 1.122)."
    assert third.startswith("The climb ended there: ")
    alone = replace(final, run_file="", stages=("initdb",), found=())
    text = report.render_md(replace(whole, steps=nothing, final=alone), MADE)
    assert "Profile pgtune is not beside it: the disk has not enough room." in text


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
