"""What settings and statements give up: all of it, not only what is lowest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.model.durability import NOT_KNOWN, Durability, Loss, over_servers, together
from pgdyno.model.errors import PlanError
from pgdyno.model.settings import Place, Rung, ServerFacts
from pgdyno.model.workload import Data, Script, SourceFile, Workload
from pgdyno.plan import read_plan
from pgdyno.plan.resolve.plan import resolve
from pgdyno.plan.resolve.stages import reason_of
from pgdyno.plan.schema.read import read_plan_text
from pgdyno.plan.settings.durability import settings_losses, workload_losses
from tests.data.servers import HOST, installed, running

PLANS = Path(__file__).parents[2] / "data" / "plans" / "good"
STORAGE = Path(__file__).parents[3] / "plans" / "storage-comparison.toml"
SEVERAL = """
name = "several"
question = "Which of two servers loses what?"

[target]
kind = "running"
servers = ["host=/run/a", "host=/run/b"]

[workload]
kind = "tpcc"
warehouses = 1

[[stage]]
name = "as-it-is"
why = "What is there."
"""


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
        ("set local Synchronous_Commit TO 'false';", ["synchronous_commit = off"]),
        ("SELECT set_config('synchronous_commit', 'off', true);", ["synchronous_commit = off"]),
        ('SET "synchronous_commit" = off;', ["synchronous_commit = off"]),
        ('set session "synchronous_commit" to off;', ["synchronous_commit = off"]),
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


def test_a_stage_stands_where_the_storage_of_its_folder_does() -> None:
    memory = Loss(Rung.D6, "data folder /dev/shm in memory (tmpfs)", "…", "file system", "mount")
    places = tuple(
        Place(path, 1 << 40, kind, number, found)
        for path, kind, number, found in (
            ("/dev/shm", "tmpfs", 2, Durability((memory,))),
            ("/srv/a", "ext4", 3, Durability()),
            ("/srv/b", "ext4", 4, None),
        )
    )
    host = replace(HOST, places=places)
    plan = resolve(read_plan(STORAGE, folders=("/srv/a", "/srv/b")), installed(18), host)
    rungs = {stage.folder: stage.rung_known for stage in plan.stages if stage.folder}
    assert rungs == {"/dev/shm": "D6", "/srv/a": "D0", "/srv/b": NOT_KNOWN}
    assert "in memory" in next(one for one in plan.stages if one.folder == "/dev/shm").rung_reason


def test_what_lowers_no_rung_is_a_reason_only_by_itself() -> None:
    sums = Loss(Rung.D0, "data_checksums = off", "nothing by itself", "server", "…")
    commits = Loss(Rung.D2, "synchronous_commit = off", "…", "server", "…")
    assert [one.said for one in together(Durability((sums, commits))).reasons] == [commits.what]
    assert reason_of(Durability((sums,))) == "data_checksums = off loses nothing by itself"
    images = Loss(Rung.D1, "wal_compression = pglz", "nothing is lost; …", "server", "…")
    assert reason_of(together(Durability((images, commits)))) == commits.what
    assert reason_of(together(Durability((images, sums)))) == images.what


def test_what_is_not_known_is_no_rung_unless_something_is_lost_anyway() -> None:
    loss = Loss(Rung.D2, "synchronous_commit = off", "…", "server", "…")
    assert Durability().rung is Rung.D0
    assert Durability((), ("storage",)).rung is None
    assert Durability((loss,), ("storage",)).rung is Rung.D2


def two_servers(*values: str) -> ServerFacts:
    """Servers a and b, each with its own fsync."""
    of_both = running(18)
    first, second = (
        replace(
            of_both,
            name=name,
            knobs={**of_both.knobs, "fsync": replace(of_both.knobs["fsync"], default=value)},
        )
        for name, value in zip("ab", values, strict=True)
    )
    return replace(first, others=(second,))


@pytest.mark.parametrize(
    ("first", "second", "text", "who"),
    [
        ("off", "on", "fsync = off on server a puts it on rung D6", "server a"),
        ("on", "off", "fsync = off on server b puts it on rung D6", "server b"),
        ("off", "off", "fsync = off puts it on rung D6", "all servers"),
    ],
)
def test_each_of_several_servers_is_held_against_the_lowest_rung(
    first: str, second: str, text: str, who: str
) -> None:
    servers = two_servers(first, second)
    with pytest.raises(PlanError, match=text):
        resolve(read_plan_text(SEVERAL, "several.toml", Path.cwd()), servers, HOST)

    meant = ('protocol.lowest_rung = "D6"',)
    plan = resolve(read_plan_text(SEVERAL, "several.toml", Path.cwd(), meant), servers, HOST)

    (stage,) = plan.stages
    assert (stage.rung, stage.rung_reason) == (Rung.D6, "fsync = off")
    assert stage.durability is not None
    assert [one.source for one in stage.durability.losses] == [f"{who}: the server's default"]


def test_a_loss_of_several_servers_is_told_once_with_those_that_have_it() -> None:
    off = Loss(Rung.D6, "fsync = off", "…", "server", "pg_settings")
    late = Loss(Rung.D2, "synchronous_commit = off", "…", "server", "pg_settings")
    found = over_servers({
        "a": Durability((late,), ("setting fsync",)),
        "b": Durability((late, off)),
        "c": Durability((off, late)),
    })  # fmt: skip
    assert [(one.what, one.source) for one in found.losses] == [
        ("fsync = off", "servers b and c: pg_settings"),
        ("synchronous_commit = off", "all servers: pg_settings"),
    ]
    assert found.not_known == ("server a: setting fsync",)
    assert (found.lowest, reason_of(found)) == (Rung.D6, "fsync = off, synchronous_commit = off")
