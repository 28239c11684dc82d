"""What a drill is asked for: refusals, and what an earlier run says of the same stages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.analysis.judged import plan_in
from pgdyno.api.experiments.drill import _asked, _gains
from pgdyno.api.runs import Run
from pgdyno.drills.disasters import named
from pgdyno.model.drill import DrillAsked
from pgdyno.model.errors import PlanError
from pgdyno.model.fleet import Fleet
from pgdyno.model.plan import Plan, Target
from tests.data.drills import DESIGN
from tests.data.miniature import write_miniature


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(write_miniature(tmp_path / "run.sqlite"))


@pytest.fixture
def plan(run: Run) -> Plan:
    return plan_in(run.info)


def asked(plan: Plan) -> DrillAsked:
    names = tuple(stage.name for stage in plan.stages)
    return DrillAsked(plan, names, named(DESIGN.disasters), DESIGN)


def test_a_server_of_somebody_else_is_refused(plan: Plan) -> None:
    theirs = replace(plan, target=Target("running", conninfo="host=db.example.org"))

    with pytest.raises(PlanError, match="against which nothing is rehearsed"):
        _asked(theirs, (), DESIGN)


def test_a_load_of_several_hosts_is_refused(plan: Plan) -> None:
    protocol = replace(plan.protocol, fleet=Fleet(("local:a", "local:b")))

    with pytest.raises(PlanError, match="of which none could keep the ledger"):
        _asked(replace(plan, protocol=protocol), (), DESIGN)


def test_stages_are_those_named_once_each_or_all(plan: Plan) -> None:
    first, second, *_ = (stage.name for stage in plan.stages)

    assert _asked(plan, (second, second, first), DESIGN).stages == (second, first)
    assert _asked(plan, (), DESIGN).stages == tuple(stage.name for stage in plan.stages)


def test_a_run_of_the_same_stages_tells_what_they_brought(run: Run, plan: Plan) -> None:
    gains = _gains(run, asked(plan))

    assert gains.run == run.info.ident
    told = {stage.name: stage.to_first for stage in run.facts.stages}
    assert [one.stage for one in gains.each] == [name for name, found in told.items() if found]
    for one in gains.each:
        found = told[one.stage]
        assert found is not None
        assert (one.ratio, one.low, one.high, one.n) == (
            found.ratio, found.low, found.high, found.rounds,
        )  # fmt: skip


def test_a_run_of_other_stages_is_refused(run: Run, plan: Plan) -> None:
    last = plan.stages[-1]
    other = replace(last, settings=(replace(last.settings[0], value="17"), *last.settings[1:]))
    changed = replace(plan, stages=(*plan.stages[:-1], other))
    strangers = replace(plan, stages=tuple(replace(one, name=f"x-{one.name}")
                                           for one in plan.stages))  # fmt: skip

    with pytest.raises(PlanError, match=rf"stage {last.name} has {other.settings[0].name} = 17"):
        _gains(run, asked(changed))
    with pytest.raises(PlanError, match=r"none of the stages x-initdb, .* has an interval in run"):
        _gains(run, asked(strangers))
