"""Others that had the CPUs of the host in windows are told with the number; ourselves are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.analysis.host_use import busy_doubts, others_share
from pgdyno.analysis.judged import plan_in
from pgdyno.analysis.run import analyse
from pgdyno.analysis.vacuum import off_doubts
from pgdyno.model.cpu_states import CPU_STATES
from pgdyno.model.fleet import FleetResult
from pgdyno.model.run import TrialRecord, TrialResult, TrialState
from pgdyno.store import RunFile
from tests.data.miniature import a_result, write_miniature

CPUS = 10


def used(others: float, stolen: float = 0.0, **ours: float) -> TrialResult:
    """A window in which server and driver had 2 of 10 CPUs, and others these shares of all."""
    result = a_result()
    total_s = CPUS * result.window_s
    states = dict.fromkeys((f"cpu.{name}_s" for name in CPU_STATES), 0.0)
    states["cpu.steal_s"] = stolen * total_s
    states["cpu.user_s"] = (0.2 + others + sum(ours.values())) * total_s
    states["cpu.idle_s"] = total_s - states["cpu.user_s"] - states["cpu.steal_s"]
    deltas = states | {"server.cpu_s": 0.15 * total_s}
    deltas |= {f"{name}.cpu_s": share * total_s for name, share in ours.items()}
    client = replace(result.client, user_s=0.04 * total_s, system_s=0.01 * total_s)
    return replace(result, deltas=deltas, client=client, fleet=None)


def trial(number: int, stage: str, result: TrialResult) -> TrialRecord:
    return TrialRecord(number, number, stage, "x", TrialState.FINISHED, result=result)


def test_what_is_ours_is_not_others_and_what_is_stolen_is() -> None:
    assert others_share(used(0.3)) == pytest.approx(0.3)
    assert others_share(used(0.1, 0.2)) == pytest.approx(0.3)
    assert others_share(used(0.1, pgdyno=0.1, live=0.05, pooler=0.1)) == pytest.approx(0.1)


def test_what_was_not_looked_at_is_not_known() -> None:
    result = used(0.5)
    unseen = {name: by for name, by in result.deltas.items() if name != "server.cpu_s"}
    assert others_share(replace(result, deltas=unseen)) is None
    assert others_share(replace(result, client=replace(result.client, user_s=None))) is None
    assert others_share(replace(result, fleet=FleetResult(()))) is None


def test_a_server_that_never_vacuums_counts_against_its_stages(tmp_path: Path) -> None:
    with RunFile.read(write_miniature(tmp_path / "run.sqlite")) as run:
        plan = plan_in(run.info())
    first, second, *_ = (one.name for one in plan.stages)
    result = a_result()
    off = replace(result.settings[0], name="autovacuum", value="off")
    trials = [trial(1, first, result), trial(2, second, replace(result, settings=(off,)))]
    assert list(off_doubts(plan, trials[:1])) == []
    (doubt,) = off_doubts(plan, trials)
    assert doubt.grave
    assert doubt.stages == (second,)
    assert doubt.text.startswith("autovacuum is off")


def test_much_that_others_had_is_told_with_the_worst_window_and_how_many(tmp_path: Path) -> None:
    with RunFile.read(write_miniature(tmp_path / "run.sqlite")) as run:
        plan = plan_in(run.info())
    first, second, *_ = (one.name for one in plan.stages)
    quiet = [trial(1, first, used(0.2)), trial(2, second, used(0.25))]
    assert list(busy_doubts(plan, quiet, server_on_host=True)) == []
    trials = [*quiet, trial(3, second, used(0.43)), trial(4, second, used(0.1, 0.2))]
    (doubt,) = busy_doubts(plan, trials, server_on_host=True)
    assert doubt.grave
    assert doubt.stages == (second,)
    assert doubt.text == (
        "other programs, or other machines on the same hardware, had up to 43% of the host's CPU"
        " time during windows, more than 25% in 2 of 4 windows"
    )
    assert doubt.plain.startswith(
        "other programs, or other machines on the same hardware, had up to 43% of the machine's"
        " processors"
    )
    assert list(busy_doubts(plan, trials, server_on_host=False)) == []
    guarded = replace(plan, stages=tuple(replace(one, standby=True) for one in plan.stages))
    assert list(busy_doubts(guarded, trials, server_on_host=True)) == []


def test_a_report_is_limited_by_it(tmp_path: Path) -> None:
    path = write_miniature(tmp_path / "run.sqlite", invalid=())
    with RunFile.append(path) as run:
        for one in run.trials():
            if one.result is not None:
                seen = used(0.5)
                took = replace(one.result, deltas=one.result.deltas | seen.deltas)
                client = replace(took.client, user_s=seen.client.user_s, system_s=0.0)
                run.put_trial(replace(one, result=replace(took, client=client)))
    with RunFile.read(path) as run:
        facts = analyse(run)
    assert (
        "other programs, or other machines on the same hardware, had up to 5" in facts.answer.limits
    )
    assert facts.answer.confidence == "low"
