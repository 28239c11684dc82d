"""What a dry run says of who chose the target, and of what a rung means."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

import pgdyno
from pgdyno.model.fleet import Fleet
from pgdyno.plan import read_plan, render_dry_run
from pgdyno.plan.resolve.plan import resolve
from pgdyno.plan.settings.fleet import fleet_text, loading_fleet
from tests.data.servers import HOST, installed

PLANS = Path(__file__).parents[3] / "plans"
PACKAGED = Path(pgdyno.__file__).parent / "plans"
INSTALLED = ("target.kind=installed", "target.bindir=/usr/lib/postgresql/15/bin")


def printed(name: str, *overrides: str, folder: Path = PLANS, width: int = 160) -> str:
    plan = resolve(read_plan(folder / f"{name}.toml", overrides), installed(18), HOST)
    console = Console(file=io.StringIO(), width=width)
    console.print(render_dry_run(plan, installed(18), HOST))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_an_installed_server_is_labelled_by_the_option_that_named_it() -> None:
    line = next(one for one in printed("demo", *INSTALLED).splitlines() if "target" in one)
    assert line.rstrip().endswith("by --bindir")
    assert "kind" not in line


@pytest.mark.parametrize(
    ("stage", "meaning"),
    [
        ("initdb", "D0  nothing is lost"),
        ("async-commit", "D2  a crash may lose the last commits"),
    ],
)
def test_every_rung_says_what_it_means(stage: str, meaning: str) -> None:
    assert f"\n{stage}  {meaning}: " in printed("demo")


@pytest.mark.parametrize("width", range(60, 130, 10))
def test_the_number_of_a_trial_stays_with_its_stage(width: int) -> None:
    said = printed("storage-comparison", folder=PACKAGED, width=width)
    rounds = said.split("\nTrials\n")[1].split("of measuring")[0].splitlines()
    assert " ".join(" ".join(rounds).split()).count(", 6 ") == 1
    assert [one for one in rounds if one.rstrip().split(" ")[-1].isdigit()] == []


def test_a_look_is_told_as_what_it_does() -> None:
    said = " ".join(printed("demo").split())
    assert (
        "up to 8 rounds; a look at the results after 3, 4, 5, 6 or 8 may decide on a stage, which"
        " is then measured no further" in (said)
    )


def test_cycles_are_forecast_by_the_fastest_wal_and_by_time() -> None:
    said = " ".join(printed("demo").split())
    assert "initdb: checkpoints every 11 s or so, trials of 34 s, if all CPUs write WAL as" in said
    assert "if they write less, up to every 5 min 00 s, trials of up to 15 min 00 s async" in said
    assert "8 min 59 s of measuring, up to 4 h 00 min where little WAL is written" in said
    assert "about 10 min 50 s in all, if no look decides, up to 4 h 01 min where little" in said


def test_cycles_that_time_ends_have_one_forecast() -> None:
    said = " ".join(printed("demo", "stage.initdb.settings.checkpoint_timeout=30s").split())
    assert "initdb: checkpoints every 11 s or so" in said
    assert "up to every 30 s, trials of up to 1 min 30 s async-commit" in said
    by_time = "stage.initdb.settings.max_wal_size=64GB"
    said = " ".join(
        printed("demo", "stage.initdb.settings.checkpoint_timeout=30s", by_time).split()
    )
    assert "initdb: checkpoints every 30 s or so, trials of 1 min 30 s async-commit" in said
    assert "little WAL" not in said


def test_anchors_stay_anchors_where_cycles_last_longer() -> None:
    follows = ("protocol.checkpoints=anchors", "protocol.stop=rounds", "protocol.anchors=1")
    said = " ".join(printed("demo", *follows, "stage.initdb.settings.max_wal_size=64GB").split())
    assert "initdb: checkpoints every 5 min 00 s or so, 1 anchor of 6 min 30 s async-commit" in said


def test_hosts_fill_the_tables_as_well_and_that_is_said() -> None:
    hosts = 'fleet.hosts=["local:a", "local:b"]'
    assert "load from local:a and local:b, its tables as well" in printed("demo", hosts)
    many = Fleet(tuple(f"ssh://c{number}" for number in range(20)))
    assert fleet_text(many, fills=True).endswith(
        " and ssh://c19, its tables from the first 16 of them"
    )
    assert fleet_text(Fleet(("local:a",)), fills=False) == "load from local:a"


@pytest.mark.parametrize(
    ("hosts", "connections", "loading"),
    [
        (("local:a", "local:b"), 8, (2, 8)),
        (("local:a", "netns:b"), 500, (2, 16)),  # one machine
        (("ssh://a", "ssh://b"), 500, (2, 32)),
        (("local:a", "ray:b"), 500, (2, 32)),
        (("ssh://a", "ssh://b", "ssh://c"), 2, (3, 3)),  # a stage has more
        (tuple(f"local:{number}" for number in range(100)), 200, (16, 16)),
        (tuple(f"ssh://c{number}" for number in range(100)), 20_000, (16, 256)),
    ],
)
def test_what_fills_tables_is_what_is_driven_and_no_more_than_machines_do_alone(
    hosts: tuple[str, ...], connections: int, loading: tuple[int, int]
) -> None:
    fleet, sessions = loading_fleet(Fleet(hosts), connections)
    assert (len(fleet.hosts), sessions) == loading
    assert fleet.hosts == hosts[: len(fleet.hosts)]
