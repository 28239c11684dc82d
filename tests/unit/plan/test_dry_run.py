"""What a dry run says of who chose the target, and of what a rung means."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from pgdyno.plan import read_plan, render_dry_run
from pgdyno.plan.resolve.plan import resolve
from tests.data.servers import HOST, installed

PLANS = Path(__file__).parents[3] / "plans"
INSTALLED = ("target.kind=installed", "target.bindir=/usr/lib/postgresql/15/bin")


def printed(name: str, *overrides: str) -> str:
    plan = resolve(read_plan(PLANS / f"{name}.toml", overrides), installed(18), HOST)
    console = Console(file=io.StringIO(), width=160)
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


def test_a_look_is_told_as_what_it_does() -> None:
    said = " ".join(printed("demo").split())
    assert (
        "up to 8 rounds: what a look after 3, 4, 5, 6 or 8 has decided is measured no further"
        in (said)
    )
