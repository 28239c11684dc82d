"""Stages that change settings of this machine: asked for, in force in their trials, put back."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import pgdyno
from pgdyno.analysis.diagnosis_facts import Gain, RuleAnswer
from pgdyno.api import proposing
from pgdyno.catalog import moves
from pgdyno.diagnosis.moves import Candidate
from pgdyno.host.in_force import in_force
from pgdyno.host.knob_location import knob_location
from pgdyno.model.errors import Interrupted, MachineError, PgdynoError, PlanError, TargetError
from pgdyno.model.progress import DriveProgress, Event, PhaseBegun, RunBegun, TrialEnded
from pgdyno.model.proposal import Prediction
from pgdyno.model.run import TrialState
from pgdyno.store.run_file import RunFile
from tests.children import started
from tests.cluster.test_host_huge import make_room
from tests.waiting import DEADLINE_S, until

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("machine")]
KNOB = "vm.dirty_writeback_centisecs"
# Servers of other tests take huge pages that are free, and files in the cache keep some from being.
TAKEN = ("could not map anonymous shared memory", "vm.nr_hugepages was set to")
PLAN = f"""
name = "machine"
question = "Does it matter how often the kernel writes back?"
[workload]
kind = "tpcb"
scale = 1
connections = 2
[protocol]
rounds = 2
warmup_s = 0.2
window_s = 1.0
[[stage]]
name = "as-it-is"
why = "The machine as it is."
[[stage]]
name = "seldom"
why = "The kernel writes back every six seconds."
host = {{ "{KNOB}" = 600 }}
"""
_DRIVES = """
import sys
import pgdyno
def tell(event):
    print(type(event).__name__, getattr(event, "phase", ""), flush=True)
plan = pgdyno.load_plan(sys.argv[1], set=["protocol.window_s=120"])
pgdyno.run(plan, host=True, out=sys.argv[2], on_event=tell)
"""


def now() -> str:
    return knob_location(KNOB).read()


@pytest.fixture
def before(home_env: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if not os.access(knob_location(KNOB).path, os.W_OK):
        pytest.skip("this user may not change the machine; test_without_the_right covers that")
    monkeypatch.setenv("PGDYNO_HOST_STATE", str(tmp_path / "state"))
    found = now()
    assert found != "600"
    yield found
    pgdyno.machine.restore()
    left = now()
    knob_location(KNOB).write(found)
    assert left == found


class Watched:
    """What the machine had while each stage was driven."""

    def __init__(self) -> None:
        self.seen: dict[str, set[str]] = {}
        self._stage = ""

    def __call__(self, event: Event) -> None:
        if isinstance(event, PhaseBegun) and event.trial:
            self._stage = event.trial.stage
        if isinstance(event, DriveProgress):  # of a window of a second none may be told
            self.seen.setdefault(self._stage, set()).add(now())


@pytest.mark.wide
def test_it_holds_in_the_trials_of_its_stage_alone_and_is_told(before: str, folder: Path) -> None:
    watched = Watched()
    plan = pgdyno.load_plan(tomllib.loads(PLAN))
    assert KNOB in str(plan.preview())

    run = pgdyno.run(plan, host=True, out=folder / "run.sqlite", on_event=watched)

    assert run.is_whole
    assert watched.seen == {"as-it-is": {before}, "seldom": {"600"}}
    assert now() == before
    assert f"| `{KNOB}` | `{before}` | `600` | `600` |" in run.report("md")
    assert f"{KNOB} = 600\n" in run.configuration("sysctl", stage="seldom")
    assert run.info.command.endswith("from Python --host")


def test_it_is_refused_until_it_is_allowed(before: str, folder: Path) -> None:
    path = folder / "machine.toml"
    path.write_text(PLAN)
    command = [sys.executable, "-m", "pgdyno", "run", str(path), "--out", str(folder / "no.sqlite")]

    refused = subprocess.run(command, capture_output=True, text=True, check=False)

    assert refused.returncode != 0
    assert f"stage seldom changes settings of this machine: {KNOB} = 600" in refused.stderr
    assert "--host" in refused.stderr
    shown = subprocess.run([*command, "--dry-run"], capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert "with --host, while its trials run:" in shown.stdout
    assert now() == before
    assert not (folder / "no.sqlite").exists()


def test_what_the_kernel_does_not_take_is_told_when_the_plan_is_read(before: str) -> None:
    document = tomllib.loads(PLAN)
    document["stage"][1]["host"] = {KNOB: "often"}
    with pytest.raises(PlanError, match=f"stage seldom: {KNOB} is 'often', expected a number"):
        pgdyno.load_plan(document)


@pytest.mark.wide
def test_ctrl_c_puts_it_back(before: str, folder: Path) -> None:
    def stop(event: Event) -> None:
        if isinstance(event, DriveProgress) and now() == "600":
            raise KeyboardInterrupt

    out = folder / "stopped.sqlite"
    with pytest.raises(Interrupted):
        pgdyno.run(pgdyno.load_plan(tomllib.loads(PLAN)), host=True, out=out, on_event=stop)
    assert now() == before

    watched = Watched()
    assert pgdyno.resume(out, on_event=watched).is_whole
    assert watched.seen["seldom"] == {"600"}
    assert now() == before


@pytest.mark.wide
def test_what_a_killed_run_left_is_put_back_before_it_goes_on(before: str, folder: Path) -> None:
    path, out = folder / "machine.toml", folder / "killed.sqlite"
    path.write_text(PLAN.replace('name = "as-it-is"', 'name = "as-it-is"\nskip = true'))
    killed = started([sys.executable, "-c", _DRIVES, str(path), str(out)], stdout=subprocess.PIPE,
                     text=True)  # fmt: skip
    assert killed.stdout is not None
    until(lambda: "DriveProgress window" in killed.stdout.readline(), "the load runs")
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert now() == "600"

    with pytest.raises(TargetError, match=f"pgdyno has changed {KNOB} on this machine"):
        pgdyno.resume(out)
    (undone,) = pgdyno.machine.restore()
    assert (undone.change.key, undone.fate) == (KNOB, "restored")
    assert now() == before


@pytest.mark.wide
def test_what_cannot_be_put_back_ends_the_run_which_goes_on_once_it_is(
    before: str, folder: Path
) -> None:
    """Somebody else changed it: the stages that follow are not measured with that."""
    out = folder / "left.sqlite"

    def change(event: Event) -> None:
        if isinstance(event, DriveProgress) and now() == "600":
            knob_location(KNOB).write("700")

    with pytest.raises(MachineError, match=f"{KNOB} left: it is '700' now") as it:
        pgdyno.run(pgdyno.load_plan(tomllib.loads(PLAN)), host=True, out=out, on_event=change)
    assert f"Continue with `pgdyno resume {out}`." in str(it.value.hint)
    with RunFile.read(out) as file:
        states = [one.state for one in file.trials() if one.stage == "seldom"]
    assert states == [TrialState.RUNNING, TrialState.PLANNED]

    with pytest.raises(TargetError, match=f"pgdyno has changed {KNOB} on this machine"):
        pgdyno.resume(out)
    (undone,) = pgdyno.machine.restore(overwrite=[KNOB])
    assert (undone.fate, now()) == ("restored", before)
    assert pgdyno.resume(out).is_whole
    assert now() == before


@pytest.mark.long
def test_a_trial_in_which_it_cannot_be_made_fails_and_says_why(
    before: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else changes the machine at that moment: the journal of this machine is held."""
    real, calls = in_force, []

    def busy(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == 2:  # the first is the rehearsal
            raise TargetError("another pgdyno is changing this machine")
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("pgdyno.api.stage_machine.in_force", busy)
    run = pgdyno.run(
        pgdyno.load_plan(tomllib.loads(PLAN)), host=True, out=folder / "run.sqlite"
    )  # fmt: skip
    with RunFile.read(run.path) as file:
        failed = [one for one in file.trials() if one.state is TrialState.FAILED]
    assert [one.stage for one in failed] == ["seldom"]
    assert failed[0].reason == "another pgdyno is changing this machine"
    assert now() == before


@pytest.mark.wide
def test_a_trial_whose_setting_is_taken_away_fails_and_the_others_are_measured(
    before: str, folder: Path
) -> None:
    """By `pgdyno host restore` in a second shell."""
    undone: list[object] = []

    def take(event: Event) -> None:
        if isinstance(event, DriveProgress) and not undone and now() == "600":
            undone.extend(pgdyno.machine.restore())

    plan = pgdyno.load_plan(tomllib.loads(PLAN))
    run = pgdyno.run(plan, host=True, out=folder / "taken.sqlite", on_event=take)

    with RunFile.read(run.path) as file:
        ended = [(one.stage, one.state, one.reason or "") for one in file.trials()]
    (failed,) = (one for one in ended if one[1] is not TrialState.FINISHED)
    assert failed[:2] == ("seldom", TrialState.FAILED)
    told = f"not in force all the time: {KNOB} is '{before}', and was to be '600'"
    assert failed[2].startswith(told)
    assert len(undone) == 1
    assert now() == before


@pytest.fixture(scope="module")
def measured(session_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one stage, to go on from."""
    document = tomllib.loads(PLAN)
    document["stage"] = document["stage"][:1]
    document["protocol"]["rounds"] = 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGDYNO_HOME", str(session_home))
        out = tmp_path_factory.mktemp("measured") / "run.sqlite"
        return pgdyno.run(pgdyno.load_plan(document), out=out).path


def with_room(event: Event) -> None:
    """Before each trial: what was cached in the one before keeps the kernel from huge pages."""
    if isinstance(event, RunBegun | TrialEnded):
        make_room()


def ended(plan: pgdyno.Plan, out: Path) -> tuple[set[str], list[str]]:
    """Stages that have a finished trial, and why others have not, trials or all of the run."""
    try:
        run = pgdyno.run(plan, host=True, out=out, on_event=with_room)
    except PgdynoError as error:  # it was rehearsed
        return set(), [error.fact]
    with RunFile.read(run.path) as file:
        trials = file.trials()
    finished = {one.stage for one in trials if one.state is TrialState.FINISHED}
    return finished, [one.reason for one in trials if one.reason is not None]


@pytest.mark.wide
@pytest.mark.parametrize(
    "move", [pytest.param("reserved-huge-pages", marks=pytest.mark.long), "swap-last"]
)
def test_a_move_of_the_machine_is_proposed_and_measured_where_it_is_allowed(
    measured: Path, before: str, folder: Path, monkeypatch: pytest.MonkeyPatch, move: str
) -> None:
    limit = RuleAnswer(1, "cpu", "CPUs", "finding", "CPUs are busy", gain=Gain(1.4, 1.5, 1.6))
    believed = Candidate(moves()[move], limit, Prediction(1.1, 1.0, 1.6, "cpu"))
    monkeypatch.setattr(proposing, "candidates", lambda _: (believed,))
    held = {name: knob_location(name).read() for name in moves()[move].host}

    (left_out,) = pgdyno.propose(measured).facts.not_tried
    assert left_out.why == "it changes settings of this machine, which was not allowed"
    found = pgdyno.propose(measured, host=True)
    (tried,) = found.facts.tries
    asked = {one.name: one.after for one in tried.changes if one.of_host}
    assert asked.keys() == held.keys()
    assert all(one.before == held[one.name] for one in tried.changes if one.of_host)

    plan = found.plan().replace({"protocol.stop": "rounds", "protocol.rounds": 3})
    with pytest.raises(PlanError, match=f"stage {move} changes settings of this machine"):
        pgdyno.run(plan, out=folder / "no.sqlite")
    until_s = time.monotonic() + DEADLINE_S
    for attempt in itertools.count():
        finished, failed = ended(plan, folder / f"next{attempt}.sqlite")
        assert {name: knob_location(name).read() for name in held} == held
        if move in finished:
            break
        assert move == "reserved-huge-pages", failed
        assert all(any(words in one for words in TAKEN) for one in failed), failed
        assert time.monotonic() < until_s, failed
    assert {one.name: one.value for one in plan.stages[1].host} == asked
    assert {name: knob_location(name).read() for name in held} == held
