"""Windows decide whether the slowest requests take longer, where enough of those were seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.analysis.answer_facts import TailFacts
from pgdyno.analysis.judged import plan_in
from pgdyno.analysis.stages import throughput_table
from pgdyno.analysis.tails import SHORT, tails
from pgdyno.model.plan import Plan
from pgdyno.model.run import Counts, KindResult, TrialRecord
from pgdyno.store import RunFile
from tests.data.miniature import write_miniature
from tests.unit.conftest import analysed

ROUNDS = 6
MS = 1_000_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, list[TrialRecord]]:
    path = tmp_path_factory.mktemp("tails") / "run.sqlite"
    with RunFile.read(write_miniature(path, rounds=ROUNDS, invalid=())) as file:
        return plan_in(file.info()), file.trials()


def marked(trial: TrialRecord, change: Callable[[KindResult], KindResult]) -> TrialRecord:
    """A trial whose histograms are its stage's name and round, for `quantiles` below."""
    assert trial.result is not None
    kinds = tuple(
        change(replace(one, response=f"{trial.stage} {trial.round}")) for one in trial.result.kinds
    )
    return replace(trial, result=replace(trial.result, kinds=kinds))


def found(
    run: tuple[Plan, list[TrialRecord]],
    ms: Mapping[str, Callable[[int], float]],
    change: Callable[[KindResult], KindResult] = lambda one: one,
    not_judged: str | None = None,
) -> dict[str, tuple[TailFacts, ...]]:
    plan, trials = run
    marks = [marked(trial, change) for trial in trials]

    def quantiles(histograms: Sequence[str], shares: Sequence[float]) -> list[int]:
        stage, number = histograms[0].rsplit(" ", 1)
        deeper = 3 if shares == [0.999] else 1
        return [round(deeper * MS * ms[stage](int(number)))]

    return tails(
        plan, marks, throughput_table(plan, marks, (), {}), lambda *_: not_judged, quantiles
    )


def many(one: KindResult) -> KindResult:
    return replace(one, window=Counts(50_000, 50_000))


LEVEL = {"initdb": lambda n: 10 + 0.01 * n, "tuned": lambda n: 10 - 0.01 * n}


def test_longer_is_worse_and_shorter_is_better(run: tuple[Plan, list[TrialRecord]]) -> None:
    ms = {
        "initdb": lambda n: 10 + 0.1 * n,
        "tuned": lambda n: 5 + 0.03 * n,
        "async-commit": lambda n: 20 + 0.3 * n,
    }
    of = found(run, ms, many)

    assert [one.percentile for one in of["tuned"]] == ["p99", "p99.9"]
    assert {one.verdict for one in of["tuned"]} == {"better"}
    assert {one.verdict for one in of["async-commit"]} == {"worse"}
    deep = of["tuned"][1]
    assert deep.kind == "new_order"
    assert deep.base == "initdb"
    assert deep.rounds == ROUNDS
    assert deep.ratio == pytest.approx(0.5, abs=0.01)
    assert deep.low is not None
    assert deep.high is not None
    assert deep.low < deep.ratio < deep.high < 1
    assert "above 1" not in deep.reason
    assert "initdb" not in of, "the first of a load has nothing to be compared with"


def test_windows_that_vary_more_than_stages_are_no_verdict(
    run: tuple[Plan, list[TrialRecord]],
) -> None:
    ms = {
        "initdb": lambda n: 10 * 1.5 ** (n % 2), "tuned": lambda n: 10 * 1.5 ** ((n + 1) % 2),
        "async-commit": lambda n: 10.0 + 0.01 * n,
    }  # fmt: skip
    assert {one.verdict for one in found(run, ms, many)["tuned"]} == {"undecided"}


@pytest.mark.parametrize(
    ("timed", "percentiles"),
    [(999, []), (1_000, ["p99"]), (9_999, ["p99"]), (10_000, ["p99", "p99.9"])],
)
def test_ten_requests_lie_beyond_what_is_compared(
    run: tuple[Plan, list[TrialRecord]], timed: int, percentiles: list[str]
) -> None:
    def few(one: KindResult) -> KindResult:
        return replace(one, window=Counts(timed, timed))

    of = found(run, {**LEVEL, "async-commit": LEVEL["tuned"]}, few)
    assert [one.percentile for one in of.get("tuned", ())] == percentiles


def test_a_lower_bound_is_not_compared(run: tuple[Plan, list[TrialRecord]]) -> None:
    """Requests under way at a window's end may have taken longer than what is known of them."""

    def bounded(one: KindResult) -> KindResult:
        return many(replace(one, response_ns={**one.response_ns, "exact_below": 12 * MS}))

    of = found(run, {**LEVEL, "async-commit": LEVEL["tuned"]}, bounded)
    assert [one.percentile for one in of["tuned"]] == ["p99"]


def test_windows_without_whole_cycles_are_not_judged(
    run: tuple[Plan, list[TrialRecord]],
) -> None:
    ms = {"initdb": lambda n: 10.0 + n, "tuned": lambda n: 5.0 + n / 2, "async-commit": lambda _: 7}
    of = found(run, ms, many, "the window ended early")
    assert {(one.verdict, one.reason) for one in of["tuned"]} == {
        ("not judged", "the window ended early")
    }
    plan, trials = run
    stages = (plan.stages[0], replace(plan.stages[1], checkpoints="anchors"), *plan.stages[2:])
    of = found((replace(plan, stages=stages), trials), ms, many)
    assert {(one.verdict, one.reason) for one in of["tuned"]} == {("not judged", SHORT)}


def test_the_facts_of_a_stage_hold_them(tmp_path: Path) -> None:
    stage = analysed(tmp_path / "run.sqlite", invalid=()).stages[1]
    assert stage.tails
    assert {one.kind for one in stage.tails} == {"new_order"}


def test_the_slowest_of_another_load_are_of_its_own_first_kind(
    run: tuple[Plan, list[TrialRecord]],
) -> None:
    plan, trials = run
    first, *others = plan.stages
    tpcb = tuple(replace(one, workload=replace(one.workload, kind="tpcb")) for one in others)

    def other_kinds(trial: TrialRecord) -> TrialRecord:
        assert trial.result is not None
        if trial.stage == first.name:
            return trial
        kinds = tuple(replace(one, kind=f"of-{one.kind}") for one in trial.result.kinds)
        return replace(trial, result=replace(trial.result, kinds=kinds))

    changed = replace(plan, stages=(first, *tpcb)), [other_kinds(trial) for trial in trials]
    tails_found = found(
        changed, dict.fromkeys([one.name for one in plan.stages], lambda n: n), many
    )
    assert {name: tail[0].kind for name, tail in tails_found.items()} == {
        others[1].name: "of-new_order"
    }
    assert tails_found[others[1].name][0].base == others[0].name
