"""Several servers in one window: names, sums, and what each holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, cast
from unittest.mock import MagicMock

import numpy as np
import psycopg
import pytest

from pgdyno.model.connection import Connection
from pgdyno.model.errors import CheckError, PgdynoError, TargetError
from pgdyno.model.plan import Protocol
from pgdyno.model.run import SamplerCost, Series, SnapshotRows, TelemetryReport, TrialState
from pgdyno.model.settings import Rung
from pgdyno.model.system_errors import SystemFailure
from pgdyno.model.workload import Tpcc, Workload
from pgdyno.target.interface import Ready
from pgdyno.trial import preparing
from pgdyno.trial.after_window import EndedWindow
from pgdyno.trial.checks import conditions
from pgdyno.trial.sampled import Sampled, growth_of_all, notes_of
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


def test_counters_that_began_anew_are_noted_and_have_no_growth() -> None:
    fallen = tuple(counter(f"wal.{name}", -2) for name in ("fpi", "records", "syncs", "writes"))
    sampled = Sampled((counter("cpu.user_s", 3.0), *fallen))

    assert growth_of_all(sampled, cast(Any, Window)) == {"cpu.user_s": 3.0}
    assert notes_of(sampled, cast(Any, Window)) == (
        "4 counters began anew in the window, as after a reset of statistics, with unknown"
        " growth: wal.fpi, wal.records, wal.syncs and 1 more",
    )
    assert notes_of(Sampled((counter("wal.fpi", 1),)), cast(Any, Window)) == ()


def test_counters_that_nobody_looked_at_near_an_end_are_noted() -> None:
    """Of a sampler that looks every five seconds, one look that is lost is enough."""
    times = np.array([-4, 6], dtype=np.int64) * 1_000_000_000
    apart = Series("pg_stat_io.checkpointer.relation.normal.writes", "1", "counter", times,
                   np.array([5.0, 9.0]))  # fmt: skip
    sampled = Sampled((counter("cpu.user_s", 3.0), apart))

    assert growth_of_all(sampled, cast(Any, Window)) == {"cpu.user_s": 3.0}
    assert notes_of(sampled, cast(Any, Window)) == (
        "1 counter went without a look for more than 6 s around an end of the window, with unknown"
        f" growth: {apart.name}",
    )


def moments(server: str, at: Literal["begin", "end"], **views: float | None) -> SnapshotRows:
    rows = ({"view": f"pg_stat_{view}", "reset_unix_s": moment} for view, moment in views.items())
    return SnapshotRows(f"{server}resets", at, 0, (), tuple(rows))


@pytest.mark.parametrize("server", ["", "a:1"])
def test_counters_of_a_view_that_was_reset_have_no_growth_though_none_fell(server: str) -> None:
    own = tuple(counter(name, 7.0) for name in ("wal.bytes", "wal.fpi", "database.commits"))
    named = f"{server}: " if server else ""
    looks = (moments(named, "begin", wal=1.0, bgwriter=1.0, database=None),
             moments(named, "end", wal=2.0, bgwriter=1.0, database=None))  # fmt: skip
    crashed = (looks[0], moments(named, "end", wal=2.0, bgwriter=2.0, database=None))
    several = {"servers": {server: own}} if server else {"series": own}

    reset = Sampled(snapshots=looks, **cast(Any, several))
    assert growth_of_all(reset, cast(Any, Window)) == {"wal.bytes": 7.0, "database.commits": 7.0}
    assert notes_of(reset, cast(Any, Window)) == (
        "statistics were reset in the window, so that what they grew by is not known:"
        f" {named}pg_stat_wal at least once",
    )
    after = Sampled(snapshots=crashed, **cast(Any, several))
    assert growth_of_all(after, cast(Any, Window)) == {"wal.bytes": 7.0}


def test_of_several_resets_those_are_counted_that_are_seen() -> None:
    """The server keeps the last; a fall tells of one before."""
    times = np.array([0, 200_000_000, 400_000_000, 600_000_000, 800_000_000, 1_000_000_000])
    fpi = Series("wal.fpi", "1", "counter", times, np.array([50.0, 60.0, 1.0, 2.0, 30.0, 31.0]))
    looks = (moments("", "begin", wal=-9.0, bgwriter=1.0), moments("", "end", wal=0.7, bgwriter=1))
    reset = Sampled((fpi,), snapshots=looks)
    assert notes_of(reset, cast(Any, Window))[-1].endswith("pg_stat_wal at least 2 times")


def test_samplers_that_paused_are_noted_with_their_seconds() -> None:
    lost = [SamplerCost(name, "tally", 9, 0, 0.1, 1000.0, None, 3.0, "gone") for name in ("a", "b")]
    report = TelemetryReport("default", 9.0, 0.1, tuple(lost), ())

    assert notes_of(Sampled(telemetry=report), cast(Any, Window)) == (
        "samplers a and b told nothing for 3.0 s: gone",
    )


@pytest.mark.parametrize(("by_s", "told"), [(0.4, ""), (3600.0, "ahead"), (-90.0, "back")])
def test_a_clock_that_was_set_while_the_load_ran_is_noted(by_s: float, told: str) -> None:
    notes = notes_of(Sampled(clock_set_s=by_s), cast(Any, Window))
    assert len(notes) == bool(told)
    assert all(f"clock was set {told} by {abs(by_s):,.1f} s" in one for one in notes)


def test_looks_that_came_late_are_noted_with_their_seconds() -> None:
    def look(name: str, at: Literal["begin", "end"], second: float) -> SnapshotRows:
        return SnapshotRows(name, at, round(second * 1e9), (), ())

    looks = (look("tables", "begin", 5), look("tables", "end", 12.5), look("plans", "end", 12))
    assert notes_of(Sampled(snapshots=looks), cast(Any, Window)) == (
        "snapshots tables and plans were read 11.5 s after the window's end: what was counted in"
        " the window is not known",
    )


def test_statements_that_began_anew_or_were_evicted_are_noted() -> None:
    looks: list[SnapshotRows] = []
    for at, ns, calls, evictions in (("begin", 0, 5, 2), ("end", 9, 4, 5)):
        end = cast(Any, at)
        entry = {"queryid": "1", "statement": "s", "kind": "k", "calls": calls}
        counts = {"read_unix_s": 1.0, "reset_unix_s": 1.0, "evictions": evictions}
        looks.append(SnapshotRows("statements", end, ns, (), (cast(Any, entry),)))
        looks.append(SnapshotRows("statement counts", end, ns, (), (cast(Any, counts),)))

    assert notes_of(Sampled(snapshots=looks), cast(Any, Window)) == (
        "1 entry of pg_stat_statements began anew in the window, or had not been read before it,"
        " with unknown growth",
        "pg_stat_statements threw out seldom called statements 3 times in the window: what those"
        " counted is lost; raise pg_stat_statements.max to keep them",
    )


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


def test_transactions_that_failed_are_told_by_server() -> None:
    result = over_two()
    first, second = result.parts
    kind = second.kinds[0]
    failed = replace(kind, run=replace(kind.run, due=kind.run.due + 3, failed=3))
    parts = (first, replace(second, kinds=(failed, *second.kinds[1:])))
    whole = replace(result, kinds=(failed, *result.kinds[1:]), parts=parts, errors=())

    assert judge(whole, None)[1] == f"3 transactions failed on server {NAMES[1]}"


BOTH = [Connection(name, 5432, "u", "d") for name in ("a", "b")]
PROTOCOL = Protocol(1, 0.0, 1.0, 1.0, True, 0.02, 0.95, Rung.D0)


def failing_on_b(failure: Exception) -> Any:
    """What fails on the second server."""

    def act(connection: Connection, *_: object, **__: object) -> MagicMock:
        if connection == BOTH[1]:
            raise failure
        return MagicMock()

    return act


@pytest.mark.parametrize(
    ("what", "failure", "kind", "fact"),
    [
        ("prewarm", TargetError("the database has no pg_prewarm"), TargetError,
         "the database has no pg_prewarm"),
        ("own_session", psycopg.OperationalError("it is gone"), SystemFailure,
         "the server failed: it is gone"),
    ],
)  # fmt: skip
def test_a_server_that_cannot_be_warmed_is_named(
    monkeypatch: pytest.MonkeyPatch, what: str, failure: Exception, kind: type[PgdynoError],
    fact: str,
) -> None:  # fmt: skip
    first, second = (Ready(one, (), None, None, 0.0, "", name=name)
                     for one, name in zip(BOTH, NAMES, strict=True))  # fmt: skip
    monkeypatch.setattr(preparing, "prewarm", MagicMock())
    monkeypatch.setattr(preparing, "own_session", MagicMock())
    monkeypatch.setattr(preparing, what, failing_on_b(failure))

    with pytest.raises(kind) as caught:
        preparing.warmed(replace(first, others=(second,)), BOTH, PROTOCOL, MagicMock())

    assert caught.value.fact == f"server {NAMES[1]}: {fact}"


def test_a_check_that_cannot_be_run_names_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = CheckError("condition 1 cannot be run: it is gone")
    monkeypatch.setattr(conditions, "own_work_mem", lambda _: None)
    monkeypatch.setattr(conditions, "check", failing_on_b(failure))
    ended = EndedWindow(cast(Any, None), BOTH, MagicMock(), PROTOCOL, 1, NAMES)
    action = conditions.action(ended)
    assert action is not None

    with pytest.raises(CheckError, match=f"^server {NAMES[1]}: condition 1 cannot be run"):
        action.act()


def test_violations_are_told_by_server() -> None:
    found = with_violations(over_two().servers, [0, 2])
    assert [one.violations for one in found] == [0, 2]
    assert with_violations((), [1]) == ()
    with pytest.raises(ValueError, match="shorter"):
        with_violations(over_two().servers, [0])
