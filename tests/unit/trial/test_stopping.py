"""A plan that stops when it is decided: which trials it measures, what it tells, how it goes on."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import cast

import pytest

from pgdyno.analysis.run import analyse
from pgdyno.analysis.stopping import at_looks, last_rounds
from pgdyno.api.experiments import plan as experiment
from pgdyno.model.fixture_shape import FixtureShape
from pgdyno.model.looks import Stop
from pgdyno.model.manifest import FileSystem, HostManifest
from pgdyno.model.plan import Plan, Protocol, Stage
from pgdyno.model.progress import Event, LookTaken
from pgdyno.model.record_json import from_plain
from pgdyno.model.run import Fixture, RunInfo, TrialRecord, TrialResult, TrialState
from pgdyno.model.settings import ServerFacts
from pgdyno.plan import read_plan
from pgdyno.plan.remaining import rest_of
from pgdyno.plan.resolve.plan import resolve
from pgdyno.report.markdown import render
from pgdyno.store import RunFile
from pgdyno.target.interface import Target
from pgdyno.trial.measure import TestBed
from tests.data.miniature import write_miniature
from tests.data.servers import HOST, installed

BENCHES = Path(__file__).parents[3] / "benches"
DECIDED = Path(__file__).parents[2] / "data" / "plans" / "good" / "decided.toml"
FACTOR = {"initdb": 1.0, "async": 1.8, "wal-compression": 1.05}
WOBBLE = (0.99, 1.02, 1.0, 0.98, 1.01, 0.99, 1.03, 0.97)


class Idle:
    """A target that nothing is asked of but its fixture."""

    @property
    def each(self) -> tuple[Idle]:
        return (self,)

    def facts_of(self, build: str | None) -> ServerFacts:
        return installed(18)

    def find_fixture(self, ident: str) -> Fixture:
        return Fixture(ident, FixtureShape(), 1, None, (), "copy", reused=True)


@pytest.fixture
def plan() -> Plan:
    return resolve(read_plan(DECIDED), installed(18), HOST)


@pytest.fixture
def made_up(tmp_path: Path) -> tuple[RunInfo, TrialResult]:
    """Head and a result of a run file that was made up."""
    write_miniature(tmp_path / "other.sqlite")
    with RunFile.read(tmp_path / "other.sqlite") as other:
        result = other.finished()[0].result
        info = other.info()
    assert result is not None
    return info, replace(result, nopm=None)


Measure = Callable[[Stage, Protocol, TestBed, TrialRecord], TrialRecord]


def measuring(result: TrialResult, factor: dict[str, float]) -> Measure:
    """Stands for `trial.once_more`: a throughput by stage and round, stored as finished."""

    def measure(stage: Stage, _: Protocol, bed: TestBed, planned: TrialRecord) -> TrialRecord:
        wobble = WOBBLE[(planned.round * (3 if stage.name == "initdb" else 1)) % len(WOBBLE)]
        window_s = result.window_s / (factor[stage.name] * wobble)
        record = replace(planned, state=TrialState.FINISHED, started_ns=1, ended_ns=2,
                         result=replace(result, window_s=window_s))  # fmt: skip
        bed.run.put_trial(record)
        return record

    return measure


def carried_out(
    plan: Plan, info: RunInfo, path: Path, monkeypatch: pytest.MonkeyPatch, measure: Measure,
) -> list[Event]:  # fmt: skip
    planned = [
        TrialRecord(one.number, one.round, one.stage, one.ident, TrialState.PLANNED)
        for one in plan.trials
    ]
    monkeypatch.setattr(experiment, "measured", measure)
    events: list[Event] = []
    with RunFile.create(path, replace(info, plan=plan), planned) as run:
        experiment.carry_out(plan, cast("Target", Idle()), run, events.append)
    return events


def measured(path: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    with RunFile.read(path) as run:
        for trial in run.finished():
            found.setdefault(trial.stage, []).append(trial.round)
    return {stage: sorted(rounds) for stage, rounds in found.items()}


def test_what_a_look_decides_is_measured_no_further(
    plan: Plan, made_up: tuple[RunInfo, TrialResult], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    info, result = made_up
    path = tmp_path / "run.sqlite"

    events = carried_out(plan, info, path, monkeypatch, measuring(result, FACTOR))

    rounds = measured(path)
    looks = [one for one in events if isinstance(one, LookTaken)]
    assert rounds["async"] == [1, 2, 3], "a factor of 1.8 shows at the first look"
    assert len(rounds["wal-compression"]) > 3
    assert rounds["initdb"] == rounds["wal-compression"], "the base stays until the last"
    assert [look.rounds for look in looks[:5]] == [1, 1, 2, 2, 3], "a line for every pair at first"
    first = [look.sentences[0] for look in looks[:2]]
    assert sorted(one.split(" so far ×")[0] for one in first) == ["async", "wal-compression"]
    assert first[0].endswith("nothing is decided before round 3")
    assert looks[0].left > looks[1].left, "told as soon as it is there"
    assert "async is better" in looks[4].sentences[0]
    assert looks[4].sentences[0].endswith("measured no further")
    assert looks[4].left == 10, "five rounds of two stages"
    assert looks[-1].left == 0
    with RunFile.read(path) as run:
        facts = analyse(run)
    told = {stage.name: stage for stage in facts.stages}
    assert facts.trials_planned == facts.trials_finished
    assert (told["async"].rounds_planned, told["async"].rounds) == (3, (1, 2, 3))
    assert told["async"].to_first is not None
    assert (told["async"].to_first.verdict, told["async"].to_first.look) == ("better", 3)
    assert told["async"].to_first.p_adjusted is None
    assert facts.looks == (3, 4, 5, 6, 8)
    assert "not run" not in facts.answer.limits


@pytest.mark.parametrize("stop", ["decided", "rounds"])
def test_no_look_names_storage_compared_with_itself_or_waits_for_it(
    plan: Plan, made_up: tuple[RunInfo, TrialResult], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, stop: Stop,
) -> None:  # fmt: skip
    info, result = made_up
    first, _, other = plan.stages
    moved = replace(first, name="moved", folder="/srv/a")
    plan = replace(plan, protocol=replace(plan.protocol, stop=stop), stages=(first, moved, other),
                   trials=tuple(replace(one, stage="moved") if one.stage == "async" else one
                                for one in plan.trials))  # fmt: skip
    alone = replace(plan, stages=(first, other),
                    trials=tuple(one for one in plan.trials if one.stage != "moved"))  # fmt: skip
    there = FileSystem("ext4", "/dev/vda1")
    info = replace(info, host=HostManifest(file_system=there, folders={"/srv/a": there}))
    path, pair = tmp_path / "run.sqlite", tmp_path / "pair.sqlite"
    measure = measuring(result, FACTOR | {"moved": 1.8})

    events = carried_out(plan, info, path, monkeypatch, measure)
    carried_out(alone, info, pair, monkeypatch, measure)

    said = [line for one in events if isinstance(one, LookTaken) for line in one.sentences]
    assert said
    assert [line for line in said if line.startswith("moved")] == []
    rounds = measured(path)
    assert rounds[other.name] == measured(pair)[other.name], "it must exceed no more than alone"
    assert rounds["moved"] == ([1, 2, 3] if stop == "decided" else rounds[other.name])
    with RunFile.read(path) as run:
        _, itself, judged = analyse(run).stages
    with RunFile.read(pair) as run:
        _, same = analyse(run).stages
    assert itself.to_first is not None
    assert itself.to_first.verdict == "not judged"
    assert itself.to_first.reason.endswith("storage would be compared with itself")
    assert stop == "rounds" or judged.to_first == same.to_first


def test_a_plan_of_one_storage_ends_at_its_first_look(
    plan: Plan, made_up: tuple[RunInfo, TrialResult], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    info, result = made_up
    first = plan.stages[0]
    plan = replace(plan, stages=(first, replace(first, name="async", folder="/srv/a")),
                   trials=tuple(one for one in plan.trials if one.stage in FACTOR
                                and one.stage != "wal-compression"))  # fmt: skip
    there = FileSystem("ext4", "/dev/vda1")
    info = replace(info, host=HostManifest(file_system=there, folders={"/srv/a": there}))

    events = carried_out(
        plan, info, tmp_path / "run.sqlite", monkeypatch, measuring(result, FACTOR)
    )

    looks = [one for one in events if isinstance(one, LookTaken)]
    assert {stage: rounds[-1] for stage, rounds in measured(tmp_path / "run.sqlite").items()} == {
        "initdb": 3, "async": 3,
    }  # fmt: skip
    assert [one for look in looks for one in look.sentences] == []
    assert looks[-1].left == 0, "who watches is told that nothing comes after it"


def test_a_plan_without_looks_tells_its_first_ratios_too(
    plan: Plan, made_up: tuple[RunInfo, TrialResult], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    info, result = made_up
    fixed = replace(plan, protocol=replace(plan.protocol, stop="rounds"))

    events = carried_out(
        fixed, info, tmp_path / "run.sqlite", monkeypatch, measuring(result, FACTOR)
    )

    told = [one for one in events if isinstance(one, LookTaken)]
    in_rounds = [one.rounds for one in told for _ in one.sentences]
    assert in_rounds == [1, 1, 2, 2, 4, 4, 8], "others would repeat these, or the answer"
    for event in told:
        ended = {(one.round, one.stage) for one in fixed.trials[: len(fixed.trials) - event.left]}
        for line in event.sentences:
            pair = {(event.rounds, "initdb"), (event.rounds, line.split(" so far ×")[0])}
            assert pair <= ended, "a round is told of once it holds the pair"
    assert [one.left for one in told] == sorted((one.left for one in told), reverse=True)
    lines = [line for one in told for line in one.sentences]
    assert {line.split(" so far ×")[0] for line in lines} == {"async", "wal-compression"}
    assert all(line.endswith("of initdb; nothing is decided before the end") for line in lines)
    assert len(measured(tmp_path / "run.sqlite")["async"]) == fixed.protocol.rounds


def test_a_shortened_plan_calls_nothing_better_where_the_whole_one_would_go_on(
    made_up: tuple[RunInfo, TrialResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three rounds beyond chance by themselves are not beyond it at the first of five looks."""
    info, result = made_up
    short = resolve(read_plan(DECIDED, ["protocol.rounds=3"], quick=True), installed(18), HOST)
    alone = ["protocol.rounds=3", "protocol.stop=rounds"]
    usual = resolve(read_plan(DECIDED, alone, quick=True), installed(18), HOST)
    verdicts = {}
    for name, plan in (("short", short), ("usual", usual)):
        path = tmp_path / f"{name}.sqlite"
        carried_out(plan, info, path, monkeypatch, measuring(result, FACTOR | {"async": 1.21}))
        assert measured(path) == {stage: [1, 2, 3] for stage in FACTOR}
        with RunFile.read(path) as run:
            facts = analyse(run)
        found = next(one.to_first for one in facts.stages if one.name == "async")
        assert found is not None
        verdicts[name] = found.verdict
        assert facts.looks == ((3,) if name == "short" else ())
        assert ("shortened to 3 rounds of its plan" in render(facts)) == (name == "short")
    assert verdicts == {"short": "undecided", "usual": "better"}
    assert (short.protocol.rounds_max, usual.protocol.rounds_max) == (8, None)


def test_a_run_that_was_broken_off_goes_on_where_its_looks_left_it(
    plan: Plan, made_up: tuple[RunInfo, TrialResult], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    info, result = made_up
    path, usual = tmp_path / "run.sqlite", measuring(result, FACTOR)

    def broken_off(stage: Stage, how: Protocol, bed: TestBed, one: TrialRecord) -> TrialRecord:
        if one.round == 4:
            raise KeyboardInterrupt
        return usual(stage, how, bed, one)

    with pytest.raises(KeyboardInterrupt):
        carried_out(plan, info, path, monkeypatch, broken_off)
    with RunFile.append(path) as run:
        trials = run.trials()
        until = last_rounds(at_looks(plan, info.host, trials))
        assert until == {"async": 3}
        rest = rest_of(plan, trials, until=until)
        assert {(one.stage, one.round) for one in rest.todo if one.stage == "async"} == set()
        assert {one.round for one in rest.todo} == {4, 5, 6, 7, 8}
        monkeypatch.setattr(experiment, "measured", usual)
        experiment.carry_out(plan, cast("Target", Idle()), run, lambda _: None, rest.todo)
    whole = tmp_path / "whole.sqlite"
    carried_out(plan, info, whole, monkeypatch, usual)
    assert measured(path) == measured(whole), "broken off or not, the same is measured"


def test_nothing_is_left_of_a_run_that_was_decided(
    plan: Plan, made_up: tuple[RunInfo, TrialResult], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    info, result = made_up
    path = tmp_path / "run.sqlite"
    even = {"initdb": 1.0, "async": 1.8, "wal-compression": 1.6}
    carried_out(plan, info, path, monkeypatch, measuring(result, even))
    with RunFile.read(path) as run:
        trials = run.trials()
    until = last_rounds(at_looks(plan, info.host, trials))
    assert until == {"initdb": 3, "async": 3, "wal-compression": 3}
    rest = rest_of(plan, trials, until=until)
    assert (rest.todo, rest.notes) == ((), ())


def test_plans_of_earlier_formats_measure_all_their_rounds(plan: Plan) -> None:
    fixed = replace(plan, protocol=replace(plan.protocol, stop="rounds"))
    assert (fixed.protocol.rounds_max, fixed.protocol.looks) == (None, ())
    assert at_looks(fixed, HostManifest(), []) == ()
    old = {"rounds": 3, "warmup_s": 1.0, "window_s": 1.0, "drain_s": 1.0, "prewarm": True,
           "margin": 0.02, "confidence": 0.95, "lowest_rung": "D0"}  # fmt: skip
    assert from_plain(Protocol, old).stop == "rounds"


def test_quick_may_measure_a_fixed_number_of_rounds() -> None:
    quick = resolve(read_plan(DECIDED, quick=True), installed(18), HOST)
    assert (quick.protocol.stop, quick.protocol.rounds) == ("rounds", 2)


def test_a_run_of_all_rounds_is_replayed_as_one_that_stops_would_have_gone(
    plan: Plan, made_up: tuple[RunInfo, TrialResult], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """`benches/stopping.py`, whose figures stand in docs/numbers.md."""
    info, result = made_up
    usual = measuring(result, FACTOR)

    def by_the_clock(stage: Stage, how: Protocol, bed: TestBed, one: TrialRecord) -> TrialRecord:
        """A trial a second, in the order of the plan."""
        usual(stage, how, bed, one)
        ended = replace(bed.run.trial(one.number), ended_ns=info.started_ns + one.number * 10**9)
        bed.run.put_trial(ended)
        return ended

    fixed = replace(plan, protocol=replace(plan.protocol, stop="rounds"))
    carried_out(fixed, info, tmp_path / "all.sqlite", monkeypatch, by_the_clock)
    carried_out(plan, info, tmp_path / "stops.sqlite", monkeypatch, usual)
    monkeypatch.syspath_prepend(BENCHES)
    replayed = import_module("stopping").replay(tmp_path / "all.sqlite")

    with RunFile.read(tmp_path / "stops.sqlite") as run:
        stopped = {one.stage: one for one in at_looks(plan, info.host, run.trials())}
    assert {one.stage: (one.verdict, one.rounds) for one in replayed.decided} == {
        name: (one.verdict.value, one.look) for name, one in stopped.items()
    }
    assert {one.rounds for one in replayed.all_rounds} == {8}
    last = max(one.rounds for one in replayed.decided)
    assert (replayed.first_trial_s, replayed.all_s) == (1, len(plan.trials))
    assert replayed.first_ratio_s == min(
        max(one.number for one in plan.trials if one.round == 1 and one.stage in pair)
        for pair in ({"initdb", "async"}, {"initdb", "wal-compression"})
    )
    assert replayed.decided_s == max(one.number for one in plan.trials if one.round <= last)


def test_a_session_of_runs_overwrites_none_and_leaves_none_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(BENCHES)
    stopping = import_module("stopping")
    for name in ("1.sqlite", "3.sqlite", "10.sqlite", "notes.sqlite"):
        (tmp_path / name).touch()
    assert list(stopping.numbered(tmp_path)) == [1, 3, 10]

    (tmp_path / "11.unfinished").touch()
    wanted = Namespace(plan=Path("demo.toml"), runs=1, out=tmp_path)
    with pytest.raises(stopping.Failure, match=r"11\.unfinished is a run that was broken off"):
        stopping.compare(wanted)
