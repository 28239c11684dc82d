"""A plan whose stages put PgBouncer in front of their server, add it, drop it, and lose it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import pgdyno
from pgdyno.model.progress import DriveProgress, Event
from pgdyno.model.run import TrialRecord, TrialState
from pgdyno.store.run_file import RunFile
from tests.cluster.test_run import assert_nothing_left
from tests.waiting import DEADLINE_S

pytestmark = [pytest.mark.cluster, pytest.mark.wide]
SESSIONS, DRAIN_S = 2, 5.0
PLAN = f"""
name = "pooled"
question = "What does a pooler cost?"
[target]
transport = "TRANSPORT"
[protocol]
rounds = 1
warmup_s = 0.5
window_s = 3.0
drain_s = {DRAIN_S}
[workload]
kind = "tpcb"
scale = 1
connections = 8
[[stage]]
name = "direct"
why = "Each client has a session."
[[stage]]
name = "pooled"
why = "Eight clients share two."
pooler = {{ sessions = {SESSIONS} }}
"""


@pytest.fixture
def plan(folder: Path, home_env: Path) -> Callable[[str], pgdyno.Plan]:
    assert home_env.is_dir()

    def written(transport: str) -> pgdyno.Plan:
        path = folder / "pooled.toml"
        path.write_text(PLAN.replace("TRANSPORT", transport))
        return pgdyno.load_plan(path)

    return written


@pytest.mark.parametrize("transport", ["socket", pytest.param("tcp", marks=pytest.mark.long)])
def test_clients_share_its_sessions_and_the_report_says_what_it_took(
    plan: Callable[[str], pgdyno.Plan], folder: Path, home_env: Path, transport: str
) -> None:
    run = pgdyno.run(plan(transport), out=folder / "run.sqlite")

    with RunFile.read(run.path) as file:
        direct, pooled = file.trials()
        series = file.series(pooled.number)
    assert [one.state for one in (direct, pooled)] == [TrialState.FINISHED] * 2
    assert direct.result is not None
    assert pooled.result is not None
    assert not [name for name in direct.result.deltas if name.startswith("pooler.")]
    begin, end = pooled.result.window_ns
    busy = series["pooler.busy"]
    inside = busy.values[(busy.unix_ns >= begin) & (busy.unix_ns <= end)]
    assert 0 < inside.max() <= SESSIONS
    ended = sum(kind.window.ended for kind in pooled.result.kinds)
    assert pooled.result.deltas["pooler.transactions"] == pytest.approx(ended, rel=0.4)
    assert 0 < pooled.result.deltas["pooler.cpu_s"] < pooled.result.window_s * 1.1
    assert any("does not follow the names" in note for note in pooled.result.notes)

    rows = {(row.aspect, row.what): row.stages for row in run.facts.resources
            if row.resource == "pooler"}  # fmt: skip
    assert all(of_direct is None for of_direct, _ in rows.values())
    counted = [aspect for (aspect, _), (_, of_pooled) in rows.items() if of_pooled is not None]
    assert len(counted) == 4
    assert {aspect for aspect, _ in rows} - {*counted} == {"errors"}  # told, for nobody counts them
    assert "through PgBouncer: transaction, 2 sessions" in run.path.with_suffix(".html").read_text()
    for form in ("conf", "sql"):
        recommended = run.configuration(form, stage="pooled")
        assert f"through PgBouncer (transaction, {SESSIONS} sessions)" in recommended
        assert f"  default_pool_size = {SESSIONS}\n" in recommended
        assert "PgBouncer" not in run.configuration(form, stage="direct")
    assert_nothing_left(home_env)


def striking(home: Path, strike: signal.Signals, struck: list[int]) -> Callable[[Event], None]:
    """Strikes the pooler of a home's trial once, in the first window that has one."""

    def hear(event: Event) -> None:
        if isinstance(event, DriveProgress) and event.phase == "window" and not struck:
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    inside = os.readlink(process / "cwd").startswith(str(home))
                    name = (process / "comm").read_text().strip()
                except OSError:
                    continue
                if inside and name == "pgbouncer":
                    struck.append(int(process.name))
                    os.kill(struck[0], strike)

    return hear


def struck_by(
    strike: signal.Signals, plan: pgdyno.Plan, folder: Path, home: Path
) -> tuple[int, TrialRecord]:
    """The process that was struck, and the trial through it: that failed, and nothing is left."""
    struck: list[int] = []
    run = pgdyno.run(plan, out=folder / "run.sqlite", on_event=striking(home, strike, struck))
    with RunFile.read(run.path) as file:
        direct, pooled = file.trials()
    assert struck
    assert direct.state is TrialState.FINISHED
    assert pooled.state is TrialState.FAILED
    assert pooled.reason is not None
    assert_nothing_left(home)
    return struck[0], pooled


def test_one_that_dies_fails_the_trial_with_its_last_words(
    plan: Callable[[str], pgdyno.Plan], folder: Path, home_env: Path
) -> None:
    _, pooled = struck_by(signal.SIGKILL, plan("socket"), folder, home_env)

    assert "PgBouncer ended with code -9 while the load ran" in str(pooled.reason)


@pytest.mark.long
def test_one_that_is_stopped_is_named_within_a_bound_and_leaves_nothing(
    plan: Callable[[str], pgdyno.Plan], folder: Path, home_env: Path
) -> None:
    """Nothing answers, to nobody: neither its clients nor who asks its console, nor SIGTERM."""
    stopped, pooled = struck_by(signal.SIGSTOP, plan("tcp"), folder, home_env)

    assert f"PgBouncer (process {stopped}) was stopped by a signal while" in str(pooled.reason)
    assert pooled.ended_ns is not None
    assert pooled.started_ns is not None
    assert (pooled.ended_ns - pooled.started_ns) / 1e9 < DEADLINE_S
    assert not Path(f"/proc/{stopped}").exists()
