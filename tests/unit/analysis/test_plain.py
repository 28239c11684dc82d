"""The answer for everybody says no more than the comparisons do, and how far it can be trusted."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from pgdyno.analysis.answer import further_doubts
from pgdyno.analysis.answer_facts import Confidence, Doubt, TailFacts, confidence_of
from pgdyno.analysis.facts import Facts, LossFacts, MistakeFacts, StageFacts
from pgdyno.analysis.plain import deepest, plain, tail_sentence
from pgdyno.analysis.words import risks, stands
from pgdyno.report.sections.stages import tail_words
from pgdyno.report.summary import render
from pgdyno.report.tone import CONFIDENCES
from tests.unit.conftest import analysed

TERMS = ("NOPM", "rung", "interval", "p99", "×", "paired", "D0", "D2")


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> tuple[StageFacts, ...]:
    """`initdb`, `tuned` at D0 and `async-commit` at D2; both are better."""
    return analysed(tmp_path_factory.mktemp("plain") / "run.sqlite", invalid=()).stages


def compared(
    stage: StageFacts, ratio: float, verdict: str = "better", tails: tuple[TailFacts, ...] = ()
) -> StageFacts:
    assert stage.to_first is not None
    return replace(stage, to_first=replace(stage.to_first, ratio=ratio, verdict=verdict),
                   tails=tails)  # fmt: skip


def tail(percentile: str, ratio: float, verdict: str) -> TailFacts:
    return TailFacts("new_order", percentile, "initdb", ratio, ratio * 0.9, ratio * 1.1, 0.95, 5,
                     verdict, "…")  # fmt: skip


def test_no_term_of_the_field_is_needed(stages: tuple[StageFacts, ...]) -> None:
    said = " ".join(plain(stages))
    assert "`tuned` is 30% faster than `initdb`, and nothing is lost." in said
    assert "but a crash may lose the last commits." in said
    assert "`async-commit` is 47% faster than `initdb` and 13% faster than `tuned`, but" in said
    assert [term for term in TERMS if term in said] == []


def test_one_that_begins_afresh_is_not_praised_for_what_it_gains_over_the_one_before(
    stages: tuple[StageFacts, ...],
) -> None:
    afresh = (*stages[:-1], replace(stages[-1], afresh=True))
    assert "13% faster than `tuned`" not in " ".join(plain(afresh))


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (1.004, "0.4% faster than"),
        (1.3, "30% faster than"),
        (1.995, "100% faster than"),
        (2.37, "2.4 times as fast as"),
    ],
)
def test_gains_are_said_as_people_do(
    stages: tuple[StageFacts, ...], ratio: float, said: str
) -> None:
    first, tuned, _ = stages
    assert plain([first, compared(tuned, ratio)])[0] == (
        f"`tuned` is {said} `initdb`, and nothing is lost."
    )


@pytest.mark.parametrize(
    ("ratio", "verdict", "said"),
    [
        (
            0.8,
            "better",
            "With `tuned`, the slowest 1 in 1,000 New-Order transactions take 20% less time.",
        ),
        (1.2, "worse", "the slowest 1 in 1,000 New-Order transactions take 20% longer."),
        (2.5, "worse", "New-Order transactions take 2.5 times as long."),
        (1.0, "equivalent", "New-Order transactions take as long as with `initdb`."),
        (1.1, "undecided", "What `tuned` does to the slowest requests is not known yet."),
        (1.1, "not judged", "What `tuned` does to the slowest requests is not known yet."),
    ],
)
def test_a_gain_never_stands_without_its_slowest_requests(
    stages: tuple[StageFacts, ...], ratio: float, verdict: str, said: str
) -> None:
    first, tuned, _ = stages
    tails = (tail("p99.9", ratio, verdict),)
    assert said in plain([first, compared(tuned, 1.3, tails=tails)])[1]


def test_the_deepest_percentile_with_a_verdict_is_said(stages: tuple[StageFacts, ...]) -> None:
    first, tuned, _ = stages
    tails = (tail("p99", 1.4, "worse"), tail("p99.9", 0.9, "undecided"))
    stage = compared(tuned, 1.3, tails=tails)
    assert deepest(stage) is tails[0]
    assert "the slowest 1 in 100 " in plain([first, stage])[1]
    assert tail_sentence(stage) == (
        "p99 of New-Order of `tuned` is ×1.400 that of `initdb` (1.260 to 1.540): worse"
    )


def test_what_more_rounds_tell_is_said_before_a_deeper_percentile(
    stages: tuple[StageFacts, ...],
) -> None:
    """A page said ×1.486 of 2 rounds of 3, the slow one left out, above a table with 24% less."""
    few = replace(tail("p99.9", 1.486, "undecided"), rounds=2, low=None, high=None)
    shallow = tail("p99", 0.906, "undecided")
    stage = compared(stages[1], 1.3, tails=(shallow, few))
    assert deepest(stage) is shallow
    as_many = replace(few, rounds=shallow.rounds)
    assert deepest(compared(stages[1], 1.3, tails=(shallow, as_many))) is as_many


def test_a_ratio_of_the_slowest_that_few_rounds_tell_says_of_how_many_it_is(
    stages: tuple[StageFacts, ...],
) -> None:
    """A box said ×1.026 by 1 round of 4, above a table where p99 of all rounds was shorter."""
    stage = compared(stages[1], 1.3, tails=(replace(tail("p99", 1.026, "undecided"), rounds=1),))
    assert "is ×1.026 that of `initdb` in 1 of 3 rounds (" in tail_sentence(stage)
    assert tail_words(stage.tails[0], stage.to_first) == (
        "slowest 1 in 100 New-Order transactions take ×1.026 the time in 1 of 3 rounds: undecided"
    )


def test_where_nothing_is_better_nothing_is_praised(stages: tuple[StageFacts, ...]) -> None:
    first, tuned, unsafe = stages
    both = "`tuned` and `async-commit` are"
    for verdict, said in (
        ("worse", f"{both} slower than `initdb`."),
        ("equivalent", f"{both} as fast as `initdb`."),
        ("undecided", f"Whether {both} faster than `initdb` is not known yet."),
        ("not judged", f"Whether {both} faster than `initdb` is not known yet."),
    ):
        stages = (first, compared(tuned, 1.3, verdict), compared(unsafe, 1.5, verdict))
        assert plain(stages) == (said,)
    both_ways = plain((first, compared(tuned, 1.0, "equivalent"), compared(unsafe, 0.9, "worse")))
    assert both_ways == (
        "Nothing that was tried is shown to be faster than `initdb`.",
        "`tuned` is as fast as `initdb`.",
        "`async-commit` is slower than `initdb`.",
    )
    assert plain([first]) == (
        "Only `initdb` was measured: there is nothing to compare it with.",
    )  # fmt: skip


def test_stages_of_loads_of_their_own_are_not_called_one(stages: tuple[StageFacts, ...]) -> None:
    apart = [replace(one, to_first=None) for one in stages[:2]]
    assert plain(apart) == (
        "`initdb` and `tuned` ask for loads of their own, so that no ratio is told: their numbers"
        " stand beside each other.",
    )


def test_slower_or_quicker_tails_are_said_also_where_nothing_is_faster(
    stages: tuple[StageFacts, ...],
) -> None:
    first, tuned, _ = stages
    (tail, *_) = tuned.tails
    for verdict, ratio, words in (("better", 0.8, "20% less time"), ("worse", 1.4, "40% longer")):
        told = replace(tail, verdict=verdict, ratio=ratio, low=ratio - 0.05, high=ratio + 0.05)
        same = replace(compared(tuned, 1.0, "undecided"), tails=(told,))
        assert plain((first, same))[-1].endswith(f"transactions take {words}.")


def test_stages_between_the_first_and_the_best_have_their_gain(
    stages: tuple[StageFacts, ...],
) -> None:
    """Where most of it begins is what somebody buys, not the last step down the ladder."""
    first, tuned, unsafe = stages
    between = replace(compared(unsafe, 1.76, "better"), name="asynchronous")
    found = plain(
        (first, compared(tuned, 1.0, "undecided"), between, compared(unsafe, 1.9, "better"))
    )
    assert "Faster than `initdb` too: `asynchronous` (76%, D2)." in found


def test_what_came_of_the_others_is_said_too(stages: tuple[StageFacts, ...]) -> None:
    first, tuned, unsafe = stages
    assert unsafe.to_first is not None
    slower = plain([first, tuned, compared(unsafe, 0.9, "worse")])
    assert slower[0].startswith("`tuned` is 30% faster")
    assert slower[-1] == "`async-commit` is slower than `initdb`."
    never = replace(unsafe, to_first=replace(unsafe.to_first, rounds=0, verdict="undecided"))
    not_measured = "`async-commit` was not measured beside `initdb`."
    assert plain([first, tuned, never])[-1] == not_measured
    assert plain([first, replace(never, tails=())]) == (not_measured,)


def test_what_the_report_finds_anywhere_dims_the_light(facts: Facts) -> None:
    """A green light beside a red check would be read as an answer to it."""
    clear = replace(facts.placement, verdict="clear")
    assert (
        further_doubts((), [replace(one, verdict="noted") for one in facts.mistakes], clear) == []
    )
    placed = replace(clear, verdict="finding", fact="trials differ with the scheduler")
    (doubt,) = further_doubts((), (), placed)
    assert doubt.grave is False
    assert doubt.text == "trials differ with the scheduler"
    assert doubt.plain.endswith("with how the system spread the work over the processors")
    fact = "trials 1 and 2 agree to the digit"
    copied = MistakeFacts("E10", "…", "finding", fact, "two measurements agree, as copies do")
    (doubt,) = further_doubts((), (copied,), clear)
    assert doubt.grave
    assert doubt.plain == "two measurements agree, as copies do"
    assert doubt.text.startswith("trials 1 and 2 agree to the digit (E10 of the mistakes")
    told = {one.ident for one in facts.mistakes if one.verdict == "finding"} - {
        "E4",
        "E6",
        "E11",
        "E14",
    }
    said = [one.text for one in facts.answer.doubts]
    assert all(any(f"({ident} of the mistakes" in text for text in said) for ident in told)


def test_a_stage_that_differs_from_itself_dims_the_light(
    facts: Facts, stages: tuple[StageFacts, ...]
) -> None:
    first, tuned, _ = stages
    clear = replace(facts.placement, verdict="clear")
    twin = compared(replace(tuned, name="initdb-twin", twin_of="initdb"), 0.57, "worse")
    (doubt,) = further_doubts((), (), clear, stages=(first, twin))
    assert doubt.grave
    assert doubt.text.startswith("identical stages differ: `initdb-twin` is worse than its twin")
    undecided = compared(twin, 0.98, "undecided")
    assert further_doubts((), (), clear, stages=(first, undecided)) == []


def test_unlogged_tables_are_lost_sooner_than_their_rung_says(
    stages: tuple[StageFacts, ...],
) -> None:
    loss = LossFacts("D6", "unlogged tables", "a crash of the server empties them", "tables", "x")
    told = risks(replace(stages[1], rung="D6", losses=(loss,)))
    assert told.startswith("a crash of the server alone empties its tables")
    assert "server alone" not in risks(replace(stages[1], rung="D6", losses=()))


def test_what_loses_nothing_is_no_reason_beside_a_loss(stages: tuple[StageFacts, ...]) -> None:
    images = LossFacts("D1", "wal_compression = pglz", "nothing is lost; …", "server", "x")
    commits = LossFacts("D2", "synchronous_commit = off", "the last commits", "server", "x")
    stage = replace(stages[1], rung="D2", losses=(commits, images), not_known=("the storage",))
    assert stands(stage).endswith("(synchronous_commit = off).")


def test_what_could_not_be_read_is_no_consequence_of_a_crash(
    stages: tuple[StageFacts, ...],
) -> None:
    commits = LossFacts("D2", "synchronous_commit = off", "the last commits", "server", "x")
    stage = replace(stages[1], rung="D2", losses=(commits,), not_known=("the storage",))
    more = "what else may be lost is not known (the storage)"
    assert risks(stage) == f"a crash may lose the last commits and {more}"
    nothing_told = replace(stage, rung="D?", losses=())
    assert risks(nothing_told) == "what may be lost is not known (the storage)"


@pytest.mark.parametrize(
    ("doubts", "confidence"),
    [
        ((), "high"),
        ((Doubt("…", grave=False),), "limited"),
        ((Doubt("…", grave=False), Doubt("…", grave=True)), "low"),
    ],
)
def test_one_grave_doubt_is_enough(doubts: tuple[Doubt, ...], confidence: Confidence) -> None:
    assert confidence_of(doubts) == confidence
    assert CONFIDENCES[confidence][0] == f"Confidence: {confidence}"


def test_every_doubt_stands_in_the_limits(facts: Facts, tmp_path: Path) -> None:
    for some in (facts, analysed(tmp_path / "run.sqlite", rounds=6, invalid=())):
        assert some.answer.doubts
        assert [
            one.whole for one in some.answer.doubts if one.whole not in some.answer.limits
        ] == []


def test_a_doubt_is_told_with_its_stages(facts: Facts) -> None:
    assert Doubt("it drifts", True, ("a", "b")).whole == "it drifts (`a` and `b`)"
    assert Doubt("it drifts", True, ("a", "b"), True).whole == "it drifts (all stages)"
    mine, all_of_us = Doubt("a", True, ("tuned",)), Doubt("b", True, ("initdb", "tuned"), True)
    answer = replace(facts.answer, doubts=(mine, all_of_us, Doubt("c", True, ("initdb",))))
    assert answer.doubts_about("tuned") == (mine,)
    assert answer.against("tuned") == (mine, all_of_us)


def test_doubts_are_told_without_terms(facts: Facts) -> None:
    doubt = Doubt("it drifts", True, ("a",), simply="it became slower")
    assert (doubt.whole, doubt.plain) == ("it drifts (`a`)", "it became slower (`a`)")
    said = " ".join(one.plain for one in facts.answer.doubts)
    assert [term for term in ("band", "cycles", "paired", "throughput") if term in said] == []


@pytest.mark.parametrize("more", [0, 2])
def test_a_low_confidence_names_the_first_thing_that_speaks_against_it(
    facts: Facts, more: int
) -> None:
    grave = tuple(Doubt(f"found {number}", grave=True) for number in range(1 + more))
    doubts = (Doubt("not known", grave=False), *grave)
    answer = replace(facts.answer, doubts=doubts, confidence="low")
    console = Console(width=200, file=io.StringIO())
    console.print(render(replace(facts, answer=answer)))
    assert isinstance(console.file, io.StringIO)
    said = "speaks against these numbers: found 0." + " The page has 2 more reasons." * bool(more)
    assert said in console.file.getvalue()
