"""What `--dry-run` prints, at 100 columns and without colours."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pgdyno.cli.console import Shown
from pgdyno.plan import read_plan, render_dry_run
from pgdyno.plan.resolve.plan import resolve
from tests.data.builds import builds_of
from tests.data.servers import HOST, installed, running

ROOT = Path(__file__).parents[2]
PLANS = Path("plans")
GOOD = Path("tests", "data", "plans", "good")
WIDTH = 100


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are named from the root: how long its own path is must not move a line."""
    monkeypatch.chdir(ROOT)


def printed(
    path: Path, *overrides: str, quick: bool = False, aa: bool = False, major: int = 18
) -> str:
    draft = read_plan(path, overrides, quick, aa)
    server = running(major) if draft.document.target.kind == "running" else installed(major)
    console = Shown(file=io.StringIO(), width=WIDTH, color_system=None)
    builds = builds_of(draft, running(15))
    plan = resolve(draft, server, HOST, builds=builds)
    console.print(render_dry_run(plan, server, HOST, builds=builds))
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def test_the_demo(snapshot: SnapshotAssertion) -> None:
    assert printed(PLANS / "demo.toml") == snapshot


def test_quick_with_twin_and_overrides(snapshot: SnapshotAssertion) -> None:
    text = printed(
        PLANS / "tuning.toml",
        "protocol.rounds=4", "stage.async-commit.settings.wal_writer_delay=10ms",
        quick=True, aa=True,
    )  # fmt: skip
    assert text == snapshot


def test_every_key_on_an_older_server(snapshot: SnapshotAssertion) -> None:
    path = GOOD / "everything.toml"
    assert printed(path, 'target.initdb=["--wal-segsize=64"]', major=15) == snapshot


def test_a_running_server(snapshot: SnapshotAssertion) -> None:
    assert printed(GOOD / "running.toml") == snapshot


def test_clients_of_stages(snapshot: SnapshotAssertion) -> None:
    text = printed(GOOD / "clients.toml", "stage.crowd.client.threads=2", "protocol.survive=true")
    assert text == snapshot


def test_a_workload_of_the_catalogue(snapshot: SnapshotAssertion) -> None:
    assert printed(GOOD / "benchmarksql.toml") == snapshot


def test_builds_of_stages(snapshot: SnapshotAssertion) -> None:
    assert printed(GOOD / "builds.toml") == snapshot


def test_scripts_and_ramps(snapshot: SnapshotAssertion) -> None:
    assert [printed(GOOD / name) for name in ("script.toml", "tpcb.toml", "mix.toml")] == snapshot


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / GOOD).glob("*.toml")))
def test_every_setting_of_every_stage_is_shown(name: str) -> None:
    path = GOOD / name
    text = printed(path)
    draft = read_plan(path)
    server = running(18) if draft.document.target.kind == "running" else installed(18)
    builds = builds_of(draft, running(15))
    for stage in resolve(draft, server, HOST, builds=builds).stages:
        known = stage.durability is None or stage.durability.rung is not None
        assert f"\n{stage.name}  {stage.rung if known else 'D?'}" in text
        for setting in stage.settings:
            assert setting.name in text
            assert setting.value in text
        for key in stage.client:
            assert key.name in text
    assert max(map(len, text.splitlines())) <= WIDTH
