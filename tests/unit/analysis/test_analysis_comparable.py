"""What differs between trials besides their stage is found, and explained only where known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

from pgdyno.analysis.comparable import differences, shared
from pgdyno.model.build import Recipe
from pgdyno.model.run import Effective, TrialRecord, TrialResult, TrialState
from tests.data.builds import a_build
from tests.data.miniature import CHARACTERS, a_plan, a_result
from tests.data.servers_result import NAMES, over_two

PLAN = a_plan(CHARACTERS[:2], rounds=2)


def trials(change: Callable[[TrialRecord, TrialResult], TrialResult]) -> list[TrialRecord]:
    stages = {character.stage.name: character for character in CHARACTERS}
    records = []
    for trial in PLAN.trials:
        record = TrialRecord(
            trial.number, trial.round, trial.stage, trial.ident, TrialState.FINISHED
        )
        result = a_result(stages[trial.stage])
        records.append(replace(record, result=change(record, result)))
    return records


def whats(records: list[TrialRecord]) -> dict[str, str | None]:
    return {one.what: one.explanation for one in differences(PLAN, records)}


def with_setting(result: TrialResult, value: str, name: str = "work_mem") -> TrialResult:
    return replace(result, settings=(*result.settings, Effective(name, value, "initdb", "")))


def test_only_what_the_server_derives_differs_in_a_clean_run() -> None:
    found = whats(trials(lambda _, result: result))
    assert found == {"setting wal_buffers": "the server derives it from shared_buffers"}


def test_a_setting_that_no_stage_sets_is_unexplained() -> None:
    found = whats(trials(lambda t, result: with_setting(result, "4MB" if t.number == 3 else "8MB")))
    assert found["setting work_mem"] is None


def test_a_setting_of_a_stage_must_be_the_same_in_its_rounds() -> None:
    def change(trial: TrialRecord, result: TrialResult) -> TrialResult:
        if trial.stage != "tuned" or trial.round == 1:
            return result
        others = tuple(line for line in result.settings if line.name != "shared_buffers")
        return replace(result, settings=(*others, Effective("shared_buffers", "1GB", "plan", "")))

    assert whats(trials(change))["setting shared_buffers"] is None


def test_windows_threads_and_pauses() -> None:
    def change(trial: TrialRecord, result: TrialResult) -> TrialResult:
        if trial.number != 2:
            return result
        return replace(result, window_s=12.0, client=replace(result.client, threads=1))

    records = trials(change)
    hour_ns = 3_600_000_000_000
    records[0] = replace(records[0], started_ns=0, ended_ns=1)
    records[1] = replace(records[1], started_ns=hour_ns, ended_ns=hour_ns + 1)
    found = whats(records)
    assert found["driver threads"] is None
    assert found["length of the window, planned 30 s"] is None
    assert found["pause"] is None, "it parts what the round compares"


def test_a_pause_between_rounds_as_of_a_resumed_run_is_explained() -> None:
    records = trials(lambda _, result: result)
    hour_ns = 3_600_000_000_000
    last, first = next(
        at for at in pairwise(range(len(records))) if records[at[0]].round != records[at[1]].round
    )
    records[last] = replace(records[last], started_ns=0, ended_ns=1)
    records[first] = replace(records[first], started_ns=hour_ns, ended_ns=hour_ns + 1)
    found = whats(records)
    assert found["pause"] == "it lies between two rounds, and stages are compared within each"


def test_places_must_be_balanced() -> None:
    first_only = [
        replace(record, state=TrialState.FINISHED) for record in trials(lambda _, result: result)
    ]
    assert "place in the round" not in whats(first_only)
    plan = a_plan(CHARACTERS[:2], rounds=4, balanced=False)
    records = [
        TrialRecord(t.number, t.round, t.stage, t.ident, TrialState.FINISHED) for t in plan.trials
    ]
    (found,) = [one for one in differences(plan, records) if one.what == "place in the round"]
    assert found.values == ("initdb: 4 times place 1", "tuned: 4 times place 2")


def test_what_the_plan_lets_clients_do_is_explained() -> None:
    first, second = PLAN.stages
    other = replace(second, workload=replace(second.workload, connections=2, face="pipeline"))
    plan = replace(PLAN, stages=(first, other))

    def change(trial: TrialRecord, result: TrialResult) -> TrialResult:
        threads = 1 if trial.stage == other.name else result.client.threads
        return replace(result, client=replace(result.client, threads=threads))

    records = trials(change)
    found = {one.what: one.explanation for one in differences(plan, records)}
    assert found["driver threads"] == "the plan gives these stages other clients"
    assert whats(records)["driver threads"] is None  # nothing in that plan explains it
    same = shared(plan, records)
    assert "face" not in same
    assert "connections" not in same
    assert same["isolation"] == "read committed"


def test_what_other_builds_bring_with_them_is_shown_and_explained() -> None:
    first, second = PLAN.stages
    build = a_build("abcd", "fast", Recipe("clang"))
    plan = replace(PLAN, stages=(first, replace(second, build=build)))

    def change(trial: TrialRecord, result: TrialResult) -> TrialResult:
        ours = trial.stage == second.name
        told = replace(result, server="15, by clang" if ours else "15, by gcc")
        return with_setting(told, "on" if ours else "off", "data_checksums")

    records = trials(change)
    found = {one.what: one for one in differences(plan, records)}

    assert found["build"].values == (
        "the target's own installation in trials 1 and 4",
        "build fast: PostgreSQL 15.18, clang -O2 (clang 12) in trials 2 and 3",
    )
    for what in ("build", "what the server calls itself", "setting data_checksums"):
        assert found[what].explanation == "the plan gives these stages other builds"
        assert whats(records).get(what) is None  # nothing in that plan explains it
    records[1] = replace(records[1], result=a_result())  # of an earlier pgdyno, which did not ask
    assert len({one.what: one for one in differences(plan, records)}[
        "what the server calls itself"].values) == 2  # fmt: skip
    records[2] = replace(records[2], result=change(records[0], a_result()))
    explained = {one.what: one.explanation for one in differences(plan, records)}
    assert explained["setting data_checksums"] is None, "one stage, and yet two values"


def test_what_changes_on_another_server_is_found() -> None:
    first, second = over_two().servers

    def found(of: Callable[[TrialRecord], dict[str, object]]) -> dict[str, str | None]:
        def change(trial: TrialRecord, result: TrialResult) -> TrialResult:
            changed: Any = of(trial)
            return replace(result, servers=(first, replace(second, **changed)))

        return whats(trials(change))

    upgraded = found(lambda t: {"server": "PostgreSQL 18.7" if t.number == 3 else "PostgreSQL 18"})
    assert upgraded[f"{NAMES[1]}: what the server calls itself"] is None
    altered = found(lambda t: {"configured": {"work_mem": "1MB" if t.number == 3 else "4MB"}})
    assert altered[f"setting {NAMES[1]}: work_mem"] is None
    # What a stage sets is not what its server had: then it is not told of that one.
    planned = found(lambda t: {"configured": {} if t.stage == "tuned" else second.configured})
    assert planned.keys() == {"setting wal_buffers"}
