"""What a server or a folder refuses is known before anything is loaded, and leaves nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.folders import MARK
from tests.attack.outcome import listing
from tests.cluster.test_run import pgdyno

pytestmark = pytest.mark.cluster

PLAN = """
name = "small"
question = "Is it known before?"
[workload]
warehouses = 1
[protocol]
rounds = 1
window_s = 1
[[stage]]
name = "good"
why = "Starts."
[[stage]]
name = "library"
why = "Is not installed."
afresh = true
settings = { shared_preload_libraries = "nosuch" }
[[stage]]
name = "extension"
why = "Would run with another value."
afresh = true
settings = { shared_preload_libraries = "pg_stat_statements", "pg_stat_statements.max" = 1 }
[[stage]]
name = "client"
why = "As library, with another client."
client = { connections = 2 }
"""


@pytest.mark.wide
def test_stages_that_cannot_run_are_refused_before_loading(folder: Path, home_env: Path) -> None:
    (folder / "plan.toml").write_text(PLAN)
    fixtures = home_env / "fixtures"
    before = sorted(fixtures.iterdir()) if fixtures.exists() else []

    told = " ".join(pgdyno("run", folder / "plan.toml", code=2).stderr.split())

    assert "2 errors stage library: the server ended with code 1" in told
    assert 'could not access file "nosuch"' in told
    assert "stage extension: the running server differs from the stage: pg_stat_sta" in told
    assert "stage good" not in told
    assert "stage client" not in told
    assert "Nothing was touched." in told
    assert not (folder / "runs").exists()
    assert [one for one in sorted(fixtures.iterdir()) if one.name != MARK] == [
        one for one in before if one.name != MARK
    ]
    assert not list((home_env / "work").glob("*rehears*"))


@pytest.mark.parametrize(
    ("place", "told"),
    [
        pytest.param("/nope", "does not exist", marks=pytest.mark.long),
        pytest.param("/etc/passwd", "is a file", marks=pytest.mark.long),
        pytest.param(
            "/proc", "is of the file system proc, which keeps no data", marks=pytest.mark.wide
        ),
        pytest.param("/sys/kernel", "is of the file system sysfs", marks=pytest.mark.long),
        ("CLOSED", "cannot be entered by user"),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused_by_the_dry_run(
    folder: Path, home_env: Path, place: str, told: str
) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    (folder / "plan.toml").write_text(PLAN)
    named = str(closed) if place == "CLOSED" else place
    if place == "CLOSED" and os.geteuid() != 0:
        pytest.skip("who is no other user is not shut out of his own folder")
    before = listing(folder)

    done = pgdyno(
        "run", folder / "plan.toml", "--dry-run", "--set", f'stage.good.folder="{named}"', code=2
    )

    assert f"stage good: folder {named} {told}" in " ".join(done.stderr.split())
    assert listing(folder) == before
