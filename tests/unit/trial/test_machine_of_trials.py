"""Stages that ask for settings of the machine, one made of files: what is measured without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgdyno.api import stage_machine
from pgdyno.api.experiments import drill, prove
from pgdyno.api.experiments import plan as module
from pgdyno.drills.disasters import named
from pgdyno.drills.load import Bench, Load
from pgdyno.host.change import apply, plan
from pgdyno.host.in_force import in_force
from pgdyno.host.journal import Journal
from pgdyno.host.knob_location import knob_location
from pgdyno.host.undo import restore
from pgdyno.model.drill import Cut, Disaster, DrillAsked, DrillDesign, Drilled, RecordedLoad
from pgdyno.model.errors import MachineError, TargetError
from pgdyno.model.fixture_shape import FixtureShape
from pgdyno.model.manifest import HostManifest, Installation
from pgdyno.model.plan import Plan, Stage
from pgdyno.model.proof import Proved, Sitting
from pgdyno.model.run import Fixture, RunInfo, TrialRecord, TrialResult, TrialState
from pgdyno.plan.resolve.plan import resolve
from pgdyno.plan.schema.read import read_plan_text
from pgdyno.store import RunFile
from pgdyno.trial import measure as of_trial
from pgdyno.trial.sampled import Sampled
from tests.data.drills import cut
from tests.data.miniature import write_miniature
from tests.data.proofs import proof, sitting
from tests.data.servers import HOST, installed

KNOB = "vm.swappiness"
PLAN = f"""
name = "machine"
question = "Does the machine matter?"
[workload]
kind = "tpcb"
scale = 1
[protocol]
rounds = 3
[[stage]]
name = "as-it-is"
why = "As it is."
[[stage]]
name = "asks"
why = "Asked."
host = {{ "{KNOB}" = 1 }}
"""


class Nobody:
    """A target that does nothing."""

    def stop(self) -> None:
        pass


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root/proc/sys/vm/swappiness"
    path.parent.mkdir(parents=True)
    path.write_text("60\n")
    return tmp_path / "root"


@pytest.fixture
def book(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.jsonl", "7f0c")


@pytest.fixture
def record(root: Path, book: Journal, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """The plan; its stages change that machine."""
    monkeypatch.setattr(stage_machine, "journals", lambda: (book,))
    monkeypatch.setattr(
        stage_machine, "in_force", lambda wishes, journals: in_force(wishes, journals, root)
    )
    return resolve(read_plan_text(PLAN, "machine.toml", Path.cwd()), installed(18), HOST)


@pytest.fixture
def good(tmp_path: Path) -> TrialResult:
    with RunFile.read(write_miniature(tmp_path / "other.sqlite")) as other:
        result = other.finished()[0].result
    assert result is not None
    return result


Meanwhile = Callable[[str], None]
CarriedOut = Callable[[Meanwhile], list[TrialRecord]]


@pytest.fixture
def carry_out(
    tmp_path: Path, record: Plan, good: TrialResult, monkeypatch: pytest.MonkeyPatch
) -> CarriedOut:
    """Carries out the plan; what is done meanwhile gets each trial's stage."""
    fixture = Fixture("f", FixtureShape(), 1, None, (), "copy", reused=False)
    fixtures = {stage.name: fixture for stage in record.stages}
    monkeypatch.setattr(module, "make_fixtures", lambda *_: fixtures)
    monkeypatch.setattr(of_trial, "judge", lambda *_: (TrialState.FINISHED, None))

    def carry_out(meanwhile: Meanwhile) -> list[TrialRecord]:
        def steps(stage: Stage, *_: object) -> tuple[TrialResult, Sampled, None, str]:
            meanwhile(stage.name)
            return good, Sampled(), None, "log"

        monkeypatch.setattr(of_trial, "steps", steps)
        planned = [
            TrialRecord(one.number, one.round, one.stage, one.ident, TrialState.PLANNED)
            for one in record.trials
        ]
        info = RunInfo("r", 1, "0", "pgdyno run", record, HostManifest(), Installation(), None)
        nobody: Any = Nobody()
        with RunFile.create(tmp_path / "run.sqlite", info, planned) as run:
            module.carry_out(record, nobody, run, lambda _: None)
        return stored(tmp_path)

    return carry_out


def stored(folder: Path) -> list[TrialRecord]:
    with RunFile.read(folder / "run.sqlite") as run:
        return run.trials()


def test_each_stage_has_the_machine_that_it_asks_for(carry_out: CarriedOut, root: Path) -> None:
    seen: list[tuple[str, str]] = []
    trials = carry_out(lambda stage: seen.append((stage, knob_location(KNOB, root).read())))
    assert {one.state for one in trials} == {TrialState.FINISHED}
    assert set(seen) == {("as-it-is", "60"), ("asks", "1")}


def test_a_setting_that_cannot_be_put_back_ends_the_run(
    carry_out: CarriedOut, root: Path, tmp_path: Path
) -> None:
    """What follows would be measured with it, and be taken for the machine as it is."""
    measured: list[str] = []

    def meanwhile(stage: str) -> None:
        measured.append(stage)
        if stage == "asks":
            knob_location(KNOB, root).write("30")

    with pytest.raises(MachineError, match=r"vm\.swappiness left: it is '30' now") as it:
        carry_out(meanwhile)

    trials = stored(tmp_path)
    assert measured.count("asks") == 1
    assert measured[-1] == "asks"
    before, last, after = trials[: len(measured) - 1], trials[len(measured) - 1], len(measured)
    assert {one.state for one in before} <= {TrialState.FINISHED}
    assert (last.state, last.reason, last.result) == (TrialState.RUNNING, it.value.fact, None)
    assert not last.counts_against_its_stage
    assert {one.state for one in trials[after:]} == {TrialState.PLANNED}


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_no_stage_is_measured_while_what_another_asks_for_stands(
    carry_out: CarriedOut, root: Path, book: Journal, when: str
) -> None:
    """As another run leaves it, or one that was killed."""
    measured: list[str] = []

    def change() -> None:
        apply(plan([(KNOB, "10")], root), book, root=root)

    def meanwhile(stage: str) -> None:
        measured.append(stage)
        if stage == "as-it-is" and measured.count(stage) == 1:
            change()

    if when == "before":
        change()
    trials = carry_out(meanwhile)

    ended = [one for one in trials if one.stage == "as-it-is"]
    assert {one.state for one in ended} == {TrialState.FAILED}
    told = f"pgdyno has changed {KNOB} on this machine, and not put it back"
    assert all(str(one.reason).startswith(told) for one in ended)
    assert measured.count("as-it-is") == (0 if when == "before" else 1)


def test_a_trial_whose_setting_is_taken_away_fails_and_the_others_are_measured(
    carry_out: CarriedOut, root: Path, book: Journal
) -> None:
    measured: list[str] = []

    def meanwhile(stage: str) -> None:
        measured.append(stage)
        if measured.count("asks") == 1 and stage == "asks":
            restore([book], root=root)

    trials = carry_out(meanwhile)

    (failed,) = (one for one in trials if one.state is not TrialState.FINISHED)
    assert (failed.stage, failed.round, failed.state) == ("asks", 1, TrialState.FAILED)
    assert str(failed.reason).startswith(f"not in force all the time: {KNOB} is '60', and was to")


def test_a_sitting_whose_setting_is_taken_away_is_not_kept(
    record: Plan, root: Path, book: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    ratios = {"nothing": 1.0, "cpu": 0.86}
    kept: list[Proved] = []

    def sit(*asked: Any) -> Sitting:
        *_, number, _seat = asked
        assert knob_location(KNOB, root).read() == "1"
        if number == 2:
            restore([book], root=root)
        return sitting(number, ratios)

    monkeypatch.setattr(prove, "sit", sit)
    monkeypatch.setattr(prove, "make_fixture", lambda *_: None)
    nobody: Any = Nobody()
    with pytest.raises(TargetError, match="not in force all the time"):
        prove.hold_sittings(replace(proof(record, ratios), sittings=()), nobody, keep=kept.append)

    assert [len(one.sittings) for one in kept] == [0, 1]


def test_a_cut_whose_setting_is_taken_away_is_not_kept(
    record: Plan, root: Path, book: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Drilled] = []
    nobody: Any = Nobody()

    @contextmanager
    def loaded(_plan: Plan, stage: Stage, _design: DrillDesign, bench: Bench) -> Iterator[Load]:
        told = RecordedLoad(stage.name, "18", 1, 1.0, 1)
        yield Load(stage, bench, told, nobody, 0, 0, "library", 0)

    def strike(load: Load, disaster: Disaster, number: int, _seed: int) -> Cut:
        assert knob_location(KNOB, root).read() == "1"
        if number == 2:
            restore([book], root=root)
        return cut(load.stage.name, disaster.name, number, "whole")

    monkeypatch.setattr(drill, "recorded_load", loaded)
    monkeypatch.setattr(drill, "planted", lambda _: [])
    monkeypatch.setattr(drill, "strike", strike)
    monkeypatch.setattr(drill, "make_fixture", lambda *_: None)
    design = DrillDesign(("crash",), cuts=3)
    asked = DrillAsked(record, ("asks",), named(design.disasters), design)
    with pytest.raises(TargetError, match="not in force all the time"):
        drill.make_cuts(Drilled(asked), nobody, keep=kept.append)

    assert [len(one.cuts) for one in kept] == [0, 0, 1]
    assert knob_location(KNOB, root).read() == "60"
