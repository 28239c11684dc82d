"""What a plan says of telemetry: three words, and other trials where it is not the default."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan
from pgdyno.plan import read_plan
from pgdyno.plan.resolve.plan import resolve
from tests.data.servers import HOST, installed

PLAN = Path(__file__).parents[2] / "data" / "plans" / "good" / "tpcb.toml"


def resolved(*overrides: str) -> Plan:
    return resolve(read_plan(PLAN, overrides), installed(18), HOST)


def test_a_plan_says_how_much_is_sampled() -> None:
    idents = {}
    for told in ("none", "default", "full"):
        plan = resolved(f"protocol.telemetry={told}")
        assert plan.protocol.telemetry == told
        idents[told] = [trial.ident for trial in plan.trials]

    assert [trial.ident for trial in resolved().trials] == idents["default"]
    assert len({tuple(each) for each in idents.values()}) == 3


def test_another_word_is_refused() -> None:
    with pytest.raises(PlanError, match=r"protocol\.telemetry"):
        resolved("protocol.telemetry=some")
