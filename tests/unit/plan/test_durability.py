"""What settings and statements give up: all of it, not only what is lowest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.model.durability import Durability, Loss
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Data, Script, SourceFile, Workload
from pgdyno.plan import read_plan
from pgdyno.plan.resolve.plan import resolve
from pgdyno.plan.settings.durability import settings_losses, workload_losses
from tests.data.servers import HOST, installed

PLANS = Path(__file__).parents[2] / "data" / "plans" / "good"


def read(**values: str) -> Callable[[str], tuple[str, str, str] | None]:
    return lambda name: (values[name], "server", "here") if name in values else None


def test_every_value_that_falls_is_named() -> None:
    found = settings_losses(
        read(full_page_writes="off", wal_level="minimal", synchronous_commit="off", fsync="on")
    )
    assert {(loss.rung.value, loss.what) for loss in found} == {
        ("D4", "full_page_writes = off"),
        ("D3", "wal_level = minimal"),
        ("D2", "synchronous_commit = off"),
    }


def test_local_commits_are_a_loss_where_standbys_are_asked_for() -> None:
    assert settings_losses(read(synchronous_commit="local", synchronous_standby_names="")) == ()
    (loss,) = settings_losses(read(synchronous_commit="local", synchronous_standby_names="s1"))
    assert loss.rung is Rung.D2
    assert "failover" in loss.loses


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("SET synchronous_commit = off;", ["synchronous_commit = off"]),
        ('SET "synchronous_commit" = off;', ["synchronous_commit = off"]),
        ('SET"synchronous_commit"TO"off";', ["synchronous_commit = off"]),
        ("SET LOCAL\"synchronous_commit\" = E'off';", ["synchronous_commit = off"]),
        ("SELECT set_config(E'synchronous_commit', E'off', false);", ["synchronous_commit = off"]),
        ("SELECT reset_synchronous_commit = off;", []),
        ("set local Synchronous_Commit TO 'false';", ["synchronous_commit = off"]),
        ("SELECT set_config('synchronous_commit', 'off', true);", ["synchronous_commit = off"]),
        ("SET SESSION synchronous_commit = on;", []),
        ("UPDATE settings SET value = 'synchronous_commit' WHERE off;", []),
        ("SELECT 1;", []),
    ],
)
def test_what_statements_set_for_themselves(statement: str, told: list[str]) -> None:
    script = Script((SourceFile("a.sql", statement),), Data())
    found = workload_losses(Workload("script", 1, script=script), installed(18).knobs)
    assert [loss.what for loss in found] == told
    assert all(loss.layer == "workload" and "a.sql" in loss.source for loss in found)


def test_storage_counts_for_stages_without_a_folder_of_their_own() -> None:
    memory = Loss(Rung.D6, "data folder /dev/shm in memory (tmpfs)", "…", "file system", "mount")
    host = replace(HOST, durability=Durability((memory,)))
    plan = resolve(read_plan(PLANS / "smallest.toml"), installed(18), host)
    assert plan.stages[0].rung is Rung.D6
    assert "in memory" in plan.stages[0].rung_reason


def test_what_is_not_known_is_no_rung_unless_something_is_lost_anyway() -> None:
    loss = Loss(Rung.D2, "synchronous_commit = off", "…", "server", "…")
    assert Durability().rung is Rung.D0
    assert Durability((), ("storage",)).rung is None
    assert Durability((loss,), ("storage",)).rung is Rung.D2
