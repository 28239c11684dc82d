"""Several servers in one window: names, sums, and what each holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from pgdyno.model.run import Series, TrialState
from pgdyno.model.workload import Tpcc, Workload
from pgdyno.trial.sampled import Sampled, growth_of_all
from pgdyno.trial.servers import held_text, with_violations
from pgdyno.trial.validity import judge
from pgdyno.workload.spec import workload_spec
from tests.data.servers_result import NAMES, over_two
from tests.data.workloads import tpcb, tpcc


class Window:
    """A driver's window of a second."""

    window_ns = (0, 1_000_000_000)


def counter(name: str, grown: float, kind: str = "counter") -> Series:
    return Series(name, "1", kind, np.array([0, 1_000_000_000]), np.array([5.0, 5.0 + grown]))


def test_growth_of_servers_is_added_where_all_have_it() -> None:
    sampled = Sampled(
        (counter("cpu.user_s", 3.0),),
        servers={
            "a:1": (counter("wal.bytes", 7), counter("wal.fpi", 1), counter("level", 9, "gauge")),
            "b:2": (counter("wal.bytes", 4.0),),
        },
    )  # fmt: skip

    assert growth_of_all(sampled, cast(Any, Window)) == {"cpu.user_s": 3.0, "wal.bytes": 11.0}
    assert [one.name for one in sampled.stored] == [
        "cpu.user_s", "a:1: wal.bytes", "a:1: wal.fpi", "a:1: level", "b:2: wal.bytes",
    ]  # fmt: skip


def test_what_a_server_holds_is_told() -> None:
    assert held_text(tpcc(3).over(2, "alike"), 1) == "3 warehouses"
    assert held_text(tpcc(6).over(2, "block"), 1) == "warehouses 4 to 6"
    assert held_text(tpcc(2).over(2, "block"), 1) == "warehouse 2"
    assert held_text(tpcb(5).over(2, "alike"), 0) == "scale 5"


def test_a_workload_over_servers_is_of_all_or_of_each() -> None:
    whole = Workload("tpcc", 1, connections=8, terminals=40, tpcc=Tpcc(4))
    alike, block = whole.over(2, "alike"), whole.over(2, "block")

    assert whole.over(1, "block") == whole
    assert (alike.sessions, alike.parts, alike.of_part(8)) == (16, 2, 8)
    assert (block.sessions, block.parts, block.of_part(8)) == (8, 2, 4)
    assert workload_spec(block)["blocks"] == {"count": 2}
    assert workload_spec(block.held_by(1))["blocks"] == {"count": 2, "held": 1}
    assert "blocks" not in workload_spec(alike)
    assert alike.held_by(1) == whole


def test_a_server_that_did_nothing_makes_a_trial_invalid() -> None:
    result = over_two()
    assert judge(result, None)[0] is TrialState.FINISHED
    idle, busy = result.parts[1], result.parts[0]
    nothing = tuple(replace(kind, window=replace(kind.window, succeeded=0)) for kind in idle.kinds)

    state, reason = judge(replace(result, parts=(busy, replace(idle, kinds=nothing))), None)

    assert state is TrialState.INVALID
    assert reason == f"no transaction succeeded on server {NAMES[1]} in the window"


def test_violations_are_told_by_server() -> None:
    found = with_violations(over_two().servers, [0, 2])
    assert [one.violations for one in found] == [0, 2]
    assert with_violations((), [1]) == ()
    with pytest.raises(ValueError, match="shorter"):
        with_violations(over_two().servers, [0])
