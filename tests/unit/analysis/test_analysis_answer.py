"""The two sentences say what the comparisons say, for every way it can come out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.analysis import words
from pgdyno.analysis.answer import answer
from pgdyno.analysis.answer_facts import Answer, Doubt, confidence_of
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.run import analyse
from pgdyno.model.durability import Durability, Loss
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Tpcc
from pgdyno.report.compose import compose
from pgdyno.store import RunFile
from tests.data.miniature import CHARACTERS, MIX, WORKLOAD, write_miniature
from tests.unit.conftest import analysed

INITDB, TUNED, ASYNC = CHARACTERS


def undecided(folder: Path) -> Facts:
    """Two stages between which noise leaves nothing decided."""
    noisy = replace(TUNED, nopm=INITDB.nopm * 0.95, noise=0.05)
    return analysed(folder / "run.sqlite", characters=(INITDB, noisy), invalid=())


def test_the_best_safe_stage_comes_before_the_best_unsafe_one(tmp_path: Path) -> None:
    finding = analysed(tmp_path / "run.sqlite", invalid=()).answer.finding
    assert finding.startswith("`tuned` gives ×1.")
    assert "3 paired rounds" in finding
    assert "on rung D0, where nothing is lost; `async-commit` gives ×1." in finding
    assert "but on rung D2, where a crash may lose the last commits. " in finding
    assert finding.endswith("): better.")


def test_no_better_stage(tmp_path: Path) -> None:
    slower = replace(TUNED, nopm=INITDB.nopm * 0.7)
    facts = analysed(tmp_path / "run.sqlite", characters=(INITDB, slower), invalid=())
    assert facts.answer.finding.startswith(
        "No stage is shown to be better than `initdb`: `tuned` is worse at ×0."
    )


def test_undecided_names_the_rounds_it_needs(tmp_path: Path) -> None:
    facts = undecided(tmp_path)
    compared = facts.stages[1].to_first
    assert compared is not None
    assert compared.verdict == "undecided"
    assert f"interval {words.interval(compared)}), needs about {compared.rounds_needed} rounds" in (
        facts.answer.finding
    )


def test_only_a_lower_rung_is_better(tmp_path: Path) -> None:
    risky = replace(TUNED, stage=replace(TUNED.stage, rung=Rung.D4, rung_reason="fsync = off"))
    facts = analysed(tmp_path / "run.sqlite", characters=(INITDB, risky), invalid=())
    assert facts.answer.finding.startswith("Only on a lower rung is a stage better: `tuned`")
    assert "a crash of the machine may tear pages" in facts.answer.finding


def test_limits_name_what_weakens_the_claim(facts: Facts) -> None:
    limits = facts.answer.limits
    assert "only 2 paired rounds" in limits
    assert "1 of 9 trials invalid, which counts against `async-commit`" in limits
    assert "inputs out of their band (rolled back New-Orders)" in limits


def test_many_clean_rounds_have_fewer_limits(tmp_path: Path, facts: Facts) -> None:
    many = analysed(tmp_path / "run.sqlite", rounds=6, invalid=())
    assert "paired round" not in many.answer.limits
    assert "counts against" not in many.answer.limits
    assert len(many.answer.limits) < len(facts.answer.limits)


def test_a_stage_that_fails_is_not_praised_for_what_lived(tmp_path: Path) -> None:
    facts = analysed(tmp_path / "run.sqlite", rounds=5, invalid=(5,), failed=(7,))
    failing = [trial.stage for trial in facts.trials if trial.state in ("failed", "invalid")]
    assert failing == ["async-commit", "async-commit"]
    compared = facts.stages[2].to_first
    assert compared is not None
    assert compared.low is not None
    assert compared.low > 1.2
    assert compared.verdict == "undecided"
    assert "2 of 5 trials of async-commit failed" in compared.reason
    assert "async-commit" not in facts.answer.finding
    limits = facts.answer.limits
    assert "1 of 15 trials failed, which counts against `async-commit`" in limits
    assert words.verdict(compared) == "undecided, trials failed"


def test_a_stage_with_figures_and_no_pair_is_not_compared(facts: Facts) -> None:
    stage = facts.stages[2]
    assert stage.to_first is not None
    alone = replace(stage, to_first=replace(stage.to_first, rounds=0, verdict="undecided"))
    assert words.verdict_of(alone) == "not compared"
    assert words.verdict_of(replace(alone, rounds=())) == "not measured"
    assert words.verdict_of(stage) == words.verdict(stage.to_first)


def test_an_interval_without_an_end_in_sight_says_so(tmp_path: Path) -> None:
    """Of two rounds that differ much; a number of twelve digits would look like knowledge."""
    compared = analysed(tmp_path / "run.sqlite", invalid=()).stages[1].to_first
    assert compared is not None
    wide = replace(compared, low=0.0004, high=4_109_248_431_634.7)

    assert words.interval(wide) == "below 0.001 to above 1,000"
    assert words.interval(replace(wide, low=0.001, high=999.9)) == "0.001 to 999.900"


def losses(*found: tuple[Rung, str, str]) -> Durability:
    return Durability(tuple(Loss(rung, what, "…", layer, "…") for rung, what, layer in found))


def test_every_loss_of_every_layer_is_told(tmp_path: Path) -> None:
    found = losses((Rung.D4, "full_page_writes = off", "server"),
                   (Rung.D3, "wal_level = minimal", "server"),
                   (Rung.D2, "synchronous_commit = off", "role"))  # fmt: skip
    stage = replace(TUNED.stage, rung=Rung.D4, rung_reason="full_page_writes = off")
    risky = replace(TUNED, stage=stage, durability=found)
    facts = analysed(tmp_path / "run.sqlite", characters=(INITDB, risky), invalid=())
    assert (
        "on rung D4, where a crash of the machine may tear pages, there is no replica and no"
        " recovery to a point in time and a crash may lose the last commits."
    ) in facts.answer.finding
    assert facts.stages[1].rung_reason == (
        "full_page_writes = off, wal_level = minimal, synchronous_commit = off (role)"
    )
    assert "planned on rung" not in facts.answer.limits


def test_what_was_read_back_counts_and_not_what_was_planned(tmp_path: Path) -> None:
    fallen = losses((Rung.D2, "synchronous_commit = off", "database"))
    facts = analysed(
        tmp_path / "run.sqlite", characters=(INITDB, replace(TUNED, durability=fallen)), invalid=()
    )
    assert (facts.stages[1].rung, facts.stages[1].rung_planned) == ("D2", "D0")
    assert facts.answer.finding.startswith("Only on a lower rung is a stage better: `tuned`")
    told = "`tuned` was planned on rung D0 and was found on D2 (synchronous_commit = off)"
    assert told in facts.answer.limits


def test_what_is_not_known_is_never_d0(tmp_path: Path) -> None:
    unread = Durability((), ("the server's storage: it does not run on this host",))
    facts = analysed(
        tmp_path / "run.sqlite", characters=(INITDB, replace(TUNED, durability=unread)), invalid=()
    )
    assert facts.stages[1].rung == "D?"
    assert facts.answer.finding.startswith("Of no stage that is better is it known that nothing")
    assert "it does not run on this host" in facts.answer.finding


def test_what_is_not_known_speaks_against_no_number(tmp_path: Path) -> None:
    unread = Durability((), ("the server's storage: engineer may not read where it is",))
    facts = analysed(
        tmp_path / "run.sqlite", characters=(INITDB, replace(TUNED, durability=unread)), invalid=()
    )
    told = (
        "it is not known what `tuned` may lose (the server's storage: engineer may not read where"
        " it is)"
    )
    assert [one.grave for one in facts.answer.doubts if one.text == told] == [False]
    assert "was found on D?" not in facts.answer.limits


def test_a_round_that_was_measured_again_is_told(tmp_path: Path) -> None:
    path = write_miniature(tmp_path / "run.sqlite", invalid=(5,))
    with RunFile.append(path) as run:
        good = {trial.stage: trial for trial in run.trials() if trial.round == 1}
        run.begin_again([4, 5, 6])
        for trial in run.trials()[3:6]:
            run.put_trial(replace(good[trial.stage], number=trial.number, round=2, attempt=2))
        facts = analyse(run)
    assert "round 2 measured again" in facts.answer.limits
    assert [(one.number, one.replaced_by, one.state) for one in facts.replaced] == [
        (10, 4, "finished"), (11, 5, "invalid"), (12, 6, "finished")
    ]  # fmt: skip
    compared = facts.stages[2].to_first
    assert compared is not None
    assert compared.rounds == 3
    assert "1 of 4 trials of async-commit failed" in compared.reason


def test_each_load_is_answered_for_itself(tmp_path: Path) -> None:
    other = replace(WORKLOAD, tpcc=Tpcc(10, mix={**MIX, "payment": 1.0}))
    paying, twice = (
        replace(INITDB, nopm=nopm, stage=replace(INITDB.stage, name=name, workload=other))
        for name, nopm in (("paying", 60_000), ("twice", 120_000))
    )
    facts = analysed(tmp_path / "run.sqlite", characters=(INITDB, TUNED, paying, twice), invalid=())

    assert [facts.base_of(stage).name for stage in facts.stages] == [
        "initdb", "initdb", "paying", "paying"
    ]  # fmt: skip
    assert facts.base == "the first of its load"
    tuned, slowest, doubled = facts.answer.finding.split(". ", 2)
    assert tuned.startswith("`tuned` gives ×1.")
    assert "of `initdb`" in tuned
    assert slowest.startswith("p99 of New-Order of `tuned` is ×")
    assert doubled.startswith("`twice` gives ×")
    assert "of `paying`" in doubled


def test_a_shortened_plan_that_decided_nothing_says_that_it_could_not(tmp_path: Path) -> None:
    facts = undecided(tmp_path)
    short, whole = (
        answer(facts.stages, facts.trials, (), (), metric="NOPM", quick=quick).plain
        for quick in (True, False)
    )
    assert short[:1] == whole[:1]
    assert short[1] == (
        "A plan shortened by --quick seldom decides; the whole plan measures longer, and may"
        " decide."
    )


def test_where_nothing_was_measured_the_shortened_plan_is_not_to_blame(tmp_path: Path) -> None:
    facts = analysed(tmp_path / "run.sqlite", planned=tuple(range(1, 10)), invalid=())
    said = answer(facts.stages, facts.trials, (), (), metric="NOPM", quick=True)
    assert said.plain == (
        "No trial finished, so there is no answer.",
        "`pgdyno resume`, given the run file, measures the 9 trials that are left.",
    )


def test_doubts_that_differ_in_terms_of_the_field_alone_are_one_for_everybody() -> None:
    doubts = (
        Doubt("not judged: x differs", grave=True, stages=("a",), simply="no verdict"),
        Doubt("a client held the server back", grave=True, stages=("a",)),
        Doubt("not judged: y differs", grave=True, stages=("b", "c"), simply="no verdict"),
        Doubt("few rounds", grave=False),
    )
    found = Answer((), "", "", confidence_of(doubts), doubts)
    assert found.said_simply(grave=True) == (
        "no verdict (`a`, `b` and `c`)", "a client held the server back (`a`)",
    )  # fmt: skip
    assert found.said_simply(grave=False) == ("few rounds",)


def test_few_rounds_are_told_of_each_only_where_each_has_as_few(tmp_path: Path) -> None:
    first, tried = undecided(tmp_path).stages[:2]
    assert tried.to_first is not None

    def said(*pairs: int) -> str:
        others = [replace(tried, to_first=replace(tried.to_first, rounds=one)) for one in pairs]
        doubts = answer((first, *others), (), (), (), metric="NOPM", quick=False).doubts
        return next(one.simply for one in doubts if "paired round" in one.text)

    assert said(2, 2) == "each stage was measured beside the first only 2 times"
    assert said(1, 1) == "each stage was measured beside the first only once"
    assert said(3, 2) == "not every stage was measured beside the first more than 2 times"
    assert said(3, 0) == "not every stage was measured beside the first"


def test_a_shortened_plan_names_what_it_cannot_judge(tmp_path: Path) -> None:
    facts = undecided(tmp_path)
    first, tried = facts.stages[0], facts.stages[1]
    assert tried.to_first is not None
    unjudged = replace(tried, to_first=replace(tried.to_first, verdict="not judged"))
    ways = (
        ("cannot judge `tuned`, however", (unjudged,)),
        ("cannot judge any of these stages, however", (unjudged,) * 4),
        ("cannot judge 4 of the stages, however", (unjudged,) * 4 + (tried,)),
    )
    for said, others in ways:
        stages = (first, *others)
        last = answer(stages, facts.trials, (), (), metric="NOPM", quick=True).plain[-1]
        assert said in last
        assert last.endswith("windows follow checkpoints, and are long enough.")


def test_an_answer_ends_with_how_to_decide_what_is_not(tmp_path: Path) -> None:
    facts = undecided(tmp_path)
    compared = facts.stages[1].to_first
    assert compared is not None
    for needed, looks, rounds in ((13, (), 13), (13, (4, 6), 20)):
        tried = replace(facts.stages[1], to_first=replace(compared, rounds_needed=needed))
        plain = answer(
            (facts.stages[0], tried), facts.trials, (), (), metric="NOPM", quick=False, looks=looks
        ).plain
        said = [one for one in plain if "protocol.rounds" in one]
        text = f"A run with `--set protocol.rounds={rounds}`, which takes"
        assert [one.rpartition(" about ")[0] for one in said] == [text]
        assert all(one.endswith(", is likely to decide it.") for one in said)


def test_of_a_twin_nothing_is_to_be_decided(tmp_path: Path) -> None:
    """`wal_buffers` is slower. To decide it: what was not decided was the twin, named nowhere."""
    facts = undecided(tmp_path)
    compared = facts.stages[1].to_first
    assert compared is not None
    tried, twin = (
        replace(facts.stages[1], to_first=replace(compared, verdict=verdict, rounds_needed=needed),
                name=name, twin_of=of)
        for name, of, verdict, needed in (("tried", None, "worse", None),
                                          ("twin", facts.stages[0].name, "undecided", 13))
    )  # fmt: skip
    plain = answer((facts.stages[0], tried, twin), facts.trials, (), (), metric="NOPM",
                   quick=False).plain  # fmt: skip
    assert any("`tried` is slower" in one for one in plain)
    assert not any("protocol.rounds" in one for one in plain)


def test_one_round_tells_no_interval_and_the_answer_says_so_first(tmp_path: Path) -> None:
    facts = undecided(tmp_path)
    compared = facts.stages[1].to_first
    assert compared is not None
    for rounds, said in ((0, False), (1, True), (2, False)):
        one = replace(compared, rounds=rounds, low=None, high=None, rounds_needed=None)
        tried = replace(facts.stages[1], to_first=one)
        plain = answer((facts.stages[0], tried), facts.trials, (), (), metric="NOPM",
                       quick=False).plain  # fmt: skip
        text = "An interval takes two rounds, and a decision more: repeat the run with"
        assert any(one.startswith(text) for one in plain) == said


@pytest.mark.parametrize("quick", [False, True])
def test_a_run_that_was_broken_off_is_told_to_be_resumed(tmp_path: Path, quick: bool) -> None:
    facts = undecided(tmp_path)
    left = (*facts.trials[:-2], *(replace(one, state="planned") for one in facts.trials[-2:]))
    for trials, said in ((facts.trials, False), (left, True)):
        plain = answer(facts.stages, trials, (), (), metric="NOPM", quick=quick).plain
        text = "`pgdyno resume`, given the run file, measures the 2 trials that are left."
        assert (text in plain) == said


def test_a_round_that_was_interrupted_is_told_to_be_measured_again_as_a_whole(
    tmp_path: Path,
) -> None:
    """As `resume` does: its finished trials are measured again with those that are left."""
    facts = undecided(tmp_path)
    last = max(one.round for one in facts.trials)
    head, tail = facts.trials[:-3], facts.trials[-3:]
    planned = tuple(replace(one, state="planned") for one in tail[1:])
    for looks in ((), (4, 6)):
        for state in ("running", "planned"):
            trials = (*head, replace(tail[0], state=state), *planned)
            plain = answer(
                facts.stages, trials, (), (), metric="NOPM", quick=False, looks=looks
            ).plain
            text = (
                "`pgdyno resume`, given the run file, measures the 2 trials that are left and"
                f" round {last - 1} again (it was interrupted)"
            )
            assert any(one.startswith(text) for one in plain), plain
    trials = (*facts.trials[:-1], replace(facts.trials[-1], state="running"))
    plain = answer(facts.stages, trials, (), (), metric="NOPM", quick=False).plain
    text = f"given the run file, measures round {last} again (it was interrupted)"
    assert any(text in one for one in plain)


def test_failures_that_resuming_does_not_undo_are_told_with_the_way_on(tmp_path: Path) -> None:
    """`undecided, trials failed`, after the round was measured again: and nothing to do next."""
    facts = undecided(tmp_path)
    compared = facts.stages[1].to_first
    assert compared is not None
    name = facts.stages[1].name
    failed = replace(compared, rounds_needed=None, failures=f"1 of 5 trials of {name} failed")
    broken = (replace(facts.trials[0], state="invalid", attempt=1), *facts.trials[1:])
    end = f"what `{name}` does, a new run without such trials can decide."
    for one, trials, said in (
        (failed, facts.trials, True),
        (failed, broken, False),  # first of all `resume` measures it again
        (replace(failed, verdict="better"), facts.trials, False),
        (compared, facts.trials, False),
    ):
        stages = (facts.stages[0], replace(facts.stages[1], to_first=one))
        plain = answer(stages, trials, (), (), metric="NOPM", quick=False).plain
        assert any(text.endswith(end) for text in plain) == said


def test_a_round_that_broke_is_told_to_be_resumed_until_it_was_measured_again(
    tmp_path: Path,
) -> None:
    facts = undecided(tmp_path)
    for attempt, looks, said in ((1, (), True), (2, (), False), (1, (4, 6), False)):
        broken = replace(facts.trials[1], state="invalid", attempt=attempt)
        trials = (facts.trials[0], broken, *facts.trials[2:])
        plain = answer(facts.stages, trials, (), (), metric="NOPM", quick=False, looks=looks).plain
        text = "`pgdyno resume`, given the run file, measures round 1 again (a trial of it failed"
        assert any(one.startswith(text) for one in plain) == said
    both = tuple(replace(one, state="failed") for one in facts.trials if one.round < 3)
    plain = answer(facts.stages, both, (), (), metric="NOPM", quick=False).plain
    assert any("measures rounds 1 and 2 again (trials of them failed" in one for one in plain)


def test_what_the_rest_of_a_run_may_decide_is_no_reason_to_repeat_it(tmp_path: Path) -> None:
    facts = undecided(tmp_path)
    compared = facts.stages[1].to_first
    assert compared is not None
    last = max(one.round for one in facts.trials)
    left = (*facts.trials[:-2], *(replace(one, state="planned") for one in facts.trials[-2:]))
    for needed, resumed in ((last, True), (last + 1, False)):
        tried = replace(facts.stages[1], to_first=replace(compared, rounds_needed=needed))
        plain = answer((facts.stages[0], tried), left, (), (), metric="NOPM", quick=False).plain
        may = (
            f"`pgdyno resume`, given the run file, measures the 2 trials that are left, and may"
            f" decide what `{tried.name}` does."
        )
        further = f"is likely to decide what `{tried.name}` does."
        assert (may in plain) == resumed
        assert any(one.endswith(further) for one in plain) != resumed
    once = replace(compared, rounds=1, low=None, high=None, rounds_needed=None)
    stages = (facts.stages[0], replace(facts.stages[1], to_first=once))
    plain = answer(stages, left, (), (), metric="NOPM", quick=False).plain
    assert not any("An interval takes two rounds" in one for one in plain), "there are more to come"


def test_an_answer_does_not_send_anybody_for_what_takes_days(tmp_path: Path) -> None:
    facts = undecided(tmp_path)
    compared = facts.stages[1].to_first
    assert compared is not None
    tried = replace(facts.stages[1], to_first=replace(compared, rounds_needed=196))
    plain = answer((facts.stages[0], tried), facts.trials, (), (), metric="NOPM", quick=False).plain

    assert not any("protocol.rounds" in one for one in plain)
    # What few rounds show is no fact of the stage: neither that it does little, nor the number.
    assert any(one.startswith(
        f"What `{tried.name}` does looks small beside the noise: if more rounds are like the"
        f" {compared.rounds} measured, about 196 would decide it, which takes about "
    ) for one in plain)  # fmt: skip


def test_a_shortened_plan_calls_what_it_decided_a_first_look(facts: Facts) -> None:
    finished = [one for one in facts.trials if one.state == "finished"]
    stages = tuple(  # without failures, of which a whole plan says what decides
        replace(one, to_first=one.to_first and replace(one.to_first, failures=None))
        for one in facts.stages
    )
    short, whole = (
        answer(stages, finished, (), (), metric="NOPM", quick=quick).plain
        for quick in (True, False)
    )
    assert any(one.to_first and one.to_first.verdict == "better" for one in facts.stages)
    assert short[: len(whole)] == whole
    first = short[len(whole)]
    assert first == "This is a first look, shortened by --quick: the whole plan may find otherwise."
    assert compose(replace(facts, quick=True)).kicker.startswith(f"{facts.plan} --quick · ")
