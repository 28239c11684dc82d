"""What the core makes of plans, and which trials are valid: the load must be the plan's."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock

import pytest

from pgdyno.api.experiments import plan as of_plan
from pgdyno.api.experiments.plan import _require_same_configuration, carry_out
from pgdyno.api.runs import Run
from pgdyno.model.errors import (
    DriveError,
    HostLostError,
    LostError,
    PlanError,
    StoppedError,
    TargetError,
)
from pgdyno.model.fixture_shape import FixtureShape
from pgdyno.model.manifest import Installation
from pgdyno.model.progress import Event, Noted, RunBegun
from pgdyno.model.run import (
    Condition,
    Effective,
    Failures,
    Fixture,
    Recovery,
    TrialRecord,
    TrialResult,
    TrialState,
)
from pgdyno.model.settings import ServerFacts
from pgdyno.plan import read_plan
from pgdyno.plan.resolve.plan import resolve
from pgdyno.plan.schema.read import read_plan_text
from pgdyno.sample.server_log import LogSummary, read_log
from pgdyno.store import RunFile
from pgdyno.target.interface import Target
from pgdyno.trial.description import describe_stages, differences
from pgdyno.trial.validity import is_fault_of_hosts, judge
from tests.data.builds import builds_of
from tests.data.hosts import DRIVEN
from tests.data.miniature import write_miniature
from tests.data.servers import HOST, installed, running
from tests.data.servers_result import NAMES, over_two

ROOT = Path(__file__).parents[3]
PLANS = sorted([*(ROOT / "plans").glob("*.toml"),
                *(ROOT / "tests" / "data" / "plans" / "good").glob("*.toml")])  # fmt: skip


@pytest.fixture
def result(tmp_path: Path) -> TrialResult:
    """A good trial's result, from a made-up run file."""
    write_miniature(tmp_path / "run.sqlite")
    with RunFile.read(tmp_path / "run.sqlite") as run:
        found = run.finished()[0].result
    assert found is not None
    return replace(found, errors=(), reconnects=0)


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_the_core_can_drive_every_stage_of_every_plan(path: Path) -> None:
    draft = read_plan(path)
    plan = resolve(draft, installed(18), HOST, builds=builds_of(draft, installed(18)))

    described = describe_stages(plan)

    assert list(described) == [stage.name for stage in plan.stages]
    for stage in plan.stages:
        told = described[stage.name]
        assert told.spec["kind"] == told.name == stage.workload.kind
        assert told.spec["face"] == stage.workload.face
    base = described[plan.stages[0].name]
    assert differences(plan, base, described).keys() == described.keys()
    assert differences(plan, base, described)[plan.stages[0].name].deviations is None


def test_what_the_core_refuses_names_plan_and_stage(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        'name = "bad"\nquestion = "?"\n[workload]\nrules = "benchmarksql-5"\n'
        '[[stage]]\nname = "one"\nwhy = "."\n'
    )
    plan = resolve(read_plan(path), installed(18), HOST)

    with pytest.raises(PlanError, match="stage one: rules is benchmarksql-5, but schema") as caught:
        describe_stages(plan)
    assert caught.value.fact.startswith(str(path))
    assert str(caught.value.hint).endswith("Nothing was touched.")


def logged(level: str, *texts: str) -> LogSummary:
    return read_log(f"2026-11-21 22:10:32.000 UTC [41] {level}:  {text}" for text in texts)


def test_a_good_trial_is_finished(result: TrialResult) -> None:
    assert judge(result, logged("LOG", "ready")) == (TrialState.FINISHED, None)


def test_requests_without_an_answer_are_told_and_a_silent_server_makes_it_invalid(
    result: TrialResult,
) -> None:
    def judged(**of_kind: int) -> tuple[TrialState, str | None]:
        first, *others = result.kinds
        window = replace(first.window, **of_kind)
        kinds = (replace(first, window=window), *others)
        return judge(replace(result, kinds=kinds, given_up_s=10.0), None)

    waiting = {"due": 40, "unfinished": 40, "drained": 0, "unanswered": 40}
    assert judged(**waiting) == (TrialState.FINISHED, None)
    state, reason = judged(**waiting, stuck=8)
    assert state is TrialState.INVALID
    assert reason is not None
    assert reason.startswith("8 requests sent in the window had no answer 10.0 s after its end")


def test_inconsistent_data_make_it_invalid(result: TrialResult) -> None:
    broken = Condition(4, "sum(O_OL_CNT) = lines", 2, "(1, 1, 30, 29)", 0.1)

    state, reason = judge(replace(result, conditions=(broken,)), None)

    assert state is TrialState.INVALID
    assert reason is not None
    assert "condition 4" in reason
    assert "(1, 1, 30, 29)" in reason


def test_failed_transactions_make_it_invalid(result: TrialResult) -> None:
    kind = result.kinds[0]
    failed = replace(kind, run=replace(kind.run, due=kind.run.due + 3, failed=3))
    errors = (Failures("23505", 3, "duplicate key"),)

    state, reason = judge(replace(result, kinds=(failed,), errors=errors), None)

    assert state is TrialState.INVALID
    assert reason == "3 transactions failed: 23505: duplicate key"
    some = replace(result, kinds=(failed,), errors=(Failures("23505", 2, "duplicate key"),))
    assert judge(some, None)[1] == "3 transactions failed, 2 of them with 23505: duplicate key"


def test_lost_connections_make_it_invalid(result: TrialResult) -> None:
    state, reason = judge(replace(result, reconnects=2), None)

    assert (state, reason) == (TrialState.INVALID, "2 connections were lost")


def test_a_lost_host_makes_it_invalid_by_name(result: TrialResult) -> None:
    lost = replace(DRIVEN, lost=("host ssh://b was lost: it said nothing for 5 s",))

    assert judge(replace(result, fleet=DRIVEN), None) == (TrialState.FINISHED, None)
    assert judge(replace(result, fleet=lost), None) == (TrialState.INVALID, lost.lost[0])


def test_a_lost_host_explains_the_sessions_that_end_with_it_and_nothing_else(
    result: TrialResult,
) -> None:
    lost = replace(DRIVEN, lost=("host ssh://b was lost: it said nothing for 5 s",))
    without = replace(result, fleet=lost)
    log = logged("FATAL", "connection to client lost")

    state, reason = judge(without, log)
    assert (state, reason) == (TrialState.INVALID, lost.lost[0])
    assert is_fault_of_hosts(state, reason, without)
    assert judge(result, log)[0] is TrialState.INVALID
    broken = Condition(4, "sum(O_OL_CNT) = lines", 2, "(1, 1, 30, 29)", 0.1)
    worse = replace(without, conditions=(broken,))
    assert not is_fault_of_hosts(*judge(worse, log), worse)


def test_what_waits_for_locks_of_a_lost_host_is_no_fault_of_the_server(
    result: TrialResult,
) -> None:
    lost = replace(DRIVEN, lost=("host ssh://b was lost: it said nothing for 5 s",))
    first, *others = result.kinds
    window = replace(first.window, due=first.window.due + 3, unfinished=3, drained=0,
                     unanswered=3, stuck=3)  # fmt: skip
    waited = replace(result, kinds=(replace(first, window=window), *others), given_up_s=10.0)
    log = logged("ERROR", "canceling statement due to user request")

    found = judge(without := replace(waited, fleet=lost), log)

    assert found == (TrialState.INVALID, lost.lost[0])
    assert is_fault_of_hosts(*found, without)
    assert "3 requests sent in the window" in str(judge(waited, None)[1])
    assert "canceling statement" in str(judge(result, log)[1])
    # Where the load went on without it, what the others waited for is in the numbers.
    went_on = replace(waited, fleet=replace(lost, went_on=True))
    assert "3 requests sent in the window" in str(judge(went_on, log)[1])


def test_a_plan_that_goes_on_without_a_host_has_degraded_trials(result: TrialResult) -> None:
    lost = replace(DRIVEN, lost=("host ssh://b was lost: it said nothing for 5 s",), went_on=True)
    without = replace(result, fleet=lost)

    state, reason = judge(without, None)

    assert (state, reason) == (TrialState.DEGRADED, lost.lost[0])
    assert not is_fault_of_hosts(state, reason, without)
    assert judge(replace(result, fleet=replace(DRIVEN, went_on=True)), None)[0] is (
        TrialState.FINISHED
    )
    nothing = tuple(replace(one, window=replace(one.window, succeeded=0)) for one in result.kinds)
    assert judge(replace(without, kinds=nothing), None) == (
        TrialState.INVALID, "no transaction succeeded in the window",
    )  # fmt: skip


def test_a_window_without_a_commit_is_invalid(result: TrialResult) -> None:
    nothing = tuple(
        replace(kind, window=replace(kind.window, succeeded=0)) for kind in result.kinds
    )

    state, reason = judge(replace(result, kinds=nothing), None)

    assert (state, reason) == (TrialState.INVALID, "no transaction succeeded in the window")


def test_errors_in_the_servers_log_make_it_invalid(result: TrialResult) -> None:
    log = logged("ERROR", "could not extend file", "could not extend file")

    state, reason = judge(result, log)

    assert state is TrialState.INVALID
    assert reason == "the server reported 2 errors, first ERROR: could not extend file"


@pytest.mark.parametrize(
    ("level", "text"),
    [
        ("FATAL", "the database system is starting up"),
        ("FATAL", "the database system is not yet accepting connections"),
        ("ERROR", "deadlock detected"),
        ("ERROR", "could not serialize access due to concurrent update"),
    ],
)
def test_what_is_expected_or_retried_is_no_reason(
    result: TrialResult, level: str, text: str
) -> None:
    assert judge(result, logged(level, text)) == (TrialState.FINISHED, None)


def test_who_is_turned_away_while_the_server_is_killed_is_no_reason(result: TrialResult) -> None:
    log = logged("FATAL", "the database system is shutting down")  # told to a standby, or its guard

    assert judge(result, log)[0] is TrialState.INVALID
    killed = replace(result, recovery=Recovery(2.0, 1.5, 1_000_000))
    assert judge(killed, log) == (TrialState.FINISHED, None)
    assert judge(killed, logged("ERROR", "could not extend file"))[0] is TrialState.INVALID


def test_a_driver_that_gave_up_makes_it_invalid(result: TrialResult) -> None:
    errors = (Failures("gave_up", 1, "no connection"),)

    state, reason = judge(replace(result, errors=errors), None)

    assert (state, reason) == (
        TrialState.INVALID, "the driver did not reach the end of the window",
    )  # fmt: skip


def survived(result: TrialResult, failed: int) -> TrialResult:
    kind = result.kinds[0]
    more = replace(kind, run=replace(kind.run, due=kind.run.due + failed, failed=failed))
    errors = (
        Failures("57P01", 2, "terminating connection"),
        Failures("connection lost", 1, "the server closed it"),
    )
    return replace(result, kinds=(more, *result.kinds[1:]), errors=errors, reconnects=8)


def test_a_drill_survives_lost_connections(result: TrialResult) -> None:
    log = logged("FATAL", "terminating connection due to administrator command")

    assert judge(survived(result, 3), log, survive=True) == (TrialState.FINISHED, None)
    assert judge(survived(result, 3), log)[0] is TrialState.INVALID


def test_a_drill_does_not_survive_other_failures(result: TrialResult) -> None:
    state, reason = judge(survived(result, 4), None, survive=True)

    assert state is TrialState.INVALID
    assert "4 transactions failed" in str(reason)


def test_a_result_without_new_orders_is_compared_by_tps(result: TrialResult) -> None:
    committed = sum(kind.window.succeeded for kind in result.kinds)
    other = replace(result, nopm=None)

    assert (result.headline, result.throughput) == ("NOPM", result.nopm)
    assert (other.headline, other.throughput) == ("tps", committed / result.window_s)


class Failing:
    """A target whose trials fail one after the other, each in its own way."""

    def __init__(
        self, of_trials: Sequence[Exception], at_stops: Sequence[Exception | None]
    ) -> None:
        self._of_trials, self._at_stops = iter(of_trials), iter(at_stops)

    @property
    def each(self) -> tuple[Failing]:
        return (self,)

    def facts_of(self, build: str | None) -> ServerFacts:
        return installed(18)

    def find_fixture(self, ident: str) -> Fixture:
        return Fixture(ident, FixtureShape(), 1, None, (), "copy", reused=True)

    def restore(self, *_: object) -> None:
        raise next(self._of_trials)

    def stop(self) -> None:
        if error := next(self._at_stops):
            raise error


def conducted(
    tmp_path: Path, target: Failing, said: list[Event] | None = None
) -> list[TrialRecord]:
    """Trials of a plan after the target was conducted, and those measured again; what was said."""
    said = [] if said is None else said
    plan = resolve(read_plan(ROOT / "plans" / "tuning.toml", quick=True), installed(18), HOST)
    write_miniature(tmp_path / "other.sqlite")
    with RunFile.read(tmp_path / "other.sqlite") as other:
        info = other.info()
    planned = [
        TrialRecord(one.number, one.round, one.stage, one.ident, TrialState.PLANNED)
        for one in plan.trials
    ]
    with RunFile.create(tmp_path / "plan.sqlite", info, planned) as run:
        with suppress(LostError):
            carry_out(plan, cast("Target", target), run, said.append, plan.trials[:3])
        return [*run.trials()[:3], *run.replaced()]


def test_a_failed_stop_does_not_hide_why_the_trial_failed(tmp_path: Path) -> None:
    trials = [TargetError(f"no room for {number}") for number in (1, 2, 3)]
    stops = [TargetError("did not stop"), None, OSError("a folder stays")]

    records = conducted(tmp_path, Failing([*trials], stops))

    assert [record.state for record in records] == [TrialState.FAILED] * 3
    assert [record.reason for record in records] == [f"no room for {n}" for n in (1, 2, 3)]


def test_a_plan_whose_target_is_lost_ends_at_once(tmp_path: Path) -> None:
    trials = [TargetError("no room"), DriveError("no connection")]

    records = conducted(tmp_path, Failing([*trials], [None, LostError("the session is gone")]))

    assert [record.state for record in records] == [
        TrialState.FAILED, TrialState.FAILED, TrialState.PLANNED,
    ]  # fmt: skip
    assert [record.reason for record in records[:2]] == ["no room", "the session is gone"]


def test_a_trial_whose_server_was_stopped_is_broken_off_and_did_not_fail(tmp_path: Path) -> None:
    trials = [TargetError("no room"), DriveError("no connection")]

    records = conducted(tmp_path, Failing([*trials], [None, StoppedError("it was stopped")]))

    assert [record.state for record in records] == [
        TrialState.FAILED, TrialState.RUNNING, TrialState.PLANNED,
    ]  # fmt: skip
    assert records[1].reason == "it was stopped"


def test_a_trial_that_lost_a_host_is_measured_once_more_in_its_place(tmp_path: Path) -> None:
    """Once: what is lost again stays as it is. No other failure is repeated by itself."""
    lost = HostLostError("host ssh://b was lost before the window: it said nothing for 5 s")
    said: list[Event] = []
    trials = [lost, TargetError("no room"), lost, lost, DriveError("no connection")]

    records = conducted(tmp_path, Failing(trials, [None] * 5), said)

    assert [(one.number, one.attempt, one.host_lost) for one in records[:3]] == [
        (1, 2, False), (2, 2, True), (3, 1, False),
    ]  # fmt: skip
    assert [record.reason for record in records[:3]] == ["no room", lost.fact, "no connection"]
    assert [(one.replaced_by, one.reason) for one in records[3:]] == [
        (1, lost.fact), (2, lost.fact),
    ]  # fmt: skip
    assert [one.counts_against_its_stage for one in records] == [True, False, True, False, False]
    noted = [event.text for event in said if isinstance(event, Noted)]
    assert len(noted) == 2
    assert noted[0].startswith(f"Trial 1 lost a host of its load ({lost.fact})")


@pytest.mark.parametrize(
    ("version", "buffers", "text"),
    [
        ("PostgreSQL 18.6", "128MB", "it may go on"),
        ("PostgreSQL 18.7", "128MB", f"server: {NAMES[1]} was PostgreSQL 18.6, is PostgreSQL 18.7"),
        ("PostgreSQL 18.6", "1GB", f"setting: {NAMES[1]}: shared_buffers was 128MB, is 1GB"),
    ],
)
def test_a_run_goes_on_only_where_all_of_its_servers_are_as_they_were(
    version: str, buffers: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_miniature(tmp_path / "run.sqlite", invalid=(), planned=(9,))
    servers = tuple(replace(one, server="PostgreSQL 18.6") for one in over_two().servers)
    with RunFile.append(path) as file:
        info = file.info()
        assert info.plan is not None
        target = replace(info.plan.target, kind="running", servers=("host=a", "host=b"))
        file.put_found("info", replace(info, plan=replace(info.plan, target=target)))
        for trial in file.finished():
            assert trial.result is not None
            file.put_trial(replace(trial, result=replace(trial.result, servers=servers)))
    each = [SimpleNamespace(build=Installation(compiler=one))
            for one in ("PostgreSQL 18.6", version)]  # fmt: skip
    of_both = {f"{NAMES[1]}: shared_buffers": buffers}
    there = SimpleNamespace(
        build=info.build, each=each, close=lambda: None, configuration=lambda: of_both
    )

    def ready(*_: object) -> None:
        raise PlanError("it may go on")

    monkeypatch.setattr(of_plan, "opened_again", lambda *_: there)
    monkeypatch.setattr(of_plan, "own_version", lambda: info.pgdyno)
    monkeypatch.setattr(of_plan, "_manifest", lambda _: info.host)
    monkeypatch.setattr(of_plan, "_require_ready", ready)

    with pytest.raises(PlanError, match=text):
        of_plan.resume(Run(path), False, lambda _: None)


def test_a_run_of_which_nothing_is_left_leaves_its_server_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had been locked, by a database made and dropped there; and it had to be running."""
    path = write_miniature(tmp_path / "run.sqlite", invalid=())
    with RunFile.read(path) as file:
        info = file.info()
    opened = Mock()
    monkeypatch.setattr(of_plan, "opened_again", opened)
    monkeypatch.setattr(of_plan, "own_version", lambda: info.pgdyno)
    monkeypatch.setattr(of_plan, "_manifest", lambda _: info.host)
    said: list[Event] = []

    of_plan.resume(Run(path), False, said.append, page=False)

    (begun,) = said
    assert isinstance(begun, RunBegun)
    assert begun.todo == 0
    opened.assert_not_called()


RUNNING = """
name = "replica"
question = "?"

[target]
kind = "running"
conninfo = "host=here"
replica = "host=there"

[[stage]]
name = "roomy"
why = "."
settings = { work_mem = "8MB" }
client = { replica_connections = 2 }
"""


def test_a_run_goes_on_with_a_replica_that_is_set_as_it_was(result: TrialResult) -> None:
    draft = read_plan_text(RUNNING, "replica.toml", Path.cwd(), ())
    plan = resolve(draft, running(18), HOST)
    there = {"jit": "on", "replica: jit": "on", "replica: work_mem": "4MB"}
    settings = [Effective(name, value, "server", "default") for name, value in there.items()]
    settings.append(Effective("work_mem", "8MB", "plan", "replica.toml"))
    begun = TrialRecord(1, 1, "roomy", "", TrialState.FINISHED,
                        result=replace(result, settings=tuple(settings)))  # fmt: skip

    def go_on(now: dict[str, str]) -> None:
        target = Mock(configuration=lambda: there | {"work_mem": "4MB"} | now, each=())
        _require_same_configuration(plan, [begun], target)

    go_on({})
    with pytest.raises(PlanError, match="setting: replica: jit was on, is off"):
        go_on({"replica: jit": "off"})
    default = "log_statement was at its default, or hidden from the role, is ddl"
    with pytest.raises(PlanError, match=default):
        go_on({"log_statement": "ddl"})
